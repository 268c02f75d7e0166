"""Settings of a run, and evaluators and backends made from plain data."""
