"""`python -m debate`: the command line."""

from debate.cli import main

main()
