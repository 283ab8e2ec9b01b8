"""Floor 14: derivatives: of functions, over the tape, with hooks and with rules of the user's own."""
