"""Batch work on files: reading eval sets and keeping results. Knows neither models nor the command line."""
