"""ONNX models in: a model is parsed into subgraphs once, and each call runs its steps as public functions."""
