"""Every public function of one array can be recorded and exported: nothing that it makes for itself stays outside.

For another size it is right as well, or refused; compiled for sizes that come at calls it is right.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import ShapeError


def wide(n: int) -> np.ndarray:
    return np.arange(1, 4 * n + 1, dtype=np.float32).reshape(n, 4) / 7


def square(n: int) -> np.ndarray:
    x = wide(n)[:, :3]
    return x @ x.T / n + np.eye(n, dtype=np.float32)  # type: ignore[no-any-return]


KINDS: dict[str, tuple[Callable[[int], np.ndarray], tuple[str | None, ...]]] = {
    "wide": (wide, ("n", None)), "square": (square, ("n", "n")), "row": (lambda n: wide(n)[:, 0], ("n",)),
}  # fmt: skip
"""Arrays by a size, and which of their axes are of it."""
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


def kind_for(f: Callable[..., Any]) -> str | None:
    """An array of which f, given nothing else, makes tensors; None if there is none."""
    for kind, (make, _) in KINDS.items():
        try:
            if tensors(f(nnc.asarray(make(3)))):
                return kind
        except Exception:  # it takes more than an array, or another one
            continue
    return None


TAKE_ONE = {name: kind for name, f in sorted(FUNCTIONS.items()) if (kind := kind_for(f)) is not None}
each_function = pytest.mark.parametrize(("name", "kind"), TAKE_ONE.items(), ids=TAKE_ONE)


def test_there_are_many() -> None:
    assert len(TAKE_ONE) > 150
    assert {"sum", "histogram", "linalg.expm", "fft.rfft"} <= TAKE_ONE.keys()


def recorded(name: str, kind: str, size: int, named: bool = False) -> nnc.SymbolicGraph:
    make, axes = KINDS[kind]
    with nnc.deferred():
        x = nnc.asarray(make(size))
        made = tensors(FUNCTIONS[name](x))
    return nnc.export({"x": x}, {f"y{i}": y for i, y in enumerate(made)}, named_dims={"x": axes} if named else None)


def agree(found: Any, name: str, x: np.ndarray) -> None:
    wanted = tensors(FUNCTIONS[name](nnc.asarray(x)))
    assert len(found) == len(wanted)
    for y, z in zip(found, wanted, strict=True):
        np.testing.assert_allclose(y.numpy(), z.numpy(), rtol=1e-4, atol=1e-5)


@each_function
def test_it_is_exported(name: str, kind: str) -> None:
    x = KINDS[kind][0](3)
    agree(recorded(name, kind, 3).compile()(x=x).values(), name, x)


@each_function
def test_exported_for_any_size_it_is_right_or_refused(name: str, kind: str) -> None:
    try:
        run = recorded(name, kind, 5, named=True).compile()
    except nnc.Error as error:
        assert isinstance(error, ShapeError) and error.hint, error
        return
    for size in (5, 7, 3):
        x = KINDS[kind][0](size)
        agree(run(x=x).values(), name, x)


@each_function
def test_compiled_for_any_size_it_is_right(name: str, kind: str) -> None:
    compiled = nnc.jit(FUNCTIONS[name])
    for size in (5, 7, 3, 7):
        x = KINDS[kind][0](size)
        agree(tensors(compiled(nnc.asarray(x))), name, x)
