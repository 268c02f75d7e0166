"""The exit codes of the command line."""

DONE = 0
BAD_INPUT = 2
DONE_WITH_FAILURES = 3
"""Also when a budget ended the run before all tasks were evaluated."""
ENGINE_FAILED = 4
STORE_FAILED = 5
RUN_IN_USE = 6
INTERRUPTED = 130
