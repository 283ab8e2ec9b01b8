"""Graphs as text, in Graphviz' language and as pictures."""
