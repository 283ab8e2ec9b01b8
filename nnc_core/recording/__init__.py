"""Floor 10: recorded computations as graphs: export, specialisation, compiled graphs, graphs in stages."""
