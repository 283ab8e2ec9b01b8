"""What tests of many folders begin and end with: random float32 numbers, ways of running code, and results compared."""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, TypeVar, cast

import numpy as np

import nnc_core as nnc
from nnc_core.values.tree import flatten

Host = np.ndarray[Any, Any]
Test = TypeVar("Test", bound=Callable[..., None])


def numbers(*shape: int, seed: int = 0) -> Host:
    """Normally distributed float32."""
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def drawn(*shape: int, seed: int = 0) -> nnc.Tensor:
    """The same on the current device."""
    return nnc.asarray(numbers(*shape, seed=seed))


def eagerly(f: Callable[..., Any]) -> Callable[..., Any]:
    """f as it is, to stand beside `lazily` and `nnc.jit`."""
    return f


def lazily(f: Callable[..., Any]) -> Callable[..., Any]:
    """f recorded, to be computed when somebody looks at a result."""

    def wrapped(*args: Any) -> Any:
        with nnc.deferred():
            return f(*args)

    return wrapped


def at_once(work: Callable[[Any], Any], each: Iterable[Any]) -> None:
    """Call work with each of these, in a thread for each, and wait for all; what one raises fails the test."""
    threads = [threading.Thread(target=work, args=(x,)) for x in each]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()


def to_the_bit(test: Test) -> Test:
    """A test that compares ways of running code to the bit, or after so many steps that last bits grow: eager operators
    then run the commands of graphs."""

    @wraps(test)
    def run(*args: Any, **kwargs: Any) -> None:
        with nnc.config.using(deterministic=True):
            test(*args, **kwargs)

    return cast(Test, run)


def leaves(tree: Any) -> list[Host]:
    """Tensors and numbers of a structure, from left to right, on the host."""
    return [x.numpy() if isinstance(x, nnc.Tensor) else np.asarray(x) for x in flatten(tree)[0]]


def same(found: Any, wanted: Any, what: str = "result") -> None:
    """Structures of as many leaves, of the same dtypes and shapes, equal to the bit."""
    a, b = leaves(found), leaves(wanted)
    assert len(a) == len(b) > 0, f"{what}: {len(a)} arrays instead of {len(b)}"
    for i, (x, y) in enumerate(zip(a, b, strict=True)):
        assert (x.dtype, x.shape) == (y.dtype, y.shape), f"{what} {i} is {x.dtype}{x.shape}, not {y.dtype}{y.shape}"
        assert x.tobytes() == y.tobytes(), f"{what} {i} differs:\n{x}\nwanted:\n{y}"


def near(found: Any, wanted: Any, rtol: float = 2e-5, atol: float = 5e-6) -> None:
    """Structures of as many leaves, of the same shapes, equal but for the order of a few roundings in float32."""
    a, b = leaves(found), leaves(wanted if isinstance(found, (list, tuple, dict)) else np.asarray(wanted))
    assert len(a) == len(b) > 0
    for x, y in zip(a, b, strict=True):
        assert x.shape == y.shape
        np.testing.assert_allclose(x, y, rtol=rtol, atol=atol)
