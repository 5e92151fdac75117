"""A signal ends what runs at once, and never disturbs the stopping."""

import asyncio
import os
import signal

import pytest

from gateway.demo.interrupt import SIGNALS, Interrupted, Interrupts


def send(number: int) -> None:
    """A signal to this process, handled before the next line."""
    os.kill(os.getpid(), number)


@pytest.mark.parametrize("number", SIGNALS)
def test_outside_a_loop_it_is_raised(number: int) -> None:
    """Ctrl-C, a request to end and a closed terminal all end the block, and tell which they were."""
    with pytest.raises(Interrupted) as caught, Interrupts():
        send(number)
    assert caught.value.number == number


@pytest.mark.parametrize("number", SIGNALS)
def test_in_a_loop_the_main_task_is_cancelled(number: int) -> None:
    """What awaits is cancelled and cleans up; then it is the same exception."""
    cleaned = []

    async def main() -> None:
        asyncio.get_running_loop().call_later(0.01, send, number)
        try:
            await asyncio.sleep(60)
        finally:
            cleaned.append(True)

    with pytest.raises(Interrupted) as caught, Interrupts() as interrupts:
        interrupts.run(main())
    assert caught.value.number == number
    assert cleaned == [True]


def test_a_result_comes_back() -> None:
    """Without a signal it is ``asyncio.run``; afterwards signals are raised again."""

    async def main() -> int:
        return 7

    with Interrupts() as interrupts:
        assert interrupts.run(main()) == 7
        with pytest.raises(Interrupted):
            send(signal.SIGTERM)


def test_while_stopping_signals_change_nothing() -> None:
    """A second Ctrl-C does not leave half of the processes behind."""
    with Interrupts() as interrupts:
        interrupts.hold()
        for number in SIGNALS:
            send(number)


def test_the_handlers_before_come_back() -> None:
    """After the block signals are whatever they were."""
    before = [signal.getsignal(number) for number in SIGNALS]
    with Interrupts():
        assert [signal.getsignal(number) for number in SIGNALS] != before
    assert [signal.getsignal(number) for number in SIGNALS] == before
