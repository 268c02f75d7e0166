"""Vector indexes: exact search in numpy, and Chroma."""
