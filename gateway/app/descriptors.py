"""File descriptors of the gateway's processes: each connection of a client and each one to a pool is one.

The soft limit is 1,024 on most systems, for the sake of programs that use ``select``; none of ours does. Called once by
the command, whose children inherit it.
"""

import resource

PLENTY = 1_048_576  # some systems give a thousand million, and what sizes tables by the limit would choke on that


def raise_descriptor_limit() -> int:
    """Allow as many as the system lets this process have without privilege; how many that are."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = PLENTY if hard == resource.RLIM_INFINITY else min(hard, PLENTY)
    if soft != resource.RLIM_INFINITY and soft < wanted:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
        return wanted
    return soft
