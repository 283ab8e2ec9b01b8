"""Floor 11: loops and branches by data, and functions of one example run on many."""
