"""What every client of a server shares: retries, the circuit breaker, checks of addresses, JSON over HTTP."""
