"""Cases recorded by running the original programs, and how this package answers each through its public functions.

    run.py       the command line and what is printed
    cases.py     the file of cases
    verdicts.py  whether an answer is the recorded one
    answers.py   which function answers which case; tot.py, got.py, seed.py, steps.py hold the answers

A new function is an `Answer` in one of the last four.
"""
