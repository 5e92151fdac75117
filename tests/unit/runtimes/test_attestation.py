"""Observations carry how they are known, and an attestation names what it lacks."""

from gateway.runtimes.attestation import Attestation, Confidence, ServedModel, inferred, reported, unknown


def test_observations() -> None:
    """Reported and inferred are known, unknown is not and keeps its reason."""
    assert reported("bf16", "dtype").known
    assert inferred("int4", "name").known
    nothing = unknown("not asked")
    assert (nothing.known, nothing.value, nothing.source) == (False, "", "not asked")
    assert {c.value for c in Confidence} == {"reported", "inferred", "unknown"}


def test_unattested_parts_are_named() -> None:
    """Each part of the precision without an observation is named, in order."""
    assert Attestation("x").unattested == ("weights", "activations", "kv_cache")
    assert Attestation("x", weights=inferred("int4", "name")).unattested == ("activations", "kv_cache")


def test_a_model_answers_to_its_aliases() -> None:
    """All names of a model count."""
    assert ServedModel("m", aliases=("a", "b")).names == ("m", "a", "b")
