"""Serves an evaluator over HTTP as the value model of a search, in x1's wire format."""
