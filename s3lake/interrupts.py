"""Ctrl-C and SIGTERM, which end a command at any moment: a KeyboardInterrupt that cannot be lost."""

import signal
import sys
import time
from types import FrameType
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from logging import LogRecord

_AGAIN_S = 0.5
_last_s = -_AGAIN_S
_has_arrived = False
_is_over = False


def install() -> None:
    """Interrupt the main thread at Ctrl-C and SIGTERM, until it has heard it.

    Python raises KeyboardInterrupt wherever the main thread is. In a destructor, or in a package that catches all, it
    ends nothing: it is raised again until something handles it.
    """
    sys.unraisablehook = _report_unless_interrupt
    signal.signal(signal.SIGALRM, _interrupt_again)
    signal.signal(signal.SIGTERM, _interrupt)
    if signal.getsignal(signal.SIGINT) is not signal.SIG_IGN:  # a shell lets what runs behind it ignore Ctrl-C
        signal.signal(signal.SIGINT, _interrupt)
    import logging  # after the signals, because they may arrive in an import too

    if logging.lastResort is not None:  # packages log what they catch and raise again, with its trace
        logging.lastResort.addFilter(_is_not_of_interrupt)


def have_arrived() -> bool:
    """Return whether one has arrived: an error after it is one that it has caused."""
    return _has_arrived


def ignore() -> None:
    """Ignore all from now on, also one that arrives at this moment."""
    global _is_over
    _is_over = True
    signal.setitimer(signal.ITIMER_REAL, 0)
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGALRM):
        signal.signal(number, signal.SIG_IGN)


def keep_exit_code() -> None:
    """Let Python end with the exit code that it is given.

    After an interrupt in an `exec` of text, as dataclasses do it, it would end by SIGINT. The next `exec` resets that.
    """
    exec("")


def _interrupt(_number: int, _frame: FrameType | None) -> None:
    """Interrupt. Several signals at once are one: the others would end what the first one has `finally` or `except` do.

    A key that is held repeats, and a supervisor may send both. A signal that comes later interrupts that too.
    """
    global _has_arrived, _last_s
    if _is_over:
        return
    now_s = time.monotonic()
    is_at_once, _last_s = now_s - _last_s < _AGAIN_S, now_s
    if is_at_once and _is_handled():
        return
    _has_arrived = True
    signal.setitimer(signal.ITIMER_REAL, _AGAIN_S, _AGAIN_S)
    raise KeyboardInterrupt


def _interrupt_again(_number: int, _frame: FrameType | None) -> None:
    """Interrupt, unless the main thread handles an interrupt: its `finally` and `with` are not disturbed."""
    if not _is_over and not _is_handled():
        raise KeyboardInterrupt


def _is_handled() -> bool:
    """Return whether the main thread handles an interrupt."""
    error = sys.exc_info()[1]
    while error is not None and not isinstance(error, KeyboardInterrupt):
        error = error.__context__
    return error is not None


def _report_unless_interrupt(unraisable: Any) -> None:
    if unraisable.exc_type is not KeyboardInterrupt:
        sys.__unraisablehook__(unraisable)


def _is_not_of_interrupt(record: "LogRecord") -> bool:
    """Return whether a line of a log is not the trace of an interrupt."""
    return not (record.exc_info and isinstance(record.exc_info[1], KeyboardInterrupt))
