"""Functional networks: modules called on symbolic handles."""
