"""From recorded steps to graphs, and graphs compiled, cut into stages and run step by step."""
