"""Cases recorded by running the original programs, and how this package answers each through its public functions.

    run.py       the command line and what is printed
    cases.py     the file of cases
    verdicts.py  whether an answer is the recorded one
    answers.py   which function answers which case; the answers are in tot.py, got.py, evaluation.py, steps.py, flows.py
    originals.py what the originals do where the package does otherwise on purpose

A new function is an `Answer` in one of those five.
"""
