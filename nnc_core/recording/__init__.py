"""Recorded computations as graphs: export, specialisation, compiled graphs, graphs in stages."""
