"""What one call has been allowed says nothing about another device, another layer, or another `dtype=`."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.errors import DTypeError, FallbackWarning, OperandError, ShapeError
from nnc_core.shape import Shape
from nnc_core.stacks import Stack
from nnc_core.type import Attributes, Op, TensorSpec, Type
from nnc_cpu.device import CpuDevice


class Small(CpuDevice):
    """A device without float64."""

    def __init__(self) -> None:
        super().__init__()
        dtypes = frozenset(self.spec.dtypes - {"float64", "complex128"})
        self.spec = dataclasses.replace(self.spec, id="small:0", kind="small", dtypes=dtypes)


@pytest.fixture
def small() -> Stack:
    return nnc.make_stack(Small())


def floats(stack: Stack | None = None) -> nnc.Tensor:
    return nnc.asarray(np.array([1.0, 2.0], np.float32), device=stack)


ALLOWED: dict[str, Callable[[nnc.Tensor], Any]] = {
    "astype": lambda x: [nnc.astype(x, kind) for kind in ("int32", "float16", "float32", "complex64")],
    "sum": lambda x: [nnc.sum(x), nnc.sum(x, dtype="int32")],
    "one_hot": lambda x: [nnc.one_hot(nnc.astype(x, "int32"), 3, dtype="float32") for _ in range(2)],
}
REFUSED: dict[str, Callable[[nnc.Tensor], Any]] = {
    "astype": lambda x: nnc.astype(x, "float64"), "sum": lambda x: nnc.sum(x, dtype="float64"),
    "one_hot": lambda x: nnc.one_hot(nnc.astype(x, "int32"), 3, dtype="float64"),
}  # fmt: skip


@pytest.mark.parametrize("name", ALLOWED)
@pytest.mark.parametrize("elsewhere", [False, True])
def test_a_dtype_that_a_device_lacks_is_refused_whatever_ran_before(small: Stack, name: str, elsewhere: bool) -> None:
    x = floats(small)
    ALLOWED[name](x)
    if elsewhere:
        REFUSED[name](floats())
    for _ in range(2):
        with pytest.raises(DTypeError, match="float64"):
            REFUSED[name](x)


@pytest.mark.parametrize("cast", [lambda z: nnc.astype(z, "float64"), lambda z: nnc.sum(z, dtype="float32")])
def test_an_imaginary_part_is_never_dropped_unasked(cast: Callable[[nnc.Tensor], nnc.Tensor]) -> None:
    z = nnc.asarray(np.array([1 + 2j], np.complex64))
    for kind in ("complex64", "complex128"):
        nnc.astype(z, kind)
        with pytest.raises(DTypeError, match="complex"):
            cast(z)


class NoDoubles(Type):
    """A layer of types that admits less than its device."""

    def admit(self, dtype: Any) -> Any:
        if dtype == np.float64:
            raise DTypeError("no float64 here")
        return super().admit(dtype)


class AtMostThree(Shape):
    """A layer of shapes that refuses long ones."""

    def infer(self, op: Op, specs: tuple[TensorSpec, ...], attributes: Attributes) -> TensorSpec:
        spec = super().infer(op, specs, attributes)
        if any(isinstance(d, int) and d > 3 for d in spec.shape):
            raise ShapeError(f"{spec} is too long")
        return spec


def test_layers_of_ones_own_are_asked_each_time() -> None:
    cpu = nnc.stack_for("cpu").device
    long = np.ones(4, np.float32)
    nnc.asarray(long) + nnc.asarray(long)  # the default stack accepts it
    nnc.astype(nnc.asarray(long), "float64")
    short = nnc.make_stack(cpu, Shape=AtMostThree)
    floats(short) + floats(short)
    x = nnc.asarray(long, device=short)
    with pytest.raises(ShapeError, match="too long"):
        x + x
    single = nnc.make_stack(cpu, Type=NoDoubles)
    nnc.astype(floats(single), "int32")
    with pytest.raises(DTypeError, match="no float64 here"):
        nnc.astype(floats(single), "float64")


def test_each_operand_counts_not_the_first_alone() -> None:
    x = floats()
    assert nnc.take(x, nnc.asarray([1, 0])).tolist() == [2, 1]
    for _ in range(2):
        with pytest.raises((DTypeError, OperandError)):
            nnc.take(x, nnc.asarray([1.0, 0.0]))


def test_loops_that_run_as_one_step_obey_backends_pinned_since() -> None:
    stack = nnc.make_stack(nnc.stack_for("cpu").device)
    decider = stack.engine.decider

    def shrunk() -> None:
        with nnc.deferred():
            start = nnc.asarray(np.float32(2), device=stack)
            found = nnc.while_loop(lambda x: x > 0.5, lambda x: (nnc.tanh(x),), (start,))
        nnc.realize(found)

    shrunk()
    wanted = {key: "host" for key in decider.decisions() if key.startswith("tanh(")}
    assert wanted
    decider.pin(wanted, strict=False)
    with pytest.warns(FallbackWarning, match="tanh has no kernel"):
        shrunk()
    assert {key: decider.decisions()[key] for key in wanted} == wanted
