"""Functions of the host as steps of a computation."""
