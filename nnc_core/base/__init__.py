"""Floor 0: the words that every other floor and every plugin uses.  Frozen data, no behaviour."""
