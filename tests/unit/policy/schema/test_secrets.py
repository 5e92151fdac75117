"""References to secrets: what stands where one is wanted is never repeated, and the mend goes by what was meant."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import TypeAdapter, ValidationError

from gateway.policy.schema.secrets import KeyReference, SecretReference

DIGEST = "ab" * 32


def refusal(kind: Any, written: object) -> str:
    with pytest.raises(ValidationError) as caught:
        TypeAdapter(kind).validate_python(written)
    (detail,) = caught.value.errors()
    return f"{detail['msg']}: {detail['ctx']['mend']}"


def test_references_and_digests_are_taken() -> None:
    """A digest has one normal form."""
    assert TypeAdapter(SecretReference).validate_python("file:/run/key") == "file:/run/key"
    assert TypeAdapter(KeyReference).validate_python("env:KEY_1") == "env:KEY_1"
    assert TypeAdapter(KeyReference).validate_python(f"sha256:{DIGEST.upper()}") == f"sha256:{DIGEST}"


@pytest.mark.parametrize("kind", [SecretReference, KeyReference])
@pytest.mark.parametrize(
    ("written", "said"),
    [
        ("sk-live-123", "never written into a policy"),
        ("hunter2", "never written into a policy"),
        (12, "never written into a policy"),
        (None, "there is nothing here"),
        ("env:", "a variable's name"),
        ("env:A-B", "a variable's name"),
        ("env: AB", "without spaces"),
        ("ENV:AB", "write env:NAME"),
        ("“env:AB”", "curly quotes"),
        ({"env": "AB"}, "no mapping"),
        ("file:", "file: and a path"),
        ("${AB}", "no variables are filled in"),
    ],
)
def test_what_is_no_reference_is_refused_with_the_likely_mend(kind: Any, written: object, said: str) -> None:
    """What could be a secret does not come back in the error."""
    message = refusal(kind, written)
    assert said in message
    assert not (isinstance(written, str) and len(written) > 6 and written in message)


@pytest.mark.parametrize("written", ["sha256:12", "SHA256:" + DIGEST, "sha256-" + DIGEST, "sha512:" + DIGEST * 2])
def test_a_digest_in_another_form_is_told_its_own(written: str) -> None:
    """The digest of a key is no key, and nobody needs to hear that keys stay outside."""
    said = refusal(KeyReference, written)
    assert ("64 hex digits" in said) == written.lower().startswith("sha256")
    assert written not in said


def test_a_bare_digest_might_be_a_key() -> None:
    """So neither is assumed."""
    assert "put sha256: before a digest" in refusal(KeyReference, DIGEST)


def test_a_secret_that_must_be_sent_cannot_be_a_digest() -> None:
    """A pool's key is given to the pool."""
    assert "the gateway needs the secret itself" in refusal(SecretReference, f"sha256:{DIGEST}")


@given(st.text(max_size=30))
def test_any_text_is_read_or_refused(text: str) -> None:
    """No spelling makes the reader fail in another way."""
    for kind in (SecretReference, KeyReference):
        try:
            TypeAdapter(kind).validate_python(text)
        except ValidationError as error:
            assert error.error_count() == 1
