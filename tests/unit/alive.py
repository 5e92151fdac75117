"""Objects that exist, for tests of what must go without the collector."""

import gc


def alive(*kinds: type) -> int:
    """How many of these kinds there are now. What earlier tests left behind is among them: compare two counts."""
    return sum(isinstance(found, kinds) for found in gc.get_objects())
