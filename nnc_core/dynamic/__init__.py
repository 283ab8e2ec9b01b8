"""Floor 9: tensors, the modes that decide when a node runs, gradients, export and jit."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.dynamic import compiled, methods  # noqa: F401 - they complete graphs and tensors
from nnc_core.dynamic.dispatch import evaluate
from nnc_core.dynamic.tensor import Tensor


def realize(*tensors: Tensor | Sequence[Tensor]) -> None:
    """Compute several deferred tensors in one walk."""
    from nnc_core.dynamic.tree import flatten

    evaluate([t._value for t in flatten(list(tensors))[0]])
