"""References to secrets. What is refused is never repeated, for it may be the secret; the mend goes by its form.

Pure; called by pydantic.
"""

import re
from typing import Annotated

from pydantic import BeforeValidator, WithJsonSchema

from gateway.policy.schema.values import refuse

_SECRET = re.compile(r"env:[A-Za-z_][A-Za-z0-9_]*|file:[^\x00-\x1f]+")
_DIGEST = re.compile(r"sha256:[0-9a-fA-F]{64}")
_HEX = re.compile(r"[0-9a-fA-F]{64}")
_REFERENCE = "refer to it as env:NAME or file:PATH"
_KEY = "refer to it as env:NAME, file:PATH, or sha256:<hex of the key>"


def _reference(value: object) -> str:
    if isinstance(value, str) and _SECRET.fullmatch(value):
        return value
    _refuse_likely(value)
    if isinstance(value, str) and value.lower().startswith("sha256"):
        refuse("a digest is not enough, the gateway needs the secret itself", _REFERENCE)
    return refuse("a secret is never written into a policy", _REFERENCE)


def _key_reference(value: object) -> str:
    if isinstance(value, str) and _DIGEST.fullmatch(value):
        return value.lower()
    if isinstance(value, str) and _SECRET.fullmatch(value):
        return value
    _refuse_likely(value)
    if isinstance(value, str) and value.lower().startswith("sha256"):
        refuse("a digest is sha256: and 64 hex digits", 'printf %s "$KEY" | sha256sum tells them')
    if isinstance(value, str) and _HEX.fullmatch(value):
        refuse("a key or its digest, and nobody can tell which", f"put sha256: before a digest; of a key, {_KEY}")
    return refuse("an API key is never written into a policy", _KEY)


def _refuse_likely(value: object) -> None:
    """What was meant as a reference and is none."""
    if value is None:
        refuse("there is nothing here", _REFERENCE)
    if isinstance(value, dict) and len(value) == 1:
        refuse("a reference is one word, and no mapping", 'write it without a space: "env:NAME"')
    if not isinstance(value, str):
        return
    kind = value.strip().strip("\"'“”").lower()
    if kind.startswith("env:"):
        refuse(
            "a reference is env: and a variable's name: letters, digits and _",
            "write env:NAME, without spaces or curly quotes",
        )
    if kind.startswith("file:"):
        refuse("a reference is file: and a path", "write file:PATH, in small letters and one line")
    if kind.startswith("$"):
        refuse("no variables are filled in here", "write env:NAME in place of ${NAME}")


def _schema(description: str, kinds: str) -> WithJsonSchema:
    return WithJsonSchema({"type": "string", "description": description, "pattern": f"^({kinds}):.+$"})


SecretReference = Annotated[str, BeforeValidator(_reference), _schema("env:NAME or file:PATH", "env|file")]
KeyReference = Annotated[
    str, BeforeValidator(_key_reference), _schema("env:NAME, file:PATH or sha256:<hex>", "env|file|sha256")
]
