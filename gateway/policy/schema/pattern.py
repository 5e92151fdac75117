"""RE2 patterns: checked when a policy is read, so that compiling them later cannot fail.

Linear in the text whatever the pattern, which is why people may write their own. Pure; called by pydantic and by
whatever compiles patterns.
"""

from typing import Annotated

import re2
from pydantic import AfterValidator

from gateway.policy.schema.values import refuse


def quiet_options() -> re2.Options:
    """RE2 options of every pattern in a policy: UTF-8, linear time, errors as values and not on stderr."""
    options = re2.Options()
    options.log_errors = False
    options.max_mem = 64 << 20
    return options


_NOTHING_IN_COMMON = ("", "\x01")


def _pattern(value: str) -> str:
    if len(value) > 2000:
        refuse("the pattern is longer than 2000 characters", "split it into several")
    try:
        compiled = re2.compile(value, quiet_options())
    except re2.error as error:
        reason = error.args[0].decode("utf-8", "replace") if isinstance(error.args[0], bytes) else str(error.args[0])
        refuse(f"not a valid RE2 pattern: {reason}", "RE2 has no look-around and no back-references")
    except UnicodeError:
        refuse("the pattern is not valid text")
    if all(compiled.search(text) for text in _NOTHING_IN_COMMON):
        refuse("the pattern matches every text", "write what must be in the text; .+ is any text but none")
    return value


Pattern = Annotated[str, AfterValidator(_pattern)]
