"""Reads models' replies: a turn of a debate, a value, a ballot, a step's score; and makes the schemas they follow.

Each reader returns exactly what the reply says, or raises `ReplyError` with a reason. None clamps, completes or
guesses, and an unreadable reply is never worth 0.
"""
