"""Whatever a user's code raises, wherever an engine is called from, however a program ends: nothing hangs or is lost.

Every scene runs in a process of its own under a watchdog.
"""

from __future__ import annotations

import json
import textwrap
from typing import Any

import pytest

from tests.processes import Ended, watched
from tests.raising import EXITS, FAULTS, RAISED

IMPORTS = """
import asyncio, os, signal, sys, threading, time, warnings
from debate import CallbackEvaluator, Engine, Scale, Task
from debate.backends import Scripted
from debate.errors import EngineError
from debate.testing import reply_for
from tests.small_flows import Startable, asks, debates, tasks
warnings.filterwarnings("ignore", "This process .* is multi-threaded")  # forking is what some scenes are about
"""


def played(scene: str, **options: Any) -> Ended:
    return watched(IMPORTS + textwrap.dedent(scene), **options)


def said(scene: str, **options: Any) -> list[str]:
    """The lines that a scene prints, which must end well."""
    ended = played(scene, **options)
    assert (ended.code, ended.err) == (0, "")
    return ended.out.splitlines()


# ---- whatever is raised


@pytest.fixture(scope="module")
def outcomes() -> list[dict[str, Any]]:
    """Every exception in every place, in batches with a store and in streams without one."""
    ended = watched("from tests.raising import main; main()", seconds=180)
    assert ended.code == 0, ended.err
    return [json.loads(line) for line in ended.out.splitlines()]


@pytest.mark.parametrize("error", FAULTS)
def test_what_a_users_code_raises_fails_the_task_that_meets_it_and_no_other(
    outcomes: list[dict[str, Any]], error: str
) -> None:
    found = [each for each in outcomes if each["error"] == error]
    assert len(found) == 28
    for each in found:
        assert each["reached"] is None, each
        assert [name for name, status in sorted(each["statuses"].items()) if status == "ok"] == [
            f"t{n}" for n in range(5) if n != int(RAISED[1:])
        ], each
        assert error in each["errors"][RAISED], each
        assert each["after"] == "ok", each


@pytest.mark.parametrize("error", EXITS)
def test_an_exit_in_a_users_code_reaches_the_caller_and_the_engine_goes_on(
    outcomes: list[dict[str, Any]], error: str
) -> None:
    found = [each for each in outcomes if each["error"] == error]
    assert len(found) == 28
    for each in found:
        assert (each["reached"], each["after"]) == (error, "ok"), each
        assert set(each["statuses"].values()) <= {"ok"}, each


def test_what_was_finished_before_an_exit_was_yielded_and_is_recorded() -> None:
    scene = """
    import tempfile

    def script(call):
        asked.append(call.info["task_id"])
        if call.info["task_id"] == "t5" and len(asked) == 6:
            sys.exit(7)
        return "1"

    asked, found = [], []
    folder = tempfile.TemporaryDirectory()
    with folder, Engine(Scripted(script), store=f"{folder.name}/s", max_concurrency=1) as engine:
        try:
            for evaluation in engine.iter_evaluate(tasks(9), asks(1), run="one"):
                found.append(evaluation.task_id)
        except SystemExit as error:
            print("exit", error.code, *found)
        print(len(engine.evaluate_batch(tasks(9), asks(1), run="one")), *asked)
    """
    first, second = said(scene)
    assert first == "exit 7 t0 t1 t2 t3 t4"
    assert second == "9 " + " ".join(f"t{n}" for n in (0, 1, 2, 3, 4, 5, 5, 6, 7, 8))


def test_a_display_that_raises_is_logged_once_and_changes_no_result() -> None:
    scene = """
    import logging
    from tests.small_flows import plain

    class Odd(BaseException): ...

    def display(call, completion):
        shown.append(call)
        raise error

    class Count(logging.Handler):
        def emit(self, record):
            print(record.getMessage())

    logging.getLogger("debate").addHandler(Count())
    logging.getLogger("debate").propagate = False
    with Engine(Scripted(reply_for)) as engine:
        expected = [plain(evaluation) for evaluation in engine.evaluate_batch(tasks(3), debates())]
    for error in (ValueError, StopIteration, GeneratorExit, asyncio.CancelledError, Odd, KeyboardInterrupt, SystemExit):
        shown = []
        with Engine(Scripted(reply_for), on_completion=display) as engine:
            try:
                found = [plain(evaluation) for evaluation in engine.evaluate_batch(tasks(3), debates())]
                print(error.__name__, found == expected, len(shown))
            except (KeyboardInterrupt, SystemExit) as reached:
                print(error.__name__, type(reached).__name__)
    """
    logged = "a display raised; no result is changed"
    faults = [
        [logged, f"{name} True 12"]
        for name in ("ValueError", "StopIteration", "GeneratorExit", "CancelledError", "Odd")
    ]
    exits = [f"{name} {name}" for name in ("KeyboardInterrupt", "SystemExit")]
    assert said(scene) == [line for pair in faults for line in pair] + exits


def test_what_a_source_of_tasks_raises_reaches_the_caller() -> None:
    scene = """
    class Odd(BaseException): ...

    def source(error):
        yield from tasks(3)
        while len(found) < 3:
            time.sleep(0.001)
        raise error

    with Engine(Scripted(reply_for)) as engine:
        faults = (ValueError, StopIteration, GeneratorExit, asyncio.CancelledError, Odd)
        for error in (*faults, KeyboardInterrupt, SystemExit):
            found = []
            try:
                for evaluation in engine.iter_evaluate(source(error), asks(1)):
                    found.append(evaluation.status)
            except BaseException as reached:
                print(error.__name__, type(reached).__name__, *found)
    """
    reached = {line.split()[0]: line.split()[1:] for line in said(scene)}
    assert {name: names[0] for name, names in reached.items()} == {
        "ValueError": "ValueError",
        "StopIteration": "RuntimeError",
        "GeneratorExit": "RuntimeError",
        "CancelledError": "RuntimeError",
        "Odd": "RuntimeError",
        "KeyboardInterrupt": "KeyboardInterrupt",
        "SystemExit": "SystemExit",
    }
    assert all(names[1:] == ["ok"] * 3 for names in reached.values())


def test_an_exit_in_a_task_that_a_script_began_ends_no_later_call() -> None:
    scene = """
    async def exits():
        raise SystemExit(7)

    async def script(call):
        await asyncio.create_task(exits())
        return "1"

    with Engine(Scripted(script)) as engine:
        for _ in range(2):
            try:
                engine.evaluate(tasks(1)[0], asks(1))
            except SystemExit as error:
                print(error.code)
    """
    assert said(scene) == ["7", "7"]


def test_when_the_backend_dies_a_source_that_blocks_holds_up_nobody() -> None:
    scene = """
    from debate.errors import BackendUnavailableError

    blocked = threading.Event()

    async def script(call):
        while not blocked.is_set():
            await asyncio.sleep(0.01)
        await asyncio.sleep(0.1)
        raise BackendUnavailableError("gone")

    def source():
        yield from tasks(2)
        blocked.set()
        threading.Event().wait()

    with Engine(Scripted(script)) as engine:
        try:
            for evaluation in engine.iter_evaluate(source(), asks(1)):
                print(evaluation.status)
        except BackendUnavailableError as error:
            print(error)
    """
    assert said(scene) == ["failed", "failed", "gone"]


# ---- the process ends

UNFINISHED = "it = engine.iter_evaluate(tasks(1000), debates()); print(next(it).status)"


@pytest.mark.parametrize(
    ("scene", "code", "last"),
    [
        (f"engine = Engine(Scripted(reply_for)); {UNFINISHED}", 0, ""),
        (f"with Engine(Scripted(reply_for)) as engine:\n    {UNFINISHED}", 0, ""),
        (f"engine = Engine(Scripted(reply_for)); {UNFINISHED}\nraise ValueError('mine')", 1, "ValueError: mine"),
        (f"engine = Engine(Scripted(reply_for)); {UNFINISHED}\nsys.exit(3)", 3, ""),
        (
            "def main():\n"
            "    with Engine(Scripted(reply_for)) as engine:\n"
            "        for evaluation in engine.iter_evaluate(tasks(1000), debates()):\n"
            "            print(evaluation.status); raise ValueError('mine')\n"
            "main()",
            1,
            "ValueError: mine",
        ),
        (
            "def main():\n"
            "    engine = Engine(Scripted(reply_for))\n"
            "    for evaluation in engine.iter_evaluate(tasks(1000), debates()):\n"
            "        print(evaluation.status); sys.exit('mine')\n"
            "main()",
            1,
            "mine",
        ),
    ],
    ids=["end of file", "after with", "exception", "exit", "exception in a function", "exit in a loop"],
)
def test_an_unfinished_stream_does_not_hold_up_the_end_of_the_process(scene: str, code: int, last: str) -> None:
    ended = played(scene)
    assert (ended.code, ended.out, ended.err.splitlines()[-1:]) == (code, "ok\n", [last] if last else [])


BLOCKED = """
def source():
    yield from tasks(1)
    threading.Event().wait()

engine = Engine(Scripted(reply_for))
it = engine.iter_evaluate(source(), debates())
print(next(it).status)
"""


@pytest.mark.parametrize("ending", ["", "engine.close(); print('closed')", "it.close(); print('closed')"])
def test_a_source_that_blocks_holds_up_neither_close_nor_the_end_of_the_process(ending: str) -> None:
    assert said(BLOCKED + ending) == ["ok", "closed"][: 1 + bool(ending)]


def test_a_script_that_blocks_for_ever_does_not_hold_up_the_end_of_the_process() -> None:
    scene = """
    from debate.runtime import loop_thread

    def script(call):
        asked.set()
        threading.Event().wait()

    def wait():
        try:
            engine.evaluate(tasks(1)[0], asks(1))
        except EngineError as error:
            print(error, flush=True)

    loop_thread._GRACE_SECONDS = 0.5
    asked, engine = threading.Event(), Engine(Scripted(script))
    threading.Thread(target=wait, daemon=True).start()
    asked.wait()
    """
    ended = played(scene)
    assert (ended.code, ended.err) == (0, "what the engine was doing has not ended after 0.5 s and is left behind\n")


def test_a_script_that_calls_exit_ends_the_program_with_its_code() -> None:
    ended = played("with Engine(Scripted(lambda call: sys.exit(7))) as engine: engine.evaluate(tasks(1)[0], debates())")
    assert (ended.code, ended.err) == (7, "")


# ---- close


def test_closing_tells_those_who_wait_and_those_who_go_on_with_a_stream() -> None:
    scene = """
    async def script(call):
        if call.info["task_id"] != "t0":
            asked.release()
            await asyncio.sleep(60)
        return "1"

    def told(work):
        try:
            return work()
        except EngineError as error:
            print(f"{error}\\n", end="")

    def twin():
        asyncio.run(engine.aevaluate_batch(tasks(3), asks(1)))

    async def astream():
        async for evaluation in engine.astream(tasks(3), asks(1)):
            pass

    asked, engine = threading.Semaphore(0), Engine(Scripted(script))
    unfinished = engine.iter_evaluate(tasks(3), asks(1))
    next(unfinished)
    waiting = [
        lambda: engine.evaluate(tasks(2)[1], asks(1)),
        lambda: engine.evaluate_batch(tasks(3), asks(1)),
        twin,
        lambda: list(engine.iter_evaluate(tasks(3), asks(1))),
        lambda: asyncio.run(astream()),
    ]
    threads = [threading.Thread(target=told, args=[each]) for each in waiting]
    for thread in threads:
        thread.start()
    for _ in range(2 + 1 + 4 * 2):
        asked.acquire()
    engine.close()
    for thread in threads:
        thread.join()
    told(lambda: next(unfinished))
    print(engine.evaluate(tasks(1)[0], asks(1)).status)
    engine.close()
    """
    *told, gone, after = said(scene)
    assert len(told) == 5
    assert told.count("the engine was closed while this was under way") >= 3
    assert {*told} <= {
        "the engine was closed while this was under way",
        "the engine was closed",
    }  # between two
    assert (gone, after) == ("the engine was closed", "ok")


def test_a_stream_whose_engine_was_closed_is_not_taken_for_complete() -> None:
    scene = """
    async def astream():
        async for evaluation in engine.astream(tasks(50), asks(1)):
            engine.close()

    def iterated():
        for evaluation in engine.iter_evaluate(tasks(50), asks(1)):
            engine.close()

    for use in (iterated, lambda: asyncio.run(astream())):
        engine = Engine(Scripted(reply_for))
        try:
            use()
        except EngineError as error:
            print(error)
    """
    assert said(scene) == ["the engine was closed"] * 2


def test_a_stream_that_is_let_go_while_its_engine_is_closed_leaves_no_thread_behind() -> None:
    scene = """
    async def script(call):
        if call.info["task_id"] != "t0":
            try:
                await asyncio.sleep(60)
            finally:
                await asyncio.sleep(0.5)
        return "1"

    engine = Engine(Scripted(script))
    unfinished = engine.iter_evaluate((task for task in tasks(3)), asks(1))
    print(next(unfinished).status)
    closing = threading.Thread(target=engine.close)
    closing.start()
    time.sleep(0.2)
    del unfinished
    closing.join()
    for _ in range(100):
        if threading.active_count() > 1:
            time.sleep(0.02)
    print(*(thread.name for thread in threading.enumerate()))
    """
    assert said(scene) == ["ok", "MainThread"]


def test_what_is_under_way_ends_before_its_backend_is_closed() -> None:
    scene = """
    async def script(call):
        asked.set()
        try:
            await asyncio.sleep(60)
        finally:
            backend.events.append("cancelled")

    asked, backend = threading.Event(), Startable(script)
    engine = Engine(backend)
    waiting = threading.Thread(target=lambda: engine.evaluate(tasks(1)[0], asks(1)))
    threading.excepthook = lambda raised: print(raised.exc_type.__name__)
    waiting.start()
    asked.wait()
    engine.close()
    waiting.join()
    print(*backend.events)
    """
    assert said(scene) == ["EngineError", "start cancelled aclose"]


# ---- where an engine is called from


def test_a_plain_call_in_the_engines_own_thread_is_refused() -> None:
    scene = """
    def nested(call, completion=None):
        for use in (lambda: engine.evaluate(tasks(1)[0], asks(1)), engine.close):
            try:
                use()
            except EngineError as error:
                print(error.message)
        return "1"

    for engine in (Engine(Scripted(nested)), Engine(Scripted(reply_for), on_completion=nested)):
        with engine:
            print(engine.evaluate(tasks(1)[0], asks(1)).status)
    """
    refused = [
        "the engine was called from its own thread, which would wait for itself",
        "the engine cannot be closed from within: its own thread would wait for itself",
        "ok",
    ]
    assert said(scene) == refused * 2


def test_an_evaluation_inside_an_evaluation_finds_room_whatever_the_limit() -> None:
    scene = """
    async def script(call):
        if call.info["task_id"].startswith("t"):
            found = await engine.aevaluate_batch([Task("inner", [each], id=f"u{each}") for each in "abc"], asks(1))
            return str(len(found))
        if call.info["task_id"].startswith("u"):
            await engine.aevaluate(Task("innermost", ["a"], id="v"), asks(1))
        return "1"

    def function(x, answer):
        return engine.evaluate(Task(answer, ["a"], id=f"u{answer}"), asks(1)).scores[0]

    with Engine(Scripted(script), max_concurrency=1) as engine:
        print(*[evaluation.scores[0] for evaluation in engine.evaluate_batch(tasks(3), asks(1))])
        print(engine.evaluate(tasks(1)[0], CallbackEvaluator(function, scale=Scale(0, 10))).scores)
    """
    assert said(scene) == ["3.0 3.0 3.0", "[1. 1.]"]


def test_a_forked_process_is_told_to_make_an_engine_of_its_own() -> None:
    scene = """
    import tempfile

    with tempfile.TemporaryDirectory() as folder:
        engine = Engine(Scripted(reply_for), store=f"{folder}/s.sqlite")
        unfinished = engine.iter_evaluate(tasks(9), asks(1), run="one")
        print(next(unfinished).status, flush=True)
        if not (child := os.fork()):
            for use in (lambda: engine.evaluate(tasks(1)[0], asks(1)), lambda: next(unfinished)):
                try:
                    use()
                except EngineError as error:
                    print(error.message, flush=True)
            engine.close()
            with Engine(Scripted(reply_for)) as own:
                print(own.evaluate(tasks(1)[0], asks(1)).status, flush=True)
            os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), len(list(unfinished)))
        print(engine.evaluate_batch(tasks(9), asks(1), run="one")[0].status)
        engine.close()
    """
    refused = "the engine was used before the process was forked"
    assert said(scene) == ["ok", refused, refused, "ok", "4 8", "ok"]


def test_a_store_that_was_opened_before_a_fork_is_refused_there_and_goes_on_here() -> None:
    scene = """
    import tempfile
    from debate.errors import StoreError
    from debate.store import Store

    with tempfile.TemporaryDirectory() as folder, Store(f"{folder}/s.sqlite") as store:
        if not (child := os.fork()):
            try:
                Engine(Scripted(reply_for), store=store).evaluate(tasks(1)[0], asks(1))
            except StoreError as error:
                print(error.message.rpartition(": ")[2], flush=True)
            store.close()
            os._exit(4)
        print(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]))
        with Engine(Scripted(reply_for), store=store) as engine:
            print(engine.evaluate(tasks(1)[0], asks(1)).status)
    """
    assert said(scene) == ["was opened before the process was forked", "4", "ok"]


# ---- interrupts


def test_a_notebooks_interrupt_ends_an_awaited_batch_at_once() -> None:
    scene = """
    async def script(call):
        if call.info["task_id"] == "t2":
            print("begun", flush=True)
        await asyncio.sleep(0.2)
        return "1"

    async def cell():
        return await engine.aevaluate_batch(tasks(1000), asks(1))

    def interrupt(*_):  # as a kernel does it: without waking the loop
        loop.call_soon(running.cancel)

    with Engine(Scripted(script), max_concurrency=1) as engine:
        loop = asyncio.new_event_loop()
        running = loop.create_task(cell())
        signal.signal(signal.SIGINT, interrupt)
        try:
            loop.run_until_complete(running)
        except asyncio.CancelledError:
            print("cancelled")
        loop.close()
    """
    ended = played(scene, interrupt_at="begun")
    assert (ended.lines, ended.err) == (["begun", "cancelled"], "")
    assert ended.seconds < 15
