"""Floor 12: functions traced, compiled for each signature and kept: jit, hybridize, and what makes them trace again."""
