"""Values and tensors: what a tensor points at, the modes that decide when an operator runs, and the dispatcher."""
