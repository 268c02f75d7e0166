"""What a run's results can be written as, for people and for other tools; one module per family of formats."""

from debate.export.writer import Export, ExportSummary, Results, export_named, write_array, write_lines

__all__ = ["Export", "ExportSummary", "Results", "export_named", "write_array", "write_lines"]
