"""Tokens and roles of the admin API."""

import hashlib

import pytest
from aiohttp import web
from aiohttp.test_utils import TestClient, TestServer

from gateway.control.access import Access, Role, reading_guard
from gateway.errors import ApiError
from gateway.model.proving import Operator


def access(*people: tuple[str, str, str]) -> Access:
    made = Access()
    made.configure([Operator(name, hashlib.sha256(token.encode()).digest(), role) for name, token, role in people])
    return made


def refused(made: Access, header: str | None, role: Role = Role.OPERATOR) -> tuple[int, str]:
    with pytest.raises(ApiError) as caught:
        made.require(header, role)
    return caught.value.status, caught.value.code


def test_a_token_names_its_person_and_roles_include_the_lower_ones() -> None:
    """An approver may do what an operator may, not the other way round."""
    made = access(("ann", "a-token", "approver"), ("bob", "b-token", "operator"), ("eve", "e-token", "viewer"))
    assert made.require("Bearer a-token", Role.APPROVER) == "ann"
    assert made.require("bearer  a-token ", Role.OPERATOR) == "ann"
    assert made.require("Bearer b-token", Role.OPERATOR) == "bob"
    assert refused(made, "Bearer b-token", Role.APPROVER) == (403, "role_too_low")
    assert refused(made, "Bearer e-token") == (403, "role_too_low")


@pytest.mark.parametrize("header", [None, "", "Bearer", "Bearer  ", "Basic a-token", "a-token"])
def test_without_a_bearer_token_nothing_is_done(header: str | None) -> None:
    """And the answer says how to send one."""
    assert refused(access(("ann", "a-token", "approver")), header) == (401, "missing_token")


def test_unknown_tokens_and_policies_without_operators_are_refused() -> None:
    """Nothing can be changed from outside by default."""
    assert refused(access(("ann", "a-token", "approver")), "Bearer other") == (401, "unknown_token")
    assert refused(Access(), "Bearer a-token") == (403, "no_operators")


@pytest.mark.parametrize(
    ("header", "paths"),
    [
        (None, {"/metrics": 200, "/readyz": 200, "/api/v1/records": 401, "/api/v1/rollouts": 401}),
        ("Bearer other", {"/readyz": 200, "/api/v1/records": 401, "/api/v1/samples/x": 401, "/api/v1/nowhere": 401}),
        ("Bearer e-token", {"/metrics": 200, "/api/v1/records": 200, "/api/v1/nowhere": 404}),
    ],
)
async def test_with_operators_only_they_read_what_is_recorded(header: str | None, paths: dict[str, int]) -> None:
    """Any role reads; what orchestrators and Prometheus ask for stays open; refusals have the API's shape."""
    made = access(("eve", "e-token", "viewer"))
    async with served(made) as client:
        for path, status in paths.items():
            answer = await client.get(path, headers={"Authorization": header} if header else {})
            assert answer.status == status, path
            if status == 401:
                assert (await answer.json())["error"]["code"] in ("missing_token", "unknown_token")
        assert (await client.get("/api/v1/records")).headers["WWW-Authenticate"] == "Bearer"
        assert (await client.post("/api/v1/command")).status == 200  # commands ask for their own roles


async def test_without_operators_reading_is_open() -> None:
    """As long as the policy names nobody, the address alone protects it."""
    async with served(Access()) as client:
        assert (await client.get("/api/v1/records")).status == 200


def served(made: Access) -> TestClient[web.Request, web.Application]:
    async def answer(_: web.Request) -> web.Response:
        return web.Response()

    application = web.Application(middlewares=[reading_guard(made)])
    for path in ("/metrics", "/readyz", "/api/v1/records", "/api/v1/rollouts", "/api/v1/samples/x"):
        application.router.add_get(path, answer)
    application.router.add_post("/api/v1/command", answer)
    return TestClient(TestServer(application))
