"""Places by path."""

import subprocess
import sys

from gateway.policy.tree import Place, Tree, dotted

FILE, ROUTES, NAME = (Place("p.yaml", line, 1) for line in (1, 4, 5))
TREE = Tree({}, {(): FILE, ("routes",): ROUTES, ("routes", 0, "name"): NAME}, {})


def test_what_has_no_place_of_its_own_has_that_of_what_is_around_it() -> None:
    """A key that is missing is told where it should stand."""
    assert TREE.place(("routes", 0, "name")) == NAME
    assert TREE.place(("routes", 0, "pools")) == ROUTES
    assert TREE.place(("models",)) == FILE
    assert Tree({}, {}, {}).place(("models",)) == Place("policy", 1, 1)


def test_a_path_is_written_as_people_write_it() -> None:
    """With dots for keys and brackets for places in a list."""
    assert dotted(("routes", 2, "when", "model")) == "routes[2].when.model"
    assert dotted(()) == "policy"


def test_a_finding_stands_at_its_place() -> None:
    """In the file's words, with the mend."""
    assert str(NAME.finding("no name", "give one")) == "p.yaml:5:1: error: no name (give one)"


def test_a_worker_loads_no_reader_of_yaml() -> None:
    """It compiles what control has read."""
    look = "import sys, gateway.app.worker_main; sys.exit('yaml' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", look], check=False).returncode == 0
