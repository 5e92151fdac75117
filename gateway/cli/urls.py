"""URLs that somebody typed on a command line: taken apart, or known for none before anything is sent.

Owns what counts as one. The words about one that is none are the caller's. Called by ``admin_port`` and ``replay``.
"""

import re
from urllib.parse import SplitResult, urlsplit

_NEVER = re.compile(r"[\s\x00-\x1f\x7f]")


def http_url(text: str) -> SplitResult | None:
    """The parts of an http or https URL with a host; None for anything else. Its port can be read without an error."""
    try:
        parts = urlsplit(text)
        reachable = parts.scheme in ("http", "https") and bool(parts.hostname) and parts.port != 0
    except ValueError:  # a port that is no number or out of range, a bracket left open
        return None
    return parts if reachable and not _NEVER.search(text) else None
