"""Benchmarks: each module prints a table with the peer beside ours, measured in the same run."""
