"""A request's attempts as stored."""

from gateway.core.attempted import attempts_of, has_several, lost_s

ONE = '[["bf16","bf16/0",200,"",0.25,1.0]]'
TWO = '[["int4","int4/0",503,"status_5xx",0.25,1.0],["bf16","bf16/0",200,"",1.75,1.0]]'


def test_what_came_before_the_last_attempt_is_lost() -> None:
    """The wait for room before the first is not: it is nobody's failure."""
    assert [lost_s(attempts_of(text)) for text in ("[]", ONE, TWO)] == [0.0, 0.0, 1.5]


def test_several_are_known_without_reading_them() -> None:
    """Nearly all requests have one."""
    assert [has_several(text) for text in ("[]", ONE, TWO)] == [False, False, True]
