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


def test_an_error_of_being_cancelled_is_not_the_reason() -> None:
    """A part that answers a signal with its own error does not hide that a signal came."""

    async def main() -> None:
        asyncio.get_running_loop().call_soon(send, signal.SIGINT)
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            raise RuntimeError("the connection is gone") from None

    with pytest.raises(Interrupted), Interrupts() as interrupts:
        interrupts.run(main())


def test_a_signal_as_the_loop_ends_is_not_lost() -> None:
    """When there is nothing left to cancel it still ends the demo."""

    async def main() -> None:
        asyncio.get_running_loop().call_soon(send, signal.SIGINT)
        await asyncio.sleep(0)

    with pytest.raises(Interrupted), Interrupts() as interrupts:
        interrupts.run(main())


@pytest.mark.parametrize("number", SIGNALS)
def test_waiting_ends_with_a_signal(number: int) -> None:
    """The look during which it comes is not cut in two, no other follows, and a second signal changes nothing."""
    looks = []

    def look() -> None:
        looks.append("begun")
        send(number)
        looks.append("ended")

    with Interrupts() as interrupts:
        interrupts.wait(look, 0.0)
        send(number)
    assert looks == ["begun", "ended"]


def test_waiting_ends_with_what_the_look_finds() -> None:
    """A gateway that is gone is told, instead of waiting for ever; what follows is the stopping."""

    def look() -> None:
        raise ValueError("the gateway ended with status 1")

    with Interrupts() as interrupts:
        with pytest.raises(ValueError, match="status 1"):
            interrupts.wait(look, 0.0)
        send(signal.SIGINT)


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
