"""Floor 9: what a tensor points at, the modes that decide when an operator runs, the dispatcher, and tensors."""
