"""Floor 9: tensors, the modes that decide when a node runs, gradients, export and jit."""

from __future__ import annotations

from typing import Any

from nnc_core.dynamic import methods  # noqa: F401 - it completes tensors
from nnc_core.dynamic.evaluation import evaluate
from nnc_core.dynamic.graphs import compiled  # noqa: F401 - it completes graphs
from nnc_core.dynamic.tensor import Tensor
from nnc_core.dynamic.traces import calls  # noqa: F401 - it completes compiled functions


def realize(*trees: Any) -> None:
    """Compute all deferred tensors in some structures in one walk: what they share is computed once."""
    from nnc_core.dynamic.tree import flatten

    evaluate([t._value for t in flatten(trees)[0] if isinstance(t, Tensor)])
