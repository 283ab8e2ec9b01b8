"""What was recorded as graphs: export, specialisation, compiled graphs, graphs in stages."""
