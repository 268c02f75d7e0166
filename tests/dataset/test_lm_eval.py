"""lm-eval's samples: every response is a candidate, and neither target nor metrics are shown."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from debate.errors import TaskError
from tests.dataset.files import Row, generators, lines, read, texts


def sample(doc: int = 0, *responses: str, **more: Any) -> Row:
    return {
        "doc_id": doc,
        "doc": {},
        "target": "4",
        "arguments": {"gen_args_0": {"arg_0": "2+2=", "arg_1": {"until": []}}},
        "resps": [list(responses)],
        **more,
    }


def test_the_responses_of_several_models_are_the_candidates(tmp_path: Path) -> None:
    first = lines(tmp_path / "m1.jsonl", sample(0, "m1!", "4", arguments=[["2+2=", {}]]))
    (task,) = read(first, "lm_eval", answers=(lines(tmp_path / "m2.jsonl", sample(0, "m2!")),))
    assert (task.x, texts(task), task.metadata) == ("2+2=", ["m1!", "4", "m2!"], {"target": "4"})
    assert (task.id, generators(task)) == ("0", ["m1", "m1", "m2"])


def test_the_models_are_named_after_the_folders_that_lm_eval_makes(tmp_path: Path) -> None:
    files: list[Path] = []
    for model in ("org__one", "org__two"):
        (tmp_path / model).mkdir()
        files.append(lines(tmp_path / model / "samples_gsm8k_2026-01-01.jsonl", sample(0, model)))
    (task,) = read(files[0], "lm_eval", answers=(files[1],))
    assert generators(task) == texts(task) == ["org__one", "org__two"]


def test_the_lines_of_several_filters_are_one_task_with_the_metrics_of_each(tmp_path: Path) -> None:
    rows = [
        sample(doc, "four", filter=each, metrics=["exact_match"], exact_match=value)
        for each, value in (("strict-match", 0.0), ("flexible-extract", 1.0))
        for doc in (0, 1)
    ]
    tasks = read(lines(tmp_path / "m1.jsonl", *rows), "lm_eval")
    assert [(task.id, texts(task)) for task in tasks] == [("0", ["four"]), ("1", ["four"])]
    found = {"exact_match,strict-match": [0.0], "exact_match,flexible-extract": [1.0]}
    assert tasks[0].metadata["scores"] == found


def test_metrics_are_scores_of_the_candidates_of_their_model(tmp_path: Path) -> None:
    files = (
        lines(tmp_path / "m1.jsonl", sample(0, "a", metrics=["acc", "f1", "said"], acc=True, f1=0.5, said="?")),
        lines(tmp_path / "m2.jsonl", sample(0, "b", "c", metrics=["acc"], acc=1.0)),
        lines(tmp_path / "m3.jsonl", sample(0, "d", filter="none", metrics=["acc"], acc=0.0)),
    )
    (task,) = read(files[0], "lm_eval", answers=files[1:])
    assert generators(task) == ["m1", "m2", "m2", "m3"]
    assert task.metadata["scores"] == {"acc": [1, None, None, 0.0], "f1": [0.5, None, None, None]}
    (several,) = read(files[1], "lm_eval")
    assert several.metadata == {"target": "4"}


@pytest.mark.parametrize(
    ("rows", "message"),
    [
        ([sample(0, "a"), sample(0, "b")], r"m\.jsonl:2: doc_id: '0' is a duplicate, with other responses on line 1"),
        ([sample(0, resps=[[[-1.5, True]]])], r"resps\.0: holds log-likelihoods"),
        ([sample(0, resps=[[["-1.5", "True"]]])], r"resps\.0: holds log-likelihoods"),
        ([sample(0, "a", arguments={})], "arguments: must be a string"),
        ([sample(0, "a", arguments=[[None]])], "arguments: is missing"),
        ([sample(0)], "candidates: is empty"),
        ([sample(0, "a", metrics=[1])], r"metrics\.0: must be a string"),
    ],
)
def test_samples_that_cannot_be_judged_are_refused(tmp_path: Path, rows: list[Row], message: str) -> None:
    with pytest.raises(TaskError, match=message):
        read(lines(tmp_path / "m.jsonl", *rows), "lm_eval")


def test_documents_that_one_model_lacks_are_refused(tmp_path: Path) -> None:
    first, other = lines(tmp_path / "m1.jsonl", sample(0, "a")), lines(tmp_path / "m2.jsonl", sample(1, "b"))
    with pytest.raises(TaskError, match=r"m2\.jsonl: has no sample of document '0', for .*m1\.jsonl:1"):
        read(first, "lm_eval", answers=(other,))
    more = lines(tmp_path / "m3.jsonl", sample(0, "a"), sample(1, "b"))
    with pytest.raises(TaskError, match=r"m3\.jsonl:2: doc_id: is a sample of no document"):
        read(first, "lm_eval", answers=(more,))
