"""Figures of judges against people, of panels and of rankings, on plain arrays. Knows nothing of runs and stores.

NaN is a score that nobody gave: it is left out and counted, never read as a zero. What is undefined is NaN with a
reason.
"""

from debate.statistics.agreement import Agreement as Agreement
