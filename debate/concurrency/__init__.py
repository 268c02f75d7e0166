"""What several parts need beside an event loop: micro-batches, and threads for blocking work."""
