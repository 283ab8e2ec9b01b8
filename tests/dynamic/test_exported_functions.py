"""Every public function of one array can be recorded and exported: nothing that it makes for itself stays outside."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

WIDE = np.arange(1, 13, dtype=np.float32).reshape(3, 4) / 7
SQUARE = WIDE[:, :3] @ WIDE[:, :3].T + np.eye(3, dtype=np.float32)
DRAWS = {"alpha_dropout", "dropout", "gaussian_dropout", "gaussian_noise", "gumbel_softmax", "rrelu", "spatial_dropout"}
"""They read the state of a generator."""
WITHOUT_ARRAY = {"diag_indices_from", "empty_like", "imag", "iscomplex", "isreal", "ones_like", "tril_indices_from",
                 "triu_indices_from", "zeros_like"}
"""Of real numbers these depend on shape and dtype alone."""
HOST = {"callback", "debug_print", "delay", "host_map", "lazy_print", "var_arr", "var_elt", "variable"}
NAMESPACES = {"": nnc, "linalg.": nnc.linalg, "fft.": nnc.fft}
FUNCTIONS = {f"{prefix}{name}": getattr(space, name) for prefix, space in NAMESPACES.items() for name in space.__all__
             if inspect.isfunction(getattr(space, name)) and name not in DRAWS | WITHOUT_ARRAY | HOST}


def tensors(result: Any) -> list[nnc.Tensor]:
    return [t for t in (result if isinstance(result, (tuple, list)) else [result]) if isinstance(t, nnc.Tensor)]


def an_array_for(f: Callable[..., Any]) -> Any:
    """One of which f, given nothing else, makes tensors; None if there is none."""
    for x in (WIDE, SQUARE, WIDE[0]):
        try:
            if tensors(f(nnc.asarray(x))):
                return x
        except Exception:  # it takes more than an array, or another one
            continue
    return None


TAKE_ONE = sorted(name for name, f in FUNCTIONS.items() if an_array_for(f) is not None)


def test_there_are_many() -> None:
    assert len(TAKE_ONE) > 150
    assert {"sum", "histogram", "linalg.expm", "fft.rfft"} <= set(TAKE_ONE)


@pytest.mark.parametrize("name", TAKE_ONE)
def test_it_is_exported(name: str) -> None:
    f = FUNCTIONS[name]
    x = an_array_for(f)
    with nnc.deferred():
        given = nnc.asarray(x)
        made = tensors(f(given))
    run = nnc.export({"x": given}, {f"y{i}": y for i, y in enumerate(made)}).compile()
    found = run(x=x)
    for i, wanted in enumerate(tensors(f(nnc.asarray(x)))):
        np.testing.assert_allclose(found[f"y{i}"].numpy(), wanted.numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("f", [
    lambda x: nnc.quantile(x, [0.25, 0.6]), lambda x: nnc.quantile(x, 0.3, axis=0),
    lambda x: nnc.histogram(x, 5, range=(0, 1))[0], lambda x: nnc.pad(x, 2, mode="linear_ramp"),
    lambda x: nnc.convolve(x[0], x[1]), lambda x: nnc.linalg.expm(x[:, :3]), lambda x: nnc.trace(x, offset=1),
])  # fmt: skip
def test_with_more_arguments(f: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    with nnc.deferred():
        x = nnc.asarray(WIDE)
        y = f(x)
    found = nnc.export({"x": x}, {"y": y}).compile()(x=WIDE)["y"]
    np.testing.assert_allclose(found.numpy(), f(nnc.asarray(WIDE)).numpy(), rtol=1e-5, atol=1e-6)
