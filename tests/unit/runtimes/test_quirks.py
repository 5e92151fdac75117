"""Adapters are named as each style wants, and a status blames whom it should."""

import pytest

from gateway.runtimes.quirks import AdapterStyle, Blame, LoraAdapter, Quirks, StreamUsage, blame, spell


def test_without_an_adapter_the_base_is_named() -> None:
    """No style changes a request for the base model."""
    for style in AdapterStyle:
        spelling = spell(style, "base", None)
        assert (spelling.model, dict(spelling.fields)) == ("base", {})


@pytest.mark.parametrize(
    ("style", "model", "fields"),
    [
        (AdapterStyle.NAME, "sql", {}),
        (AdapterStyle.BASE_COLON_ADAPTER, "base:sql", {}),
        (AdapterStyle.LORA_SCALES, "base", {"lora": [{"id": 2, "scale": 1.0}]}),
        (
            AdapterStyle.LORA_REQUEST,
            "base",
            {"lora_request": {"lora_name": "sql", "lora_int_id": 2, "lora_path": "/adapters/sql"}},
        ),
    ],
)
def test_each_style_names_the_adapter(style: AdapterStyle, model: str, fields: dict[str, object]) -> None:
    """The adapter stands where that runtime reads it."""
    spelling = spell(style, "base", LoraAdapter("sql", 2, "/adapters/sql"))
    assert (model, fields) == (spelling.model, dict(spelling.fields))


@pytest.mark.parametrize("style", [AdapterStyle.LORA_SCALES, AdapterStyle.LORA_REQUEST, AdapterStyle.NONE])
def test_a_style_that_cannot_name_it_says_so(style: AdapterStyle) -> None:
    """Without the id or path a style needs, the error names the adapter: it is never sent to the base by mistake."""
    with pytest.raises(LookupError, match="sql"):
        spell(style, "base", LoraAdapter("sql"))


def test_every_style_is_handled() -> None:
    """A new style must be given its spelling: each either names the adapter or refuses it."""
    adapter = LoraAdapter("sql", 1, "/p")
    for style in AdapterStyle:
        if style is AdapterStyle.NONE:
            continue
        spelling = spell(style, "base", adapter)
        assert spelling.model != "base" or spelling.fields


@pytest.mark.parametrize(
    ("status", "message", "whose"),
    [
        (400, "maximum context length is 2048", Blame.CLIENT),
        (404, "model not found", Blame.CLIENT),
        (429, "slow down", Blame.BUSY),
        (503, "The engine is currently busy with requests", Blame.BUSY),
        (503, "Loading model", Blame.POOL),
        (500, "oops", Blame.POOL),
        (401, "Unauthorized", Blame.POOL),
        (417, "list index out of range", Blame.POOL),
        (400, "Out of range float values are not JSON compliant: nan", Blame.POOL),
    ],
)
def test_blame(status: int, message: str, whose: Blame) -> None:
    """A 4xx is the client's, unless the runtime is known to answer its own faults so; busy is nobody's."""
    quirks = Quirks(
        pool_fault_statuses=frozenset({417}),
        pool_fault_texts=("not json compliant",),
        busy_texts=("currently busy",),
    )
    assert whose is blame(quirks, status, message)


def test_usage_is_asked_for_only_where_asking_helps() -> None:
    """``stream_options`` is worth adding only for runtimes that obey it."""
    supports = {usage: Quirks(stream_usage=usage).supports_stream_usage for usage in StreamUsage}
    assert supports == {StreamUsage.ON_REQUEST: True, StreamUsage.ALWAYS: False, StreamUsage.NEVER: False}


def test_ignored_fields_are_not_honoured() -> None:
    """A field the runtime drops is known as such."""
    quirks = Quirks(ignored_fields=frozenset({"n"}))
    assert not quirks.honours("n")
    assert quirks.honours("seed")
