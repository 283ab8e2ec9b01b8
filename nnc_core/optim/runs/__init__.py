"""Runs: the training step, the loop around it, and the configurations of both."""
