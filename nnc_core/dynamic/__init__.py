"""Floor 9: tensors, the modes that decide when a node runs, gradients, export and jit."""

from __future__ import annotations

from typing import Any

from nnc_core.dynamic import calls, compiled, methods  # noqa: F401 - they complete graphs, functions and tensors
from nnc_core.dynamic.evaluation import evaluate
from nnc_core.dynamic.tensor import Tensor


def realize(*trees: Any) -> None:
    """Compute all deferred tensors in some structures in one walk: what they share is computed once."""
    from nnc_core.dynamic.tree import flatten

    evaluate([t._value for t in flatten(trees)[0] if isinstance(t, Tensor)])
