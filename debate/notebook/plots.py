"""Figures of an evaluation and of a run, by matplotlib. Nothing is drawn through pyplot, so no figure stays behind."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from functools import cache
from importlib import import_module
from io import BytesIO
from itertools import product
from typing import TYPE_CHECKING, Any

import numpy as np

from debate.cli.console import escape_controls
from debate.errors import ConfigError
from debate.evaluation import Evaluation, leaves
from debate.evaluators.debate.settings import CELL_SCALE
from debate.meta_evaluation.judged import Judged, JudgedRun
from debate.types import FloatArray

if TYPE_CHECKING:
    from matplotlib.figure import Figure

_MOST_CANDIDATES, _MOST_COMPONENTS, _MOST_DEBATES, _MOST_LINES = 8, 8, 4, 200


def plot_evaluation(evaluation: Evaluation) -> Figure:
    """The tensor as heat maps; a bar for each score where there is none. See `Evaluation.plot`."""
    debates = [each for each in leaves(evaluation) if each.tensor is not None and each.tensor.size][:_MOST_DEBATES]
    if not debates:
        return _bars(evaluation)
    shapes = [_shown(each).shape for each in debates]  # (R, I, J, K) each
    width = max(1.2 + k * (1.0 + 0.42 * i) for _, i, _, k in shapes)
    heights = [1.1 + j * (0.6 + 0.3 * r) for r, _, j, _ in shapes]
    figure = _figure(min(max(width, 4.0), 18.0), min(sum(heights), 30.0))
    parts = figure.subfigures(len(debates), 1, squeeze=False, height_ratios=heights)[:, 0]
    for n, (part, each) in enumerate(zip(parts, debates, strict=True)):
        _draw_tensor(part, each, f", member {n + 1}" if len(debates) > 1 else "")
    return figure


def plot_run(run: JudgedRun) -> Figure:
    """The scores of the run and, where it holds debates, CV by round. See `LoadedRun.plot`."""
    series = [each.cv for task in run.tasks for each in _with_members(task) if np.isfinite(each.cv).any()]
    figure = _figure(9.0 if series else 4.5, 3.4)
    axes = figure.subplots(1, 2 if series else 1, squeeze=False)[0]
    _draw_scores(axes[0], run.tasks)
    if series:
        _draw_cv(axes[1], series)
    figure.suptitle(_text(run.directory.path.name))
    return figure


@cache
def _class_of_figure() -> Any:
    """A `Figure` that a notebook shows as a picture, also where pyplot was never imported."""
    try:
        base: Any = import_module("matplotlib.figure").Figure
    except ImportError:
        hint = "pip install 'debate-eval[plots]'"
        raise ConfigError("a plot needs matplotlib", hint=hint) from None

    def picture(self: Any) -> bytes:
        written = BytesIO()
        self.savefig(written, format="png", dpi=110)
        return written.getvalue()

    return type("Figure", (base,), {"_repr_png_": picture, "__module__": __name__})


def _figure(width: float, height: float) -> Any:
    return _class_of_figure()(figsize=(width, height), layout="constrained")


def _text(words: str, longest: int = 40) -> str:
    """Text of any origin in a figure; a dollar sign begins no formula."""
    shown = escape_controls(words)
    return (shown if len(shown) <= longest else f"{shown[: longest - 3]}...").replace("$", r"\$")


def _shown(debate: Evaluation) -> FloatArray:
    """As much of the tensor, (R, I, J, K), as a figure holds."""
    assert debate.tensor is not None
    return debate.tensor[:, :, :_MOST_CANDIDATES, :_MOST_COMPONENTS]


def _draw_tensor(figure: Any, debate: Evaluation, member: str) -> None:
    """A heat map for each candidate and component: rounds downward, agents across."""
    tensor = _shown(debate)
    n_candidates, n_components = tensor.shape[2:]
    axes = figure.subplots(n_candidates, n_components, squeeze=False, sharex=True, sharey=True)
    drawn = None
    for j, k in product(range(n_candidates), range(n_components)):
        each = axes[j, k]
        drawn = _draw_cells(each, tensor[:, :, j, k])
        if j == 0:
            each.set_title(_text(debate.components[k], 20), fontsize=8)
        if k == 0:
            each.set_ylabel(f"candidate {j + 1}\nround", fontsize=8)
    for each in axes[-1]:
        each.set_xticks(range(len(debate.agents)), [_text(name, 14) for name in debate.agents], rotation=90, fontsize=7)
    for each in axes[:, 0]:
        each.set_yticks(range(len(tensor)), [str(r + 1) for r in range(len(tensor))], fontsize=7)
    figure.colorbar(drawn, ax=axes, label="score", shrink=0.8)
    cv = ", ".join("-" if math.isnan(value) else f"{value:.2f}" for value in debate.cv)
    more = " (not all shown)" if debate.tensor is not None and tensor.shape != debate.tensor.shape else ""
    figure.suptitle(f"{_text(debate.task_id)}{member}{more}" + (f"\nCV by round: {cv}" if cv else ""), fontsize=10)


def _draw_cells(axes: Any, scores: FloatArray) -> Any:
    """One heat map, (R, I), with its numbers; a cell without a score is gray and has none."""
    low, high = CELL_SCALE.low, CELL_SCALE.high
    axes.set_facecolor("0.85")
    drawn = axes.imshow(scores, vmin=low, vmax=high, cmap="viridis", aspect="auto")
    for (r, i), score in np.ndenumerate(scores):
        if not math.isnan(score):
            color = "white" if score < low + 0.6 * (high - low) else "black"
            axes.text(i, r, f"{score:.3g}", ha="center", va="center", fontsize=7, color=color)
    axes.tick_params(length=0)
    return drawn


def _bars(evaluation: Evaluation) -> Any:
    """The scores of the candidates; what was chosen is darker."""
    figure = _figure(5.0, min(1.2 + 0.35 * len(evaluation.scores), 12.0))
    axes = figure.subplots()
    names = [str(j + 1) for j in range(len(evaluation.scores))]
    colors = ["#0d6e66" if j in evaluation.choice else "#8fc7c2" for j in range(len(names))]
    bars = axes.barh(names, np.nan_to_num(evaluation.scores), color=colors)
    axes.bar_label(bars, ["no score" if math.isnan(each) else f"{each:.3g}" for each in evaluation.scores], padding=3)
    axes.set(xlabel="score", ylabel="candidate", title=_text(f"{evaluation.task_id}: {evaluation.evaluator}", 60))
    axes.invert_yaxis()
    return figure


def _with_members(task: Judged) -> Iterable[Judged]:
    yield task
    for member in task.members:
        yield from _with_members(member)


def _draw_scores(axes: Any, tasks: Sequence[Judged]) -> None:
    """How the scores are spread: of what was chosen, and of the other candidates."""
    chosen = [float(task.scores[j]) for task in tasks for j in task.choice]
    others = [float(score) for task in tasks for j, score in enumerate(task.scores) if j not in task.choice]
    groups = [[score for score in scores if not math.isnan(score)] for scores in (chosen, others)]
    counts = [f"{name} ({len(scores):,})" for name, scores in zip(("chosen", "others"), groups, strict=True)]
    if any(groups):
        axes.hist(groups, bins=20, stacked=True, label=counts, color=["#0d6e66", "#8fc7c2"])
        axes.legend(fontsize=8)
    axes.set(xlabel="score", ylabel="candidates", title="Scores")


def _draw_cv(axes: Any, series: Sequence[FloatArray]) -> None:
    """A thin line for each debate, and the median of those that came to the round."""
    rounds = max(map(len, series))
    for cv in series[:_MOST_LINES]:
        axes.plot(range(1, len(cv) + 1), cv, color="#0d6e66", alpha=max(0.1, min(0.6, 6 / len(series))), linewidth=1)
    reached = [[float(cv[r]) for cv in series if len(cv) > r and np.isfinite(cv[r])] for r in range(rounds)]
    known = [r for r in range(rounds) if reached[r]]
    axes.plot([r + 1 for r in known], [float(np.median(reached[r])) for r in known], "o-", color="#c2410c",
              label="median")  # fmt: skip
    labels = [f"{r + 1}\n(n = {len(reached[r]):,})" for r in range(rounds)]
    axes.set_xticks(range(1, rounds + 1), labels, fontsize=8)
    axes.set(xlabel="round", ylabel="CV", title=f"Agreement of the agents, {len(series):,} debates")
    axes.set_ylim(bottom=0)
    axes.legend(fontsize=8)
