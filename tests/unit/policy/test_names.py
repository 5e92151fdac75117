"""Names that clients may use."""

from typing import Any

from gateway.policy.names import claims, served_names
from gateway.policy.schema import Policy


def test_every_claim_stands_somewhere(policies: Any) -> None:
    """Each name comes with its meaning and the path where it is written."""
    policy = Policy.model_validate(policies.data())
    found = list(claims(policy))
    assert ("gpt-4o", ("qwen", None), ("models", "qwen", "aliases", 0)) in found
    assert ("gpt-4o:legal", ("qwen", "legal"), ("models", "qwen", "adapters", "legal")) in found
    assert served_names(policy) == {name: meaning for name, meaning, _ in found}
