"""`debate demo`: the bundled judge on tasks of its world, and what debating is worth there."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated, Any

import typer

from debate.cli.flags import settings_flags

_OUT = Path("runs") / "demo"


@settings_flags(without=("evaluator", "options", "format", "answers", "columns", "prefix_ids"))
def demo(
    config: Annotated[
        Path | None, typer.Option(help="YAML file of settings; flags override it.", rich_help_panel="Run")
    ] = None,
    **flags: Any,
) -> None:
    """Debate 46 questions with the bundled judge, and show what debating is worth.

    Three of the debates are shown. Afterwards the same agents are asked as often
    without hearing each other, so that debate, silent panel and one judge stand
    side by side. Without flags it needs vLLM and takes some minutes on a CPU;
    --model takes another model, and --backend a server. The results are in
    runs/demo, or in the folder of --out; the same command again goes on there.

    Example:
        debate demo
        debate demo --backend openai --base-url http://localhost:8000/v1 --model Qwen/Qwen3-8B
    """
    from debate.bundled_judge import BUILT_IN, demo_tasks
    from debate.cli import DONE, DONE_WITH_FAILURES
    from debate.cli.execution import execute, require_vllm
    from debate.cli.render_demo import print_demo
    from debate.config.settings import RunSettings
    from debate.dataset.evalset import EvalSet

    given = RunSettings.read(config, flags).model_fields_set
    # What the agents remember belongs to the tasks, and to the agents of this profile, whatever the model.
    defaults = {name: value for name, value in _DEFAULTS.items() if name not in given}
    if not given & {"model", "backend"}:
        defaults["model"] = BUILT_IN
    settings = RunSettings.read(config, {**defaults, **flags})
    require_vllm(settings)
    folder = settings.out or _OUT
    tasks = EvalSet(demo_tasks(), settings.limit)
    code = execute(settings, folder, evalset=tasks, retry_failed=False, fork=False, control=True)
    if code in (DONE, DONE_WITH_FAILURES):  # where a debate failed, there is still something to show
        print_demo(folder)
    raise typer.Exit(code)


_DEFAULTS = {"profile": "judge", "memory": "built-in"}
