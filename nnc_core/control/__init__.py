"""Loops and branches by data, and functions of one example run on many."""
