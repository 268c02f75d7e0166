"""Scorers: functions that judge a text answer by counting, without a model (Besta et al. 2023).

    sorting_errors(original, answer)              wrong counts and inversions of a sorted list
    set_intersection_errors(set1, set2, answer)   missing and extra members of an intersection
    keyword_count_errors(text, answer)            how far keyword counts are off
    tagged_f1(reply, tags)                        F1 of two scores that a judge wrote between tags

`scale_of` tells a scorer's scale: errors are lower is better, 0 perfect. An answer that cannot be read raises
`ReplyError`; what it is then worth (unscored, or a penalty) is for the caller to say.
"""

from __future__ import annotations

from debate.scorers.counting import (
    ERRORS,
    F1,
    count_keywords,
    country_names,
    frequency_errors,
    keyword_count_errors,
    scale_of,
    set_intersection_errors,
    sorting_errors,
    tagged_f1,
)

__all__ = [
    "ERRORS",
    "F1",
    "count_keywords",
    "country_names",
    "frequency_errors",
    "keyword_count_errors",
    "scale_of",
    "set_intersection_errors",
    "sorting_errors",
    "tagged_f1",
]
