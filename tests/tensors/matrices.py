"""What tests of linear algebra compare by."""

from __future__ import annotations

from typing import Any

import numpy as np


def flat(tree: Any) -> list[Any]:
    """The leaves of tuples and lists."""
    return [y for x in tree for y in flat(x)] if isinstance(tree, (list, tuple)) else [tree]


def same(found: Any, wanted: Any, what: str, tolerance: float = 1e-9) -> None:
    """Shapes, kinds of dtype, and values."""
    ys, zs = flat(found), flat(wanted)
    assert len(ys) == len(zs), what
    for y, z in zip(ys, zs, strict=True):
        z = np.asarray(z)
        assert (y.shape, y.numpy().dtype.kind) == (z.shape, z.dtype.kind), what
        scale = max(1.0, float(np.abs(z).max(initial=0)))
        np.testing.assert_allclose(y.numpy(), z, rtol=tolerance, atol=tolerance * scale, err_msg=what)
