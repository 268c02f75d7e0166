"""Backends behind a server: OpenAI-compatible ones, Ollama, value models."""
