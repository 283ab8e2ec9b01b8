"""Layers: what networks are made of, and what makes them of one another."""
