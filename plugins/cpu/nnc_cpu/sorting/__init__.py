"""Sorts as machine code."""
