"""The neural compiler, and what was compiled or trained as a graph or a function."""
