"""How large things may be: each limit of docs/limits.md is reached here."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import stacks as composition
from nnc_core.base import dtype as dt
from nnc_core.base.command import Command
from nnc_core.base.errors import DeviceError, FallbackWarning, NotSupportedError, ShapeError
from nnc_core.base.layout import Layout
from nnc_core.builtin import FLAVOURS, StrictDevice
from nnc_core.codegen import OPENCL, render
from nnc_core.device import Registry
from nnc_core.engine.candidates import loop_nest
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS
from nnc_core.type import TensorSpec
from tests.devices import device, devices, parametrise
from tests.graph.stack import GRAPHS, OPTIMISER, new_namespace

__all__ = ["device"]

pytest_generate_tests = parametrise


def sizes(few: int, most: int) -> list[Any]:
    """The limit, and a size at which the same is seen every time."""
    return [few, pytest.param(most, marks=pytest.mark.slow)]


# ---- dimensions
DIMENSIONS = 32
LENGTHS = tuple([2 if axis % 4 == 0 else 1 for axis in range(DIMENSIONS)])
WIDE = (*LENGTHS[:-1], 3)
LAST = DIMENSIONS - 1

FAMILIES: dict[str, Callable[[Any, Any, Any], Any]] = {
    "elementwise, broadcast": lambda n, x, y: n.where(x > 0, n.exp(x) * y, x - y),
    "reduction": lambda n, x, y: n.sum(x * y, axis=tuple(range(1, LAST))),
    "extremum": lambda n, x, y: n.max(y, axis=(0, LAST)) + n.argmax(y, axis=LAST)[0].sum(),
    "permutation": lambda n, x, y: n.permute_dims(y, tuple(reversed(range(DIMENSIONS)))),
    "slice": lambda n, x, y: y[(slice(None, None, -1),) * LAST + (slice(1, None),)],
    "reshape": lambda n, x, y: n.reshape(n.reshape(y, (-1,)) * 2, WIDE),
    "join": lambda n, x, y: n.concat([x, y, n.flip(x)], axis=LAST),
    "broadcast": lambda n, x, y: n.broadcast_to(x, (*LENGTHS[:-1], 5)) * 1,
    "take": lambda n, x, y: n.take(y, n.asarray([2, 0]), axis=LAST),
    "sort": lambda n, x, y: n.sort(y, axis=LAST),
    "scan": lambda n, x, y: n.cumulative_sum(y, axis=LAST),
    "matmul": lambda n, x, y: n.matmul(x, n.matmul(n.exp(x), y)),
}


def of_dimensions(shape: tuple[int, ...], seed: int) -> Any:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def families(n: Any, x: Any, y: Any, names: Any = FAMILIES) -> list[Any]:
    return [FAMILIES[name](n, x, y) for name in names]


@pytest.mark.parametrize("compiled", [False, True], ids=["eager", "compiled"])
def test_32_dimensions(device: str, compiled: bool) -> None:
    """Every family, in one program where it is compiled."""
    a, b = of_dimensions(LENGTHS, 0), of_dimensions(WIDE, 1)
    f = partial(families, nnc)
    found = (nnc.jit(f) if compiled else f)(nnc.asarray(a), nnc.asarray(b))
    for name, got, wanted in zip(FAMILIES, found, families(np, a, b), strict=True):
        assert got.shape == wanted.shape, name
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-5, atol=1e-6, err_msg=name)


def test_gradients_in_32_dimensions() -> None:
    a, b = of_dimensions(LENGTHS, 0), of_dimensions(WIDE, 1)

    def loss(x: nnc.Tensor, y: nnc.Tensor) -> nnc.Tensor:
        return nnc.sum(nnc.matmul(x, nnc.tanh(y)) * nnc.flip(y))

    dx, dy = nnc.grad(loss, argnums=(0, 1))(nnc.asarray(a), nnc.asarray(b))
    np.testing.assert_allclose(dx.numpy(), (np.flip(b) * np.tanh(b)).sum(-1, keepdims=True), rtol=1e-4, atol=1e-5)
    np.testing.assert_allclose(dy.numpy(), np.flip(b) * a * (1 - np.tanh(b) ** 2) + np.flip(a * np.tanh(b)), rtol=1e-4,
                               atol=1e-5)


def test_64_dimensions_are_the_most(device: str) -> None:
    x = nnc.ones((1,) * 64)
    assert (x + 1).shape == (1,) * 64 and nnc.sum(x).item() == 1
    for build in (lambda: nnc.ones((1,) * 65), lambda: nnc.expand_dims(x, axis=0), lambda: nnc.reshape(x, (1,) * 65)):
        with pytest.raises(ShapeError, match="65 dimensions, of which arrays have at most 64"):
            build()


# ---- elements
FAR = 2**16


def nest_of(name: str, *inputs: Layout, out: Layout, attributes: tuple[Any, ...] = ()) -> Any:
    return loop_nest(OPERATORS[name], Command(name, attributes, inputs, (out,)))


@pytest.mark.parametrize(("layout", "wanted"), [
    (Layout.packed((2**31 - 1,), dt.int8), "int"), (Layout.packed((2**31,), dt.int8), "long"),
    (Layout.packed((2**20, 2**12), dt.int8), "long"), (Layout((4,), np.dtype(dt.int8), 2**31, (1,)), "long"),
    (Layout((2, 2), np.dtype(dt.int8), 0, (2**31, 1)), "long"),
])
def test_generated_kernels_count_in_64_bits_where_it_takes_them(layout: Layout, wanted: str) -> None:
    """By their source: of more elements than 2**31 - 1, and of few elements that lie so far apart."""
    source = render(nest_of("negative", layout, out=Layout.packed(layout.shape, dt.int8)), OPENCL)
    assert f"const {wanted} x0" in source or f"{wanted} rest" in source


def test_a_view_of_more_than_2_to_the_31_elements(device: str) -> None:
    """One element, seen 2**32 times: of what is read, a few are computed."""
    x = nnc.broadcast_to(nnc.asarray(np.array([7], np.int8)), (FAR, FAR))
    if device != "opencl:0":  # which has no view of it, and would make it
        assert x.size == 2**32 and (x[FAR - 1 :, FAR - 3 :] + 1).tolist() == [[8, 8, 8]]

    @nnc.jit
    def last(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.broadcast_to(x, (FAR, FAR))[FAR - 1 :, FAR - 3 :] + 1

    assert last(nnc.asarray(np.array([7], np.int8))).tolist() == [[8, 8, 8]]


@pytest.mark.slow
def test_more_than_2_to_the_31_elements_in_memory() -> None:
    """int8: 2 GiB for each array, of which no more than two are there at once."""
    size = 2**31 + 5
    x = nnc.concat([nnc.zeros((size - 2,), dtype="int8"), nnc.asarray(np.array([3, 0], np.int8))])
    assert x[size - 3 :].tolist() == [0, 3, 0] and nnc.argmax(x).item() == size - 2
    y = x + 1
    del x
    assert y[size - 3 :].tolist() == [1, 4, 1] and (nnc.max(y).item(), nnc.argmax(y).item()) == (4, size - 2)
    found = [nnc.any(y == n).item() for n in (4, 3)]  # an assertion would keep what it compares
    assert found == [True, False]


# ---- inputs of one operator
MANY = 10_000


def many(count: int = MANY) -> list[nnc.Tensor]:
    return [nnc.asarray(np.full((1,), i, np.float32)) for i in range(count)]


def joined(*xs: nnc.Tensor) -> nnc.Tensor:
    return nnc.concat(xs) * 2


def test_10_000_inputs_of_one_operator() -> None:
    xs = many()
    wanted = np.arange(MANY, dtype=np.float32) * 2
    np.testing.assert_array_equal(joined(*xs).numpy(), wanted)
    np.testing.assert_array_equal(nnc.jit(joined)(*xs).numpy(), wanted)
    vs = [nnc.variable(x) for x in xs]
    nnc.sum(nnc.stack(vs) ** 2).backward()
    assert [v.grad.item() for v in vs if v.grad is not None] == wanted.tolist()


@pytest.mark.parametrize("count", sizes(600, MANY))
@pytest.mark.filterwarnings("ignore:concat has no kernel")
def test_many_inputs_of_one_operator_on_every_device(device: str, count: int) -> None:
    """Kernels of OpenCL devices take a few hundred buffers: such a join runs on the host, and says so."""
    wanted = np.arange(count, dtype=np.float32) * 2
    np.testing.assert_array_equal(joined(*many(count)).numpy(), wanted)
    np.testing.assert_array_equal(nnc.jit(joined)(*many(count)).numpy(), wanted)


def test_a_kernel_of_too_many_buffers_is_refused_not_built() -> None:
    if "opencl:0" not in devices():
        pytest.skip("no OpenCL device")
    stack = composition.stack_for("opencl:0")
    parts = [Layout.packed((1,), dt.int16)] * MANY
    nest = nest_of("concat", *parts, out=Layout.packed((MANY,), dt.int16), attributes=(0,))
    with pytest.raises(NotSupportedError, match="takes 10001 buffers; a kernel takes at most"):
        stack.device.compile(nest)
    with nnc.use_device("opencl:0"), pytest.warns(FallbackWarning, match="concat has no kernel .*10001 buffers"):
        stack.engine.builder.announced.discard("concat")
        assert nnc.concat([nnc.asarray(np.array([i], np.int16)) for i in range(MANY)])[-1].item() == MANY - 1


# ---- readers of one value
FAN = 100_000


def read_by_many(count: int = FAN) -> SymbolicGraph:
    F = new_namespace()
    x = F.placeholder("x", TensorSpec((1,), dt.float64))
    return SymbolicGraph({"x": x}, {"y": F.concat(*[F.broadcast_to(x, shape=(i + 2,)) for i in range(count)], axis=0)})


def test_a_value_that_100_000_others_read() -> None:
    """All of them read by one operator."""
    graph = read_by_many()
    assert graph.complexity == (FAN + 2, 2 * FAN)
    (better,) = OPTIMISER.run(list(graph.outputs.values()))
    assert better.spec == graph.outputs["y"].spec and len(better.inputs) == FAN


@pytest.mark.parametrize("count", sizes(1000, FAN))
def test_the_gradient_of_a_value_that_many_others_read(count: int) -> None:
    graph = read_by_many(count)
    total = new_namespace().sum(graph.outputs["y"], axis=(0,))
    found = GRAPHS.grad(SymbolicGraph(graph.inputs, {"y": total}), "y", ["x"])
    assert len(found.nodes) > 3 * count and found.outputs["dx"].shape == (1,)


@pytest.mark.parametrize("count", sizes(1000, FAN))
def test_a_value_that_many_others_read_in_every_mode(count: int) -> None:
    v = nnc.variable(2.0)
    with nnc.deferred():
        total = v * 0.0
        for i in range(1, count):
            total = total + v * float(i % 8)
    wanted = float(sum(i % 8 for i in range(count)))
    total.backward()
    assert total.item() == 2 * wanted and v.grad is not None and v.grad.item() == wanted
    x = nnc.var_arr("x", ())
    y = x * 0.0
    for i in range(1, count):
        y = y + x * float(i % 8)
    assert nnc.export({"x": x}, {"y": y}).compile("cpu:0")(x=np.float32(2))["y"].item() == 2 * wanted


# ---- depth
DEPTH = 100


def branches(depth: int) -> Callable[[nnc.Tensor], nnc.Tensor]:
    if not depth:
        return lambda x: x * 2
    inner = branches(depth - 1)
    return lambda x: nnc.cond(nnc.sum(x) > 0, lambda y: inner(y) + 1, lambda y: y - 1, x)


def loops(depth: int) -> Callable[[nnc.Tensor], nnc.Tensor]:
    if not depth:
        return lambda x: x * 2
    inner = loops(depth - 1)

    def once(x: nnc.Tensor) -> nnc.Tensor:
        return nnc.while_loop(lambda a, n: n < 1, lambda a, n: (inner(a) + 1, n + 1), (x, nnc.asarray(0)))[0]

    return once


@pytest.mark.parametrize("nested", [branches, loops])
def test_control_flow_100_deep(nested: Callable[[int], Any]) -> None:
    f, x = nested(DEPTH), nnc.asarray([1.0, 2.0])
    assert nnc.jit(f)(x).tolist() == [2 + DEPTH, 4 + DEPTH]


@pytest.mark.parametrize("depth", sizes(8, DEPTH))
@pytest.mark.parametrize("nested", [branches, loops])
def test_deep_control_flow_on_every_device(device: str, nested: Callable[[int], Any], depth: int) -> None:
    f, x = nested(depth), nnc.asarray([1.0, 2.0])
    assert nnc.jit(f)(x).tolist() == [2 + depth, 4 + depth]
    with nnc.deferred():
        y = f(x)
    graph = nnc.export({"x": x}, {"y": y})
    assert str(graph).count("case_of" if nested is branches else "loop") >= depth
    assert graph.compile(device)(x=x)["y"].tolist() == [2 + depth, 4 + depth]


@pytest.mark.parametrize("depth", sizes(8, DEPTH))
def test_the_gradient_of_deep_branches(depth: int) -> None:
    f = branches(depth)
    assert nnc.jit(nnc.grad(lambda x: nnc.sum(f(x))))(nnc.asarray([1.0, 2.0])).tolist() == [2, 2]


def test_the_gradient_of_loops_10_deep() -> None:
    f = loops(10)
    assert nnc.jit(nnc.grad(lambda x: nnc.sum(f(x))))(nnc.asarray([1.0, 2.0])).tolist() == [2, 2]


# ---- devices
DEVICES = 4096


@pytest.fixture
def thousands(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[str]]:
    """4,096 more devices, in a registry that goes away."""
    nnc.devices()
    registry, known = Registry(), composition.registry
    for id in known.ids:
        registry.add(id, partial(known.get, id))
    ids = [f"many:{i}" for i in range(DEVICES)]
    for id in ids:
        flavour: Any = type("Numbered", (type(FLAVOURS[0]),), {"__slots__": (), "id": id})()
        registry.add(id, partial(StrictDevice, flavour))
    monkeypatch.setattr(composition, "registry", registry)
    monkeypatch.setattr(composition, "_stacks", dict(composition._stacks))
    yield ids


def test_4_096_devices(thousands: list[str]) -> None:
    """All open, each holds a value; one graph goes through all of them."""
    xs = [nnc.asarray(np.array([i], np.int32), device=id) for i, id in enumerate(thousands)]
    assert [x.device.id for x in xs] == thousands and all(x.item() == i for i, x in enumerate(xs))
    assert len(nnc.devices()) >= DEVICES
    with pytest.raises(DeviceError, match=r"no device 'many:5000'; there are: .* and \d+ more"):
        nnc.asarray(1, device="many:5000")
    with nnc.deferred():
        moved = xs[7]
        for id in thousands[:256]:
            moved = moved.to(id)
    assert nnc.export({"x": xs[7]}, {"y": moved}).compile(thousands[7])(x=xs[7])["y"].item() == 7


@pytest.mark.parametrize("count", sizes(64, DEVICES))
def test_many_devices_compute(thousands: list[str], count: int) -> None:
    x = nnc.asarray(np.array([0], np.int32), device=thousands[0])
    with nnc.deferred():
        moved = x
        for id in thousands[1:count]:
            moved = moved.to(id) + 1
    assert moved.item() == count - 1 and moved.device.id == thousands[count - 1]
    found = nnc.export({"x": x}, {"y": moved}).compile(thousands[0])(x=x)["y"]
    assert found.item() == count - 1
