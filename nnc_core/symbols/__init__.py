"""Floor 14: Owl's way: symbols that are assigned, evaluated again where that is needed, and snapshots of state."""
