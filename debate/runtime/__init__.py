"""How flows run: the runner drives them, the scheduler runs many at once, admission bounds how many are open."""
