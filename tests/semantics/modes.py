"""The ways of running a computation.  Each must give what eager execution gives, to the bit.

The first four are those of MXNet's harness for deferred compute, the fifth is a compiled function called twice.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np

import nnc_core as nnc
from nnc_core.values.tree import flatten
from tests.support import same

MODES = ("deferred", "deferred then eager", "symbolic", "all in turn", "jit")
Host = np.ndarray[Any, Any]
Computation = Callable[..., Any]
"""Tensors in; a tensor or a structure of tensors out."""


def tensors(tree: Any) -> list[nnc.Tensor]:
    """The tensors of a structure, from left to right."""
    return [x for x in flatten(tree)[0] if isinstance(x, nnc.Tensor)]


def hosts(tree: Any) -> list[Host]:
    """The same on the host."""
    return [y.numpy() for y in tensors(tree)]


def used_eagerly(ys: Sequence[nnc.Tensor]) -> list[Host]:
    """Each through one more operator, run now."""
    assert not nnc.is_deferred_mode()
    return [(nnc.logical_or(y, y) if y.dtype == nnc.bool else y + 0).numpy() for y in ys]


def exported(ys: Sequence[nnc.Tensor], inputs: Mapping[str, nnc.Tensor], **options: Any) -> list[Host]:
    """Through a graph from the inputs to the results, compiled for their device and called."""
    graph = nnc.export(inputs, {f"y{k}": y for k, y in enumerate(ys)}, **options)
    assert graph.list_outputs() == [f"y{k}" for k in range(len(ys))]
    given = {name: inputs[name] for name in graph.list_inputs()}
    assert "on_unused" in options or list(given) == list(inputs)
    found = graph.compile(ys[0].device.id)(**given)
    return [found[name].numpy() for name in graph.list_outputs()]


def recorded(f: Computation, *args: Any) -> list[nnc.Tensor]:
    """The results of f, whatever they are made of, not computed yet."""
    with nnc.deferred():
        ys = tensors(f(*args))
    given = {id(x._value) for x in tensors(args)}
    assert all(y.is_deferred or id(y._value) in given for y in ys), "recording has computed something"
    return ys


Comparison = Callable[[Sequence[Host], Sequence[Host]], None]


def check(mode: str, f: Computation, *args: Any, outside: Mapping[str, nnc.Tensor] | None = None,
          compare: Comparison = same, **options: Any) -> None:
    """f(*args) in one of the modes against eager; `outside`: what f reads besides, an input of the exported graph."""
    eager = tensors(f(*args))
    wanted = hosts(eager)
    if mode == "jit":
        compiled = nnc.jit(f)
        for _ in range(2):
            compare(hosts(compiled(*args)), wanted)
        assert compiled.traces == 1, "the second call was traced again"
        return
    inputs = {f"x{k}": x for k, x in enumerate(tensors(args))} | dict(outside or {})
    ys = recorded(f, *args)
    check_recorded(mode, ys, inputs, eager, compare, **options)


def check_recorded(mode: str, ys: Sequence[nnc.Tensor], inputs: Mapping[str, nnc.Tensor],
                   eager: Sequence[nnc.Tensor], compare: Comparison = same, **options: Any) -> None:
    """Recorded tensors in one of the four ways; "all in turn" computes them again and again: history must stay."""
    wanted = hosts(eager)
    if mode in ("deferred", "all in turn"):
        compare(hosts(ys), wanted)
    if mode in ("deferred then eager", "all in turn"):
        compare(used_eagerly(ys), used_eagerly(eager))
    if mode in ("symbolic", "all in turn"):
        compare(exported(ys, inputs, **options), wanted)
    if mode == "all in turn":
        compare(hosts(ys), wanted)
        compare(exported(ys, inputs, **options), wanted)
        compare(used_eagerly(ys), used_eagerly(eager))
