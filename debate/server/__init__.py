"""Serves evaluators over HTTP: evaluations as JSON, and the value model of a search in x1's wire format."""
