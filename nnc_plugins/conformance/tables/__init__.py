"""The cases of every operator, by family."""
