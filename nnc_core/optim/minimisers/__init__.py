"""Minimisers: one rule in a file, and what they share."""
