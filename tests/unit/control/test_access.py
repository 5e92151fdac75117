"""Tokens and roles of the admin API's changing calls."""

import hashlib

import pytest

from gateway.control.access import Access, Role
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
