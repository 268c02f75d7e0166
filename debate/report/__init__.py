"""A run as one HTML file that needs no server and loads nothing."""

from debate.report.html import Link, Paragraph, Part, Section, Tabular, address, write_report
from debate.report.rows import FILTERS, Filter

__all__ = ["FILTERS", "Filter", "Link", "Paragraph", "Part", "Section", "Tabular", "address", "write_report"]
