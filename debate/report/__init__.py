"""A run as one HTML file that needs no server and loads nothing."""

from debate.report.html import Paragraph, Part, Section, Tabular, write_report
from debate.report.rows import FILTERS, Filter

__all__ = ["FILTERS", "Filter", "Paragraph", "Part", "Section", "Tabular", "write_report"]
