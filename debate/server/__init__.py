"""Serves an evaluator over HTTP as the value model of a search, in the wire format of x1's value model."""
