"""Generators, and what they draw."""
