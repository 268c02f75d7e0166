"""Templates: rendered in a sandbox into segments, in which content cannot forge the templates' own delimiters."""

from debate.templates.delimiters import delimiter_of, task_delimiter
from debate.templates.rendering import Templates, Trusted, plain_number

__all__ = ["Templates", "Trusted", "delimiter_of", "plain_number", "task_delimiter"]
