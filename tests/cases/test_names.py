"""Group 9 of the cases: model names and their listing."""

import json
from collections.abc import Callable
from urllib.parse import quote

import pytest

from tests.cases.client import call
from tests.cases.conftest import Lane
from tests.cases.gateway import Gateway, policy, pool
from tests.cases.messages import DONE, FIN, answer, c, choice, completion, event, r0, r0s, stream
from tests.cases.upstream import Upstream


def test_b83_ids_with_a_slash(gateway: Gateway) -> None:
    """Every listed id can be fetched, encoded or not; an unknown one is 404 model_not_found."""
    listed = [entry["id"] for entry in call(gateway.port, method="GET", path="/v1/models").json["data"]]
    assert "org/name:q4" in listed
    for name in ("org/name:q4", *listed[:3]):
        for spelled in (name, quote(name, safe="")):
            reply = call(gateway.port, method="GET", path=f"/v1/models/{spelled}")
            assert reply.status == 200, spelled
            assert reply.json["id"] == name
            assert reply.json["object"] == "model"
    for unknown in ("nobody", "org%2Fnobody", "org/name:q4/x", "%FF%00"):
        reply = call(gateway.port, method="GET", path=f"/v1/models/{unknown}")
        assert (reply.status, reply.error["code"]) == (404, "model_not_found")


def test_b83_alias_with_a_slash_serves(gateway: Gateway) -> None:
    """Such a name works in requests too."""
    assert call(gateway.port, r0("org/name:q4")).status == 200


def test_b84_model_name_of_the_answer(upstream: Upstream, start_gateway: Callable[..., Gateway]) -> None:
    """The pool's own name of the model is passed, in every chunk alike; an adapter is asked for by the pool's name."""
    endpoint = upstream.endpoint()
    models = {"base": {"adapters": {"lora-a": {"validated_on": "any"}}, "tokenizer": {"bytes": True}}}
    pools = {"p": pool("base", endpoint.url, upstream_model="served-base", adapters={"lora-a": "served-lora"})}
    gateway = start_gateway(policy(models, pools, [{"name": "all", "pools": ["p"]}]))
    for asked, served in (("lora-a", "served-lora"), ("base:lora-a", "served-lora"), ("base", "served-base")):
        chunks = [event({**choice({"content": text}), "model": "base"}) for text in ("x", "y")]
        endpoint.play(stream(*chunks, DONE), answer(completion(model="base")))
        payloads = call(gateway.port, r0s(asked)).payloads()
        assert {json.loads(payload)["model"] for payload in payloads[:2]} == {"base"}
        assert call(gateway.port, r0(asked)).json["model"] == "base"
        assert [received.json["model"] for received in endpoint.received[-2:]] == [served, served]


@pytest.mark.parametrize(
    ("name", "status", "code"),
    [
        ("up", 404, "model_not_found"),
        ("plain-1-a", 404, "model_not_found"),
        ("lane", 404, "model_not_found"),
        ("", 400, "missing_model"),
    ],
)
def test_b84_pool_names_are_no_model_names(gateway: Gateway, name: str, status: int, code: str) -> None:
    """Names of pools and the pools' own names of models are not for clients; no name is none."""
    reply = call(gateway.port, r0(name))
    assert (reply.status, reply.error["code"]) == (status, code)


def test_b86_listing_does_not_depend_on_pools(lane: Lane) -> None:
    """/v1/models answers from the policy: dead and hanging pools neither spoil nor delay it."""
    lane.first.refuse()
    lane.second.silent = True
    reply = lane.request(None, method="GET", path="/v1/models")
    assert reply.status == 200
    assert lane.model in [entry["id"] for entry in reply.json["data"]]


def test_b86_one_dead_endpoint_of_two(lane: Lane) -> None:
    """Requests go to the endpoint that lives."""
    lane.first.refuse()
    lane.second.play(stream(c("x"), FIN, DONE))
    assert lane.request(r0s(lane.model)).body == c("x") + FIN + DONE
