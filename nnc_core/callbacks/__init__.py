"""Floor 14: functions of the host as steps of a computation."""
