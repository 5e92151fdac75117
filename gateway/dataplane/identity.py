"""Who calls: an API key → tenant, by its SHA-256. Never by anything else that a client says.

The table holds digests only. Look-up goes by the first bytes of the digest, which tells nothing about a stored key,
and the comparison that decides takes constant time.
"""

from collections.abc import Mapping
from hashlib import blake2b, sha256
from hmac import compare_digest
from typing import Final

from gateway.errors import ApiError
from gateway.model.facts import Principal
from gateway.model.table import Limits, Table, Tenant

PREFIX_BYTES: Final = 4
CONVERSATION_BYTES: Final = 16
_CHALLENGE = (("WWW-Authenticate", "Bearer"),)
_number: Final = int.from_bytes


class Caller:
    """A tenant and what the classifier may know of it, made once per generation."""

    __slots__ = ("_salt", "limited", "principal", "tenant")

    def __init__(self, tenant: Tenant) -> None:
        self.tenant = tenant
        self.limited = tenant.slot >= 0 and tenant.limits != Limits()
        self.principal = Principal(tenant.name, tenant.tier, tenant.grants, tenant.slot, tenant.trusted)
        self._salt = int.from_bytes(blake2b(tenant.name.encode(), digest_size=CONVERSATION_BYTES).digest(), "big")

    def conversation(self, digest: bytes) -> bytes:
        """The conversation's key: two tenants that name a session alike do not share its place."""
        if len(digest) != CONVERSATION_BYTES:
            return digest
        return (_number(digest, "big") ^ self._salt).to_bytes(CONVERSATION_BYTES, "big")


class Keyring:
    """The callers of one generation."""

    __slots__ = ("_anonymous", "_by_prefix")

    def __init__(self, table: Table) -> None:
        callers = {name: Caller(tenant) for name, tenant in table.tenants.items()}
        self._anonymous = Caller(table.anonymous) if table.anonymous else None
        self._by_prefix: dict[bytes, list[tuple[bytes, Caller]]] = {}
        for digest, name in table.keys.items():
            self._by_prefix.setdefault(digest[:PREFIX_BYTES], []).append((digest, callers[name]))

    def identify(self, fields: Mapping[bytes, bytes]) -> Caller:
        """The caller of a request; 401 without a known key, unless the policy admits anonymous callers.

        Where it does, an unknown key is anonymous too: SDKs insist on sending some key.
        """
        key = _key(fields)
        if key is not None:
            digest = sha256(key).digest()
            for known, caller in self._by_prefix.get(digest[:PREFIX_BYTES], ()):
                if compare_digest(known, digest):
                    return caller
        if self._anonymous is not None:
            return self._anonymous
        if key is None:
            message = "No API key was given. Send it as 'Authorization: Bearer <key>'."
            raise ApiError(401, "missing_api_key", message, headers=_CHALLENGE)
        message = "The API key is not known here. Check the key and the base URL of your client."
        raise ApiError(401, "invalid_api_key", message, headers=_CHALLENGE)


def _key(fields: Mapping[bytes, bytes]) -> bytes | None:
    """The key as OpenAI's, Anthropic's or Azure's SDK sends it."""
    bearer = fields.get(b"authorization")
    if bearer is not None:
        scheme, _, rest = bearer.partition(b" ")
        if scheme.lower() == b"bearer" and rest.strip():
            return rest.strip()
    other = fields.get(b"x-api-key") or fields.get(b"api-key")
    return other.strip() or None if other is not None else None
