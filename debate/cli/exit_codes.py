"""Exit codes of the command line, documented in the README."""

DONE = 0
BAD_INPUT = 2
DONE_WITH_FAILURES = 3
ENGINE_FAILED = 4
INTERRUPTED = 130
