"""placeholder"""

from gateway.errors import PolicyError
from gateway.policy.schema import Policy
from gateway.policy.tree import Tree


def check_reach(policy: Policy, tree: Tree) -> list[PolicyError]:
    """Placeholder."""
    return []
