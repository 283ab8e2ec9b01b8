"""Export: our graphs and networks as ONNX models.

`table` says what ONNX has of each operator, `operators` holds the rows by family.  `preparing` brings a graph into what
is written, `writer` goes through its nodes, `emitter` collects those of ONNX, `proto` makes protocol buffers of them.
"""

from __future__ import annotations

from nnc_core.io.onnx.writing.save import save_onnx, to_onnx

__all__ = ["save_onnx", "to_onnx"]
