"""Keys become callers by their digest only; unknown keys are refused unless the policy admits anyone."""

from hashlib import sha256

import pytest

from gateway.dataplane.identity import Keyring
from gateway.errors import ApiError
from gateway.model.table import Limits, Tenant
from tests.unit.dataplane.parts import table_of

ACME, BETA = Tenant("acme", "gold", limits=Limits(inflight=3), slot=1), Tenant("beta", slot=2)


def keyring(anonymous: Tenant | None = None) -> Keyring:
    keys = {sha256(b"sk-acme").digest(): "acme", sha256(b"sk-beta").digest(): "beta"}
    return Keyring(table_of((), tenants={"acme": ACME, "beta": BETA}, keys=keys, anonymous=anonymous))


@pytest.mark.parametrize(
    "fields",
    [
        {b"authorization": b"Bearer sk-acme"},
        {b"authorization": b"bearer  sk-acme "},
        {b"x-api-key": b"sk-acme"},
        {b"api-key": b" sk-acme"},
        {b"authorization": b"Basic Zm9v", b"x-api-key": b"sk-acme"},
    ],
)
def test_the_spellings_of_sdks(fields: dict[bytes, bytes]) -> None:
    """OpenAI's, Anthropic's and Azure's header all carry the key."""
    assert keyring().identify(fields).tenant is ACME


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({}, "missing_api_key"),
        ({b"authorization": b"Bearer "}, "missing_api_key"),
        ({b"authorization": b"Bearer sk-other"}, "invalid_api_key"),
        ({b"x-api-key": sha256(b"sk-acme").digest()}, "invalid_api_key"),
    ],
)
def test_refusals_say_what_is_wrong(fields: dict[bytes, bytes], code: str) -> None:
    """401 with a challenge; a digest is not a key."""
    with pytest.raises(ApiError) as refused:
        keyring().identify(fields)
    assert (refused.value.status, refused.value.code) == (401, code)
    assert ("WWW-Authenticate", "Bearer") in refused.value.headers


def test_anonymous_callers_only_if_the_policy_says_so() -> None:
    """Where they are admitted, a key that nobody knows is anonymous too, and a known one is not."""
    ring = keyring(Tenant("anonymous"))
    assert ring.identify({}).tenant.name == "anonymous"
    assert ring.identify({b"authorization": b"Bearer placeholder"}).tenant.name == "anonymous"
    assert ring.identify({b"authorization": b"Bearer sk-beta"}).tenant is BETA


def test_conversations_of_tenants_do_not_meet() -> None:
    """The same session name under two tenants gives two keys; under one tenant always the same."""
    ring = keyring()
    acme, beta = ring.identify({b"x-api-key": b"sk-acme"}), ring.identify({b"x-api-key": b"sk-beta"})
    digest = b"0123456789abcdef"
    assert acme.conversation(digest) != beta.conversation(digest)
    assert acme.conversation(digest) == acme.conversation(digest)
    assert acme.conversation(b"") == b""
    assert (acme.limited, beta.limited) == (True, False)
