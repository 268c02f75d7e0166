"""Tells what ends more than the work in which it was raised from what is that work's own failure.

Code of the user's (a backend, a function, an evaluator, a display, a source of tasks) may raise anything. Whoever runs
it catches `BaseException`, lets pass what `ends_more` says, and makes a failure of the rest.
"""

from __future__ import annotations

import asyncio

from debate.errors import ENDS_A_RUN

EXITS = (KeyboardInterrupt, SystemExit)
"""What a user's code raises to end the program; it ends the batch, and reaches the caller."""


def is_being_cancelled() -> bool:
    """Whether somebody asked for the end of the present asyncio task."""
    try:
        task = asyncio.current_task()
    except RuntimeError:  # there is no event loop
        return False
    return task is not None and task.cancelling() > 0


def ends_more(error: BaseException) -> bool:
    """Whether an exception must go on to the caller: an exit, the end of a run, or a cancellation that was asked for.

    A `CancelledError` that nobody asked for, as leaks out of a client that awaits a cancelled task, is none of these.
    """
    if isinstance(error, asyncio.CancelledError):
        return is_being_cancelled()
    return isinstance(error, (*EXITS, *ENDS_A_RUN))


def is_carried(error: BaseException) -> bool:
    """Whether asyncio carries an exception from a task or thread to whoever awaits it, and takes it for nothing else.

    StopIteration fits in no future, GeneratorExit would close the coroutine that awaits, and a CancelledError that
    nobody asked for would count as the cancellation of whoever awaits.
    """
    return not isinstance(error, StopIteration) and (isinstance(error, Exception) or ends_more(error))
