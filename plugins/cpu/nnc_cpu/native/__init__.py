"""Programs whose records machine code runs."""
