"""The control of a run of debates, as a run of its own: `RUN/control`, in the same store, bound to RUN's identity.

The silent panel takes over the agents, memories, models, sampling, seed and date of the debates, and on each task as
many rounds as its debate took. RUN itself is only read.
"""

from __future__ import annotations

from collections.abc import Mapping

from debate.backends import Backend
from debate.config.settings import RunSettings
from debate.errors import RunMismatchError
from debate.evaluators.base import Evaluator
from debate.evaluators.debate.control import ControlEvaluator
from debate.hashing import digest
from debate.jobs.debated import Debated
from debate.jobs.run import Run, run_identity
from debate.jobs.run_directory import CONTROL_FOLDER, RunDirectory
from debate.store.identity import differences, prompt_identity


def control_job(
    run: RunDirectory,
    evaluator: Evaluator,
    backends: Mapping[str, Backend],
    settings: RunSettings,
    *,
    retry_failed: bool = False,
) -> tuple[Run, int]:
    """What makes the control of the tasks that are evaluated so far, or goes on with it; and how many are left.

    Args:
        run: the run of debates.
        evaluator: its evaluator.
        backends: its models, by the names that calls ask for.
        settings: those that it was begun with.
        retry_failed: ask the silent panel again for what failed.

    Raises:
        ConfigError: for an evaluator that holds no debates.
        InputError: when nothing is evaluated yet.
        RunMismatchError: when the evaluator, the models, the memory or the seed are not those that the run recorded.
        StoreError: as `RunDirectory.open_store`.
    """
    debated = Debated.of(run)
    identity = prompt_identity({**run_identity(evaluator, backends, settings.memory), "seed": settings.seed})
    if changed := differences(debated.identity, identity):
        problem = f"the run {run.name!r} was made with other settings: {'; '.join(changed[:5])}"
        hint = f"put back what {run.path / 'run.json'} names as it was; a control under other settings would be none"
        raise RunMismatchError(problem, hint=hint)
    where = {"run": f"{run.name}/{CONTROL_FOLDER}", "store": settings.store or run.store}
    control_of = {"run": run.name, "identity": digest(identity)}
    job = Run(
        evalset=debated,
        folder=run.control,
        evaluator=ControlEvaluator.of(evaluator, debated.rounds_of, control_of),
        settings=settings.model_copy(update=where),
        retry_failed=retry_failed,
    )
    return job, debated.n_tasks - len(debated.tasks)
