"""How values look in a notebook, as data frames and as figures.

It stands on top of all: evaluations, tasks and runs find it by its name when they are shown, so that nothing of it is
imported before.
"""
