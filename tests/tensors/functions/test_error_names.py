"""Whatever is wrong with its arguments, an error names the public function that was called, and the caller's line."""

from __future__ import annotations

import inspect
import random
from collections.abc import Callable, Iterator
from contextlib import nullcontext
from zlib import crc32

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.functions import public

TRIALS = 8


def _public() -> Iterator[tuple[str, Callable[..., object]]]:
    for prefix, module in (("", public), ("linalg.", nnc.linalg), ("fft.", nnc.fft)):
        for name, f in vars(module).items():
            if inspect.isfunction(f) and not name.startswith("_") and "nnc_core" in f.__module__:
                yield prefix + name, f


FUNCTIONS = dict(_public())


def _arguments() -> list[object]:
    """Arrays of shapes and dtypes that seldom fit, and what is no array at all."""
    arrays = [np.ones((2, 3), np.float32), np.ones((4, 5), np.float32), np.ones(0, np.float32), np.float32(1),
              np.ones((2, 2), np.bool_), np.ones((2, 2), np.int32), np.ones((3, 3), np.complex64),
              np.ones((1, 2, 1, 2, 3), np.float32), np.ones(7, np.float32)]  # fmt: skip
    return [*map(nnc.asarray, arrays), -3, "nonsense", None]


def _trials(f: Callable[..., object], name: str) -> Iterator[tuple[list[object], dict[str, object]]]:
    """Arguments for a call that Python itself does not refuse."""
    rng, signature = random.Random(crc32(name.encode())), inspect.signature(f)
    given = _arguments()
    parameters = signature.parameters.values()
    places = [p for p in parameters if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD)]
    needed = sum([p.default is p.empty for p in places])
    named = [p.name for p in parameters if p.kind is p.KEYWORD_ONLY and p.default is p.empty]
    several = any([p.kind is p.VAR_POSITIONAL for p in parameters])
    for _ in range(TRIALS):
        count = max(needed, 2) if several else rng.choice([needed, needed, min(len(places), needed + 1)])
        args = [rng.choice(given) for _ in range(count)]
        kwargs = {k: rng.choice(given) for k in named}
        if "axis" in signature.parameters and signature.parameters["axis"].kind is inspect.Parameter.KEYWORD_ONLY:
            kwargs.setdefault("axis", rng.choice([0, 1, 5, -9]))
        yield args, kwargs


@pytest.mark.filterwarnings("ignore::nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("mode", ["eager", "deferred"])
@pytest.mark.parametrize("name", sorted(FUNCTIONS))
def test_errors_name_the_function_that_was_called(name: str, mode: str) -> None:
    f = FUNCTIONS[name]
    own = {name.rpartition(".")[2], f.__name__}
    with nnc.use_device("strict:0"):
        for args, kwargs in _trials(f, name):
            try:
                with nnc.deferred() if mode == "deferred" else nullcontext():
                    f(*args, **kwargs)
            except nnc.Error as error:
                assert error.operator in own, f"{args} {kwargs}: {error}"
                assert "test_error_names.py" in str(error.line) and "Layout(" not in str(error), str(error)


@pytest.mark.parametrize(("call", "name", "text"), [
    (lambda x: nnc.fft.fft2(x[0]), "fft2", "axis -2 is out of range"),
    (lambda x: nnc.where(x, "x", x), "where", "str is no array"),
    (lambda x: nnc.where("x"), "where", "str is no array"),
    (lambda x: nnc.tile(x, "no"), "tile", "a dimension of the result would be 'no', a str"),
    (lambda x: nnc.diag(x[0], x[0, 0]), "diag", "a Tensor|truth value of a symbol"),
    (lambda x: nnc.broadcast_to(x, (2.5, 2, 3)), "broadcast_to", "2.5"),
    (lambda x: nnc.resize(nnc.ones((1, 4, 4, 1)), None), "resize", "size None is neither"),
    (lambda x: nnc.upsample(nnc.ones((1, 4, 4, 1)), None), "upsample", "scale None is neither"),
])  # fmt: skip
@pytest.mark.parametrize("mode", ["eager", "deferred", "jit"])
def test_nonsense_is_refused_where_it_is_given(call: Callable[..., object], name: str, text: str, mode: str) -> None:
    x = nnc.ones((2, 3))
    with pytest.raises(nnc.Error, match=text) as caught, nnc.deferred() if mode == "deferred" else nullcontext():
        (nnc.jit(call) if mode == "jit" else call)(x)
    assert caught.value.operator == name and "test_error_names.py" in str(caught.value.line)
