"""What the engine costs and what it withstands; `scripts/bench` lists and runs these."""
