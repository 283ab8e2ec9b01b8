"""Convolutions and attention by cuDNN, where it is installed."""
