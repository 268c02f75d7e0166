"""How a task was drawn, as labels say it."""

from __future__ import annotations

import pytest

from debate.dataset.labels import Drawn, labels_of
from debate.errors import TaskError

NAMES = [(None, None)] * 2


def test_a_label_says_how_its_task_was_drawn() -> None:
    drawn = {"seed": 3, "size": 5, "of": 9, "stratify": "group", "stratum": "a"}
    assert labels_of({"best": 0, "drawn": drawn}, NAMES).together.drawn == Drawn(3, 5, 9, "group", "a")
    vote = {"by": "anna", "best": 0, "drawn": {"seed": 3, "size": 5, "of": 9}}
    assert labels_of({"votes": [vote]}, NAMES).votes[0].drawn == Drawn(3, 5, 9)


@pytest.mark.parametrize("word", [None, "", "by hand", True])
def test_another_meaning_of_the_word_in_metadata_is_no_draw(word: object) -> None:
    assert labels_of({"best": 0, "drawn": word}, NAMES).together.drawn is None


@pytest.mark.parametrize("faulty", [{"size": 5, "of": 9}, {"seed": "3", "size": 5, "of": 9}])
def test_a_draw_without_a_whole_number_is_refused(faulty: dict[str, object]) -> None:
    with pytest.raises(TaskError, match=r"metadata\.drawn\.seed"):
        labels_of({"best": 0, "drawn": faulty}, NAMES)
