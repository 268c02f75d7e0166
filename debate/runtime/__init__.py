"""Runs flows: the runner drives them, the scheduler evaluates many tasks at once within limits."""
