"""Every public function, called with arguments of a wrong kind: one clear error of ours that says where, or a result.

Each argument without a default is of a wrong kind, all of them or one beside good arrays; then each option on its own.
What is thrown is an nnc.Error, which names the function or the line here, and the next call works.
"""

from __future__ import annotations

import inspect
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc

GOOD = nnc.ones((2, 3))
WRONG: dict[str, Any] = {
    "an integer": 5, "a fraction": 1.5, "nothing": None, "a text": "abc", "a list": [1, 2], "a dict": {},
    "an object": object(), "a complex number": 1j, "a function": lambda *_, **__: None,
    "no elements": nnc.zeros((0,)), "a scalar": nnc.asarray(2.0), "three dimensions": nnc.ones((2, 3, 4)),
    "NaN": nnc.asarray([np.nan, 1.0]), "complex": nnc.asarray([1 + 2j, 3]), "booleans": nnc.asarray([True, False]),
    "bytes": nnc.asarray([1, 2], dtype="uint8"), "an array of objects": np.array([object()]),
}  # fmt: skip
AXES: tuple[Any, ...] = (7, "x", 1.5, (0, 0), object())
LEFT_OUT = {
    "callback": "calls what it is given with arrays, and hands on what that raises",
    "delay": "calls what it is given with arrays, and hands on what that raises",
    "debug_print": "prints whatever it is given",
    "lazy_print": "prints whatever it is given",
    "manual_seed": "starts the generator again that other tests draw from",
    "make_stack": "its options are classes to be subclassed, which are trusted",
}


def public() -> list[Any]:
    return [pytest.param(module, name, id=f"{module.__name__.replace('nnc_core', 'nnc')}.{name}")
            for module in (nnc, nnc.linalg, nnc.fft) for name in module.__all__
            if inspect.isfunction(getattr(module, name)) and name not in LEFT_OUT]


def calls(f: Callable[..., Any]) -> Iterator[tuple[list[Any], dict[str, Any]]]:
    """Positional and named arguments."""
    parameters = inspect.signature(f).parameters
    needed = [p for p in parameters.values() if p.default is p.empty]
    count = sum(p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD) for p in needed)
    named = [p.name for p in needed if p.kind is p.KEYWORD_ONLY]
    options = [p.name for p in parameters.values()
               if p.default is not p.empty and p.kind in (p.KEYWORD_ONLY, p.POSITIONAL_OR_KEYWORD)]
    for wrong in WRONG.values():
        yield [wrong] * count, dict.fromkeys(named, wrong)
        if count > 1:
            yield [wrong, *[GOOD] * (count - 1)], dict.fromkeys(named, 3)
            yield [*[GOOD] * (count - 1), wrong], dict.fromkeys(named, 3)
    for option in options:
        for wrong in AXES if option == "axis" else (None, "abc", 1j, [object()]):
            yield [GOOD] * count, {**dict.fromkeys(named, 3), option: wrong}


def is_pythons(error: Exception) -> bool:
    """Whether Python says that an argument is missing."""
    return isinstance(error, TypeError) and "missing" in str(error) and "required" in str(error)


@pytest.mark.parametrize(("module", "name"), public())
def test_one_clear_error_or_a_result(module: ModuleType, name: str) -> None:
    f = getattr(module, name)
    for args, options in calls(f):
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                f(*args, **options)
        except nnc.Error as error:
            text = str(error)
            assert text.startswith(f"{f.__name__}: ") or Path(__file__).name in text, f"{args}, {options}: {text}"
        except Exception as error:
            if not is_pythons(error):
                pytest.fail(f"{name}(*{args}, **{options}): {type(error).__name__}: {error}")
    assert (nnc.ones(2) + 1).tolist() == [2, 2]


def test_what_is_left_out_is_there() -> None:
    assert all(hasattr(nnc, name) for name in LEFT_OUT)


SAID: dict[str, tuple[type[Exception], str, Callable[[], Any]]] = {
    "export": (TypeError, "export: inputs is a tensor float32[2,3], expected a dict from texts to tensors",
               lambda: nnc.export(GOOD, GOOD)),
    "gradients": (TypeError, "gradients: y is 5 (int), expected a Tensor or a sequence of tensors",
                  lambda: nnc.gradients(5, [GOOD])),
    "backward": (TypeError, "backward: y is None, expected a Tensor or a sequence of tensors",
                 lambda: nnc.backward(None)),
    "depends_on": (TypeError, "depends_on: x is [1] (list), expected a Tensor", lambda: nnc.depends_on(GOOD, [1])),
    "eval_graph": (TypeError, "eval_graph: graph is a tensor float32[2,3], expected an AssignedGraph",
                   lambda: nnc.eval_graph(GOOD)),
    "restore": (TypeError, "restore: snapshot is 5 (int), expected a Snapshot", lambda: nnc.restore(5)),
    "vjp": (TypeError, "vjp: f is int, not a function", lambda: nnc.vjp(5, GOOD)),
    "a tangent too few": (ValueError, "jvp: a tangent is 1 tensors where there are 2",
                          lambda: nnc.jvp(nnc.add, [GOOD, GOOD], [GOOD])),
    "argnums": (ValueError, "a derivative by argument 1 of a call with 1 positional arguments",
                lambda: nnc.grad(nnc.sum, argnums=1)(GOOD)),
    "concat": (TypeError, "concat: arrays is 5 (int), expected a sequence of arrays", lambda: nnc.concat(5)),
    "permute_dims": (TypeError, "permute_dims: axes is 5 (int), expected a sequence of integers",
                     lambda: nnc.permute_dims(GOOD, 5)),
    "keepdims": (TypeError, "sum: keepdims is None, expected True or False", lambda: nnc.sum(GOOD, keepdims=None)),
    "an index of split": (ValueError, "the indices have 2 dimensions, expected one",
                          lambda: nnc.split(GOOD, [[1, 2], [3, 4]])),
    "a split at fractions": (TypeError, "a list of indices is float64, not of integers",
                             lambda: nnc.split(GOOD, [0.5])),
    "a shift": (ValueError, "roll: a shift 1.5 is no integer", lambda: nnc.roll(GOOD, 1.5)),
    "segments": (TypeError, "segment_sum: segment_ids are float32, not integers",
                 lambda: nnc.segment_sum(nnc.ones(2), nnc.asarray([np.nan, 1.0]))),
    "a number of segments": (ValueError, "segment_sum: num_segments nan is no integer from 0 on",
                             lambda: nnc.segment_sum(nnc.ones(2), [0, 1], float("nan"))),
    "rfftn of a scalar": (ValueError, "rfftn: there is no axis to transform of float32[]",
                          lambda: nnc.fft.rfftn(2.0)),
    "rotary": (ValueError, "rotary_embedding: x is float32[], expected (..., features)",
               lambda: nnc.rotary_embedding(1.0, 1.0, 1.0)),
    "einsum": (TypeError, "einsum: names of axes is 5 (int), expected a list of integers",
               lambda: nnc.einsum(GOOD, 5)),
    "lstm": (TypeError, "lstm: weights is 5 (int), expected a RecurrentWeights or a sequence of RecurrentWeights",
             lambda: nnc.lstm(nnc.ones((2, 2, 2)), 5)),
    "lu_solve": (TypeError, "lu_solve: factors is 5 (int), expected a pair of arrays",
                 lambda: nnc.linalg.lu_solve(5, GOOD)),
    "pad": (ValueError, "which is no width", lambda: nnc.pad(GOOD, 1j)),
    "kaiser": (TypeError, "kaiser: beta is 'abc' (str), expected a number", lambda: nnc.kaiser(3, "abc")),
    "nms": (TypeError, "nms: iou_threshold is None, expected a number", lambda: nnc.nms(GOOD, GOOD, None)),
    "tri": (TypeError, "tri: shape (None, None): NoneType is no dimension", lambda: nnc.tri(None)),
    "a generator": (TypeError, "dropout: generator is int, expected a nnc.Generator",
                    lambda: nnc.dropout(GOOD, 0.5, generator=3)),
    "a device": (ValueError, "5 names no device", lambda: nnc.ones(2, device=5)),
    "arange": (TypeError, "arange: stop is nan, expected a finite real number", lambda: nnc.arange(float("nan"))),
    "range": (TypeError, "histogram: range is 5 (int), expected a pair of numbers",
              lambda: nnc.histogram(GOOD, range=5)),
}  # fmt: skip


@pytest.mark.parametrize("name", SAID)
def test_what_is_said(name: str) -> None:
    kind, said, call = SAID[name]
    with pytest.raises(nnc.Error) as caught:
        call()
    assert isinstance(caught.value, kind) and said in str(caught.value), str(caught.value)
    assert Path(__file__).name in str(caught.value), str(caught.value)


def test_the_users_own_mistakes_stay_what_they_are() -> None:
    def mistaken(x: Any) -> Any:
        return x + len(5)  # type: ignore[arg-type]

    with pytest.raises(TypeError, match="has no len") as caught:
        nnc.jvp(mistaken, [GOOD], [GOOD])
    assert not isinstance(caught.value, nnc.Error)


def test_lists_numbers_and_arrays_are_like_something_too() -> None:
    rows = np.ones((2, 3), np.float64)
    for given, shape, dtype in (([1, 2], (2,), "int64"), (2.5, (), "float32"), (rows, (2, 3), "float64")):
        for make, number in ((nnc.zeros_like, 0), (nnc.ones_like, 1), (nnc.empty_like, 0)):
            made = make(given)
            assert (made.shape, str(made.dtype)) == (shape, dtype) and (made.numpy() == number).all()
        assert (nnc.full_like(given, 7).numpy() == 7).all()
        assert str(nnc.astype(given, "float16").dtype) == "float16"
