"""Several files as one set: united, never overridden."""

from typing import Any

import yaml


def split(data: dict[str, Any], *sections: str) -> tuple[str, str]:
    first = {key: value for key, value in data.items() if key not in sections}
    second = {"version": 1, **{key: data[key] for key in sections}}
    return yaml.safe_dump(first, sort_keys=False), yaml.safe_dump(second, sort_keys=False)


def test_a_set_of_files_means_what_one_file_means(policies: Any) -> None:
    """How a policy is cut into files does not change its digest."""
    first, second = split(policies.data(), "pools", "routes", "guards")
    assert policies.text(a=first, b=second).digest == policies.load().digest


def test_lists_follow_the_order_of_the_files(policies: Any) -> None:
    """Routes of a later file stand behind those of an earlier one, and are found where they stand."""
    data = policies.data()
    extra = {"version": 1, "routes": [{"name": "more", "pools": ["gone"]}]}
    data["routes"].pop()
    (error,) = policies.refused(a=yaml.safe_dump(data), b=yaml.safe_dump(extra, sort_keys=False))
    assert (error.file, error.line) == ("b.yaml", 5)
    assert "'gone'" in error.message


def test_what_two_files_define_is_refused_with_both_places(policies: Any) -> None:
    """Neither silently wins."""
    extra = "version: 1\npools:\n  bf16: {}\nclassify:\n  lengths: {short: 1k}\n"
    found = policies.refused(a=yaml.safe_dump(policies.data()), b=extra)
    assert [(error.file, error.line, error.message) for error in found] == [
        ("b.yaml", 3, "pools.bf16 is defined twice"),
        ("b.yaml", 5, "classify.lengths is defined twice"),
    ]
    assert all("the first is in a.yaml, line" in error.mend for error in found)


def test_sections_of_different_kinds_do_not_merge(policies: Any) -> None:
    """A list where another file has a mapping is a clash."""
    (error,) = policies.refused(a=yaml.safe_dump(policies.data()), b="version: 1\npools: [a]\n")
    assert error.message == "pools is defined twice"


def test_every_file_says_its_version(policies: Any) -> None:
    """A stray YAML file in the folder is noticed; so are two versions."""
    found = policies.refused(a=yaml.safe_dump(policies.data()), b="apiVersion: v1\n")
    assert "does not say which policy language" in found[0].message
    found = policies.refused(a=yaml.safe_dump(policies.data()), b="version: 2\nrollouts: []\n")
    assert (found[0].file, found[0].message) == ("b.yaml", "version is 2 here, and 1 in a.yaml")


def test_standalone_files_stay_out_of_the_folder(policies: Any) -> None:
    """A complete policy beside the set is loaded by its own name only."""
    alone = yaml.safe_dump({**policies.data(), "standalone": True})
    loaded = policies.text(a=yaml.safe_dump(policies.data()), demo=alone)
    assert loaded.files == ("a.yaml",)
    assert policies.text(demo=alone).digest == policies.load().digest
    (error,) = policies.refused(demo=alone, other=alone)
    assert "standalone" in error.message


def test_x_keys_hold_anchors(policies: Any) -> None:
    """Top-level keys that begin with x- are for reuse and mean nothing."""
    assert policies.load(lambda data: data.update({"x-note": [1, 2]})).digest == policies.load().digest


def test_an_empty_file_in_the_set_refuses_the_set(policies: Any) -> None:
    """A half-written file is not skipped (case B91)."""
    (error,) = policies.refused(a=yaml.safe_dump(policies.data()), b="")
    assert (error.file, error.message) == ("b.yaml", "the file is empty")
