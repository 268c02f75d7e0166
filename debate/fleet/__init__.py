"""Starts the workers of a run, on this machine or on a Ray cluster, and starts those again that die.

A worker is a process that runs `debate resume`. What is to do and what is done stands in the run's store, so a launcher
knows nothing of tasks, shards or models: it starts commands and sees how they end.
"""
