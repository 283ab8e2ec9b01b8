"""Floor 8: from a graph to a program that runs on one device."""
