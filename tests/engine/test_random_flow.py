"""Random programs of loops and branches give the same bits however and wherever they run.

What they compute is rounded alike everywhere, so that all is compared with eager execution on the default device,
where loops and branches are Python's.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import nnc_core as nnc
from nnc_core.base.errors import GraphError
from nnc_core.builtin import FLAVOURS
from nnc_core.graph import SymbolicGraph
from nnc_core.stacks import stack_for
from tests.devices import devices
from tests.engine.flow import Program, programs
from tests.sizes import WHOLE
from tests.support import same

Host = np.ndarray[Any, Any]
DEVICES = tuple(dict.fromkeys([devices()[0], *[f.id for f in FLAVOURS]]))
"""The default one first.  OpenCL, which compiles each kernel of a program, has the kit's programs instead."""


def eager(program: Program) -> list[Host]:
    with nnc.use_device(DEVICES[0]):
        return [y.numpy() for y in program(*map(nnc.asarray, program.arguments()))]


def exported(program: Program, xs: list[nnc.Tensor]) -> SymbolicGraph:
    with nnc.deferred():
        ys = program(*xs)
    return nnc.export({f"x{i}": x for i, x in enumerate(xs)}, {f"y{i}": y for i, y in enumerate(ys)},
                      on_unused="ignore")


def in_deferred_mode(program: Program, xs: list[nnc.Tensor]) -> list[nnc.Tensor]:
    with nnc.deferred():
        ys = program(*xs)
    return ys


def compiled(optimise: bool) -> Callable[[Program, list[nnc.Tensor]], list[nnc.Tensor]]:
    def run(program: Program, xs: list[nnc.Tensor]) -> list[nnc.Tensor]:
        graph = exported(program, xs)
        found: Any = graph.compile(xs[0].device.id, optimise=optimise)
        results = found(**{k: xs[int(k[1:])] for k in graph.list_inputs()})
        again = found(**{k: xs[int(k[1:])] for k in graph.list_inputs()})
        same([y.numpy() for y in again.values()], [y.numpy() for y in results.values()], "the second call")
        return list(results.values())

    return run


WAYS: dict[str, Callable[[Program, list[nnc.Tensor]], list[nnc.Tensor]]] = {
    "eager": lambda program, xs: program(*xs),
    "deferred": in_deferred_mode,
    "jit": lambda program, xs: nnc.jit(lambda *args: program(*args))(*xs),
    "compiled as written": compiled(False),
    "compiled": compiled(True),
}


COSTLY = settings(max_examples=settings().max_examples if WHOLE else 10)


@given(programs(), st.data())
@COSTLY
def test_every_mode_and_device_gives_the_same_bits(program: Program, data: st.DataObject) -> None:
    """All modes on the default device, and one on every other of the rest."""
    with nnc.config.using(deterministic=True):
        wanted = eager(program)
        first = data.draw(st.integers(0, len(WAYS) - 1))
        for k, id in enumerate(DEVICES):
            if k and (first + k) % 2:
                continue
            ways = list(WAYS) if k == 0 else [list(WAYS)[(first + k) % len(WAYS)]]
            with nnc.use_device(id):
                xs = [nnc.asarray(x) for x in program.arguments()]
                for way in ways:
                    same([y.numpy() for y in WAYS[way](program, xs)], wanted, f"{way} on {id}")


@given(programs(), st.booleans())
def test_results_may_take_the_memory_of_inputs(program: Program, optimise: bool) -> None:
    """As state is updated: the first result in place of the first input, and so on."""
    with nnc.config.using(deterministic=True), nnc.use_device("strict-poison:0"):
        wanted = eager(program)
        stack, arrays = stack_for("strict-poison:0"), program.arguments()
        graph = exported(program, [nnc.asarray(x) for x in arrays])
        pairs = tuple(zip(graph.outputs, graph.inputs, strict=False))
        try:
            graph = SymbolicGraph(graph.inputs, graph.outputs, pairs)
        except GraphError:  # equal results cannot both be state
            graph = SymbolicGraph(graph.inputs, graph.outputs, pairs[:1])
        run = stack.engine.compile(graph, optimise=optimise)
        for _ in range(2):
            found = run.run({k: run.executor.upload(arrays[int(k[1:])]) for k in graph.inputs})
            same([run.executor.download(y) for y in found.values()], wanted, "in place")


@given(programs(depth=2))
@COSTLY
def test_compiled_gradients_are_those_of_the_unrolled_program(program: Program) -> None:
    """Eager differentiates what Python's loops did; compiled, loops run back along tapes, which adds up in another
    order."""

    def loss(*xs: nnc.Tensor) -> nnc.Tensor:
        total = nnc.sum(xs[0]) * 0
        for y in program(*xs):
            total = total + nnc.sum(y * y * y)
        return total

    grad = nnc.value_and_grad(loss, tuple(range(program.inputs)))
    wanted: list[Host] | None = None
    for id in (DEVICES[0], "strict-noviews:0", "strict-poison:0"):
        with nnc.use_device(id), nnc.config.using(deterministic=True):
            xs = [nnc.asarray(x) for x in program.arguments()]
            if wanted is None:
                value, grads = grad(*xs)
                wanted = [value.numpy(), *[g.numpy() for g in grads]]
            f = nnc.jit(grad)
            for _ in range(2):
                value, grads = f(*xs)
                for a, b in zip([value, *grads], wanted, strict=True):
                    np.testing.assert_allclose(a.numpy(), b, rtol=1e-4, atol=1e-5, err_msg=id)


def test_there_are_devices_of_all_flavours() -> None:
    assert {"strict:0", "strict-noviews:0", "strict-align128:0", "strict-small:0", "strict-async:0",
            "strict-poison:0"} <= set(DEVICES)
    with pytest.raises(GraphError):
        SymbolicGraph({}, {}, (("y", "x"),))
