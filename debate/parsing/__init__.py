"""Reads what judges reply when they are not debating: a value, a vote, a comparison, the score of a step.

Each reader returns exactly what was said, or raises `ReplyError` with a reason; none clamps, fills in or guesses, and a
reply that could not be read is never worth 0. One kind of reply a module; they know nothing of prompts or models.
"""
