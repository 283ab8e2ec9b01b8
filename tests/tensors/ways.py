"""Ways to run a function of tensors: all give what eager code gives."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import nnc_core as nnc


def in_mode(mode: str, f: Callable[..., Any], *args: Any) -> Any:
    """f(*args), where "compiled", "deferred" or "exported" says how; anything else is eager."""
    if mode == "compiled":
        return nnc.jit(f)(*args)
    if mode == "deferred":
        with nnc.deferred():
            return f(*args).realize()
    if mode == "exported":
        with nnc.deferred():
            y = f(*args)
        names = {f"x{i}": x for i, x in enumerate(args)}
        return nnc.export(names, {"y": y}).compile(args[0].device.id)(**names)["y"]
    return f(*args)


def agrees_with_eager(mode: str, f: Callable[[Any], Any], x: Any, *, rtol: float, atol: float) -> None:
    """One array in, one out.  "vmap" runs a linear f on two examples, of which the second is twice the first."""
    expected = f(nnc.asarray(x)).numpy()
    found = (nnc.vmap(f)(nnc.asarray(np.stack([x, 2 * x])))[1] / 2 if mode == "vmap" else
             in_mode(mode, f, nnc.asarray(x)))
    np.testing.assert_allclose(found.numpy(), expected, rtol=rtol, atol=atol)
