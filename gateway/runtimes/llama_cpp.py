"""llama.cpp's server: ``runtime: llama.cpp``. Seen running: b11434 and b11549 (the xllamacpp wheel).

What misleads here: every name in ``model`` is accepted; the KV cache's type is nowhere over HTTP; ``ftype`` is a
label of the file and not its bits (``size * 8 / n_params`` is); ``n_ctx`` is per slot. Reading ``/metrics`` resets
the server's two rate gauges and each read wakes its queue, which delays cancelling unstreamed requests, so it is not
read more than every 2 s.
"""

from collections.abc import Mapping

from gateway.runtimes.adapter import Adapter, Answers, Health, HealthState, Load, Probe, Purpose
from gateway.runtimes.attestation import Attestation, Observation, ServedModel, reported, unknown
from gateway.runtimes.exposition import count, first_named, read_samples, share, total, wanted
from gateway.runtimes.faults import read_fault
from gateway.runtimes.formats import bits, canonical, general
from gateway.runtimes.reading import (
    MODELS_PATH,
    answered,
    as_int,
    as_text,
    health_by_status,
    read_json,
    read_object,
    served_models,
    within,
)

RUNTIME = "llama.cpp"

_PROPS, _SLOTS, _METRICS, _LORA = "/props", "/slots", "/metrics", "/lora-adapters"
# 501: the server was started without that endpoint.
_OPTIONAL = frozenset({200, 404, 501})

PROBES = (
    Probe("/health", Purpose.HEALTH, expected=frozenset({200, 503})),
    Probe(_METRICS, Purpose.METRICS, expected=_OPTIONAL),
    Probe(_SLOTS, Purpose.METRICS, expected=_OPTIONAL),
    Probe(MODELS_PATH, Purpose.MODELS),
    Probe(_PROPS, Purpose.INFO),
    Probe(_LORA, Purpose.INFO, expected=_OPTIONAL),
)

_RUNNING = ("llamacpp:requests_processing",)
_WAITING = ("llamacpp:requests_deferred",)
_PROMPT = ("llamacpp:prompt_tokens_total",)
_CACHED = ("llamacpp:prompt_tokens_cached_total",)
_PATTERN = wanted((*_RUNNING, *_WAITING, *_PROMPT, *_CACHED))


def read_health(answers: Answers) -> Health:
    """503 with "Loading model" is a start, any other failure a fault."""
    answer = answers.get("/health")
    if answer is not None and answer.status == 503:
        message = read_fault(answer.body).message
        if "loading" in message.lower():
            return Health(HealthState.LOADING, message)
    return health_by_status(answer)


def read_load(answers: Answers, at: float) -> Load | None:
    """Counts from ``/metrics``, else from the slots; slots and the share of their context in use from the latter."""
    samples = read_samples(answered(answers, _METRICS) or b"", _PATTERN)
    slots = _slots(answered(answers, _SLOTS))
    busy = sum(slot.get("is_processing") is True for slot in slots) if slots else None
    running = count(total(first_named(samples, _RUNNING)))
    cached, computed = total(first_named(samples, _CACHED)), total(first_named(samples, _PROMPT))
    load = Load(
        at,
        running=running if running is not None else busy,
        waiting=count(total(first_named(samples, _WAITING))),
        kv_usage=_context_in_use(slots),
        slots=len(slots) or None,
        # The prompt counter leaves cached tokens out, so the tokens asked for are both together.
        prefix_queries=cached + computed if cached is not None and computed is not None else None,
        prefix_hits=cached,
    )
    return load if load.known else None


def attest(answers: Answers) -> Attestation:
    """The file's label checked against its size; the KV cache stays unattested."""
    body = answered(answers, MODELS_PATH)
    props = read_object(answered(answers, _PROPS))
    meta = _first_meta(body)
    models = served_models(body)
    alias = models[0].name if models else as_text(props.get("model_alias"))
    path = as_text(props.get("model_path"))
    label = as_text(meta.get("ftype")) or as_text(props.get("model_ftype"))
    measured = _bits_per_weight(meta)
    weights, notes = _weights(label, measured)
    context = as_int(meta.get("n_ctx")) or as_int(within(props, "default_generation_settings", "n_ctx"))
    lora = answered(answers, _LORA)
    return Attestation(
        RUNTIME,
        weights=weights,
        activations=unknown("llama.cpp does not report it; its quantised kernels round activations to 8 bits"),
        kv_cache=unknown("llama.cpp does not report the KV cache's type over HTTP"),
        context_length=context,
        models=models,
        adapters=_adapters(lora, alias),
        models_listed=bool(models),
        adapters_listed=lora is not None,
        version=as_text(props.get("build_info")),
        weight_bits=measured,
        device={
            name: text
            for name, text in (
                ("build", as_text(props.get("build_info"))),
                ("slots", str(props["total_slots"]) if "total_slots" in props else None),
                ("file", path.rsplit("/", 1)[-1] if path else None),
                ("tools_in_template", _tools(props)),
            )
            if text is not None
        },
        notes=notes,
    )


def _slots(body: bytes | None) -> list[dict[str, object]]:
    value = read_json(body)
    return [slot for slot in value if isinstance(slot, dict)] if isinstance(value, list) else []


def _context_in_use(slots: list[dict[str, object]]) -> float | None:
    """Tokens that running requests hold, over the context of all slots. Older servers do not tell them."""
    room, held = 0, 0
    for slot in slots:
        context, tokens = as_int(slot.get("n_ctx")), as_int(slot.get("n_prompt_tokens"))
        if context is None or (slot.get("is_processing") is True and tokens is None):
            return None
        room += context
        held += tokens or 0 if slot.get("is_processing") is True else 0
    return share(held / room) if room else None


def _first_meta(body: bytes | None) -> dict[str, object]:
    entries = within(read_object(body), "data")
    first = entries[0] if isinstance(entries, list) and entries else None
    meta = first.get("meta") if isinstance(first, dict) else None
    return meta if isinstance(meta, dict) else {}


def _bits_per_weight(meta: dict[str, object]) -> float | None:
    size, parameters = as_int(meta.get("size")), as_int(meta.get("n_params"))
    return size * 8 / parameters if size and parameters else None


def _weights(label: str | None, measured: float | None) -> tuple[Observation, tuple[str, ...]]:
    """The label, with a note where the file's size contradicts it; ``compare`` judges by the size too."""
    if label is None:
        return unknown("the server did not say"), ()
    name = canonical(label)
    observation = reported(name, "meta.ftype")
    nominal = bits(general(name))
    if nominal is None or measured is None:
        return observation, ()
    if measured < nominal * 0.95:
        return observation, (f"the file is labelled {label} but holds {measured:.1f} bits per weight",)
    if measured > nominal + 2.5:
        return observation, (f"{measured:.1f} bits per weight under the label {label}: many tensors are kept wider",)
    return observation, ()


def _adapters(body: bytes | None, base: str | None) -> tuple[ServedModel, ...]:
    entries = read_json(body)
    found = []
    for entry in entries if isinstance(entries, list) else ():
        path = as_text(entry.get("path")) if isinstance(entry, dict) else None
        if path is None:
            continue
        name = path.rsplit("/", 1)[-1].removesuffix(".gguf")
        found.append(ServedModel(name, root=path, parent=base, id=as_int(entry.get("id"))))
    return tuple(found)


def _tools(props: Mapping[str, object]) -> str | None:
    supported = within(props, "chat_template_caps", "supports_tools")
    return str(supported).lower() if isinstance(supported, bool) else None


ADAPTER = Adapter(RUNTIME, PROBES, read_health, read_load, attest, checks_names=False, load_interval_s=2.0)
