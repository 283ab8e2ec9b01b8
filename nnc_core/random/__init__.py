"""Floor 12: generators, and what they draw."""
