"""The list of models is the policy's, and only what the caller may use."""

import orjson
import pytest

from gateway.dataplane.models import listing, one
from gateway.errors import ApiError
from gateway.model.table import Classifier, Model, Settings, Table, Tenant

TABLE = Table(
    generation=1,
    digest="",
    models={"org/name:q4": Model("org/name:q4"), "big": Model("big", context_window=8192)},
    pools={},
    tenants={},
    keys={},
    anonymous=None,
    names={
        "org/name:q4": ("org/name:q4", None),
        "gpt-4o": ("big", None),
        "big": ("big", None),
        "legal": ("big", "legal"),
    },
    classifier=Classifier(
        lengths=(),
        over="any",
        tasks=(),
        default_task="chat",
        hint_tasks=frozenset(),
        user_patterns=None,
        system_patterns=None,
        privilege=lambda tool, tenant: "none",
        bucket_by=(),
        bucket_most=1,
    ),
    constraints=(),
    routes=(),
    settings=Settings(),
)


def test_aliases_and_adapters_are_entries_of_their_own() -> None:
    """Each name a client may use is listed, with what it stands for."""
    listed = {entry["id"]: entry for entry in orjson.loads(listing(TABLE, Tenant("t")))["data"]}
    assert set(listed) == set(TABLE.names)
    assert listed["gpt-4o"]["root"] == "big"
    assert listed["legal"]["parent"] == "big"
    assert listed["big"]["max_model_len"] == 8192


def test_a_tenant_sees_its_own_models_only() -> None:
    """What a tenant may not use does not exist for it."""
    tenant = Tenant("t", models=frozenset({"org/name:q4"}))
    assert [entry["id"] for entry in orjson.loads(listing(TABLE, tenant))["data"]] == ["org/name:q4"]
    with pytest.raises(ApiError) as refused:
        one(TABLE, tenant, "big")
    assert (refused.value.status, refused.value.code) == (404, "model_not_found")


@pytest.mark.parametrize(("listed", "ids"), [("gpt-4o", ["big", "gpt-4o"]), ("legal", ["legal"])])
def test_a_tenant_limited_by_an_alias_or_an_adapter_sees_what_it_may_ask_for(listed: str, ids: list[str]) -> None:
    """The list and what requests are held against are the same."""
    tenant = Tenant("t", models=frozenset({listed}))
    assert [entry["id"] for entry in orjson.loads(listing(TABLE, tenant))["data"]] == ids
    assert orjson.loads(one(TABLE, tenant, listed))["id"] == listed


@pytest.mark.parametrize("spelling", ["org/name:q4", "org%2Fname%3Aq4"])
def test_b83_ids_with_a_slash_can_be_fetched_in_both_spellings(spelling: str) -> None:
    """Every listed id can be fetched."""
    assert orjson.loads(one(TABLE, Tenant("t"), spelling))["id"] == "org/name:q4"
