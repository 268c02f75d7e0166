"""Tools for the tests of your own evaluators and backends, and of code that uses them; no model is needed.

    from debate import Task, ValueEvaluator
    from debate.testing import check_evaluator, drive, reply_for

    def test_my_evaluator_keeps_the_contract():
        check_evaluator(MyEvaluator(), [Task("What is 2 + 2?", ["4", "5"])])

`drive` sends a flow what it asks for, by hand; `reply_for` writes a well-formed reply to any call; `Recorder` keeps the
calls that a reply function was given. `check_evaluator` and `check_backend` check what the engine relies on.
`FakeServer` is a chat server on this machine that answers, or misbehaves as it is told. `DictJournal` records a task's
answers in memory, and `SilentListener` is told of a run's progress and says nothing.
"""

from debate.testing.checks import check_backend, check_evaluator
from debate.testing.fake_server import FakeServer
from debate.testing.flows import DictJournal, Recorder, SilentListener, drive, reply_for

__all__ = [
    "DictJournal",
    "FakeServer",
    "Recorder",
    "SilentListener",
    "check_backend",
    "check_evaluator",
    "drive",
    "reply_for",
]
