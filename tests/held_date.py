"""The date on which all tests take place.

Prompts state the date and scripted replies are drawn by the prompt, so a test would meet other replies every day.
"""

from __future__ import annotations

from debate import files

DATE = "2026-11-22"


def hold_date_still() -> None:
    """Make it that date in this process."""
    files.today = lambda: DATE
