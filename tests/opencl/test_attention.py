"""Attention by blocks, by kernels for CPUs and those for GPUs: the composite's numbers, and memory that grows with the
length alone."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, boolean, float32, float64
from nnc_core.base.layout import Layout
from nnc_opencl.attention.backend import problem_of
from nnc_opencl.attention.kind import BlockedKind, kind_of
from nnc_opencl.device import OpenCLDevice
from tests.attention import AHEAD, BACK, Problem, Sizes, Values, command_of, drawn, near, operands_back, wanted
from tests.opencl.running import get, put

RNG = np.random.default_rng(3)


def computed(device: OpenCLDevice, command: Command, inputs: Sequence[Values], rooms: Sequence[Values]) -> list[Values]:
    """The rooms of the outputs behind the device's own code."""
    [backend] = device.backends(command.name)
    problem_of(command)
    buffers = [put(device, np.asarray(x)) for x in (*inputs, *rooms)]
    backend.prepare(command).bind(buffers)()
    return [get(device, buffer, room) for buffer, room in zip(buffers[len(inputs) :], rooms, strict=True)]


def operands(name: str, p: Problem) -> list[Values]:
    return operands_back(p) if name == BACK else [p.query, p.key, p.value, *p.mask]


def rooms_of(name: str, p: Problem) -> list[Values]:
    """Outputs that nobody has written to."""
    rows = p.query.shape[:-1]
    shapes = [x.shape for x in (p.query, p.key, p.value)] if name == BACK else [(*rows, p.value.shape[-1]), rows]
    return [np.full(shape, 77, p.query.dtype) for shape in shapes]


def run(device: OpenCLDevice, name: str, p: Problem) -> list[Values]:
    inputs, rooms = operands(name, p), rooms_of(name, p)
    return computed(device, command_of(name, inputs, rooms, p.attributes), inputs, rooms)


def check(device: OpenCLDevice, p: Problem, largest: float = 1.0) -> None:
    for name in (AHEAD, BACK):
        near(run(device, name, p), wanted(name, operands(name, p), p.attributes), p.query.dtype, largest)


@pytest.mark.parametrize(("sizes", "dtype"), [
    (Sizes(12, 12, 16, 16), float32), (Sizes(13, 1000, 3, 5), float64), (Sizes(70, 65, 64, 64), float32),
    (Sizes(30, 14, 256, 255), float32),
])  # fmt: skip
def test_lengths_that_blocks_do_not_divide(both: OpenCLDevice, sizes: Sizes, dtype: DType) -> None:
    check(both, drawn(sizes, dtype))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "key_heads"), [(6, 2), (4, 4)])
def test_batches_and_heads_that_share_keys(both: OpenCLDevice, heads: int, key_heads: int, causal: bool) -> None:
    check(both, drawn(Sizes(40, 31, 16, 17, 3, heads, key_heads), causal=causal, offset=11))


@pytest.mark.parametrize("offset", [0, 5, -30, -300, 130])
def test_causal(both: OpenCLDevice, offset: int) -> None:
    """Blocks that nobody sees are left out; of those that are crossed a part is hidden."""
    check(both, drawn(Sizes(230, 205, 16, 16), causal=True, offset=offset))


@pytest.mark.parametrize("shape", [(1, 2, 110, 120), (120,), (2, 1, 110, 1), ()])
@pytest.mark.parametrize("kind", ["boolean", "infinite"])
def test_masks(both: OpenCLDevice, shape: tuple[int, ...], kind: str) -> None:
    """A query that sees nothing gives 0."""
    seen = RNG.random(shape) < 0.6
    mask = seen if kind == "boolean" else np.where(seen, RNG.standard_normal(shape), -np.inf)
    check(both, drawn(Sizes(110, 120, 16, 16, 2, 2, 1), mask=np.asarray(mask)))


def test_masks_beside_causal(both: OpenCLDevice) -> None:
    check(both, drawn(Sizes(110, 120, 16, 16), mask=RNG.random((110, 120)) < 0.6, causal=True, offset=-5))


@pytest.mark.parametrize("strides", [(1, 0), (1, 40), (80, 2)])
def test_masks_that_lie_anyhow(both: OpenCLDevice, strides: tuple[int, int]) -> None:
    room = RNG.random(4000) < 0.5
    plain = np.lib.stride_tricks.as_strided(room[3:], (35, 40), strides).copy()
    p = drawn(Sizes(35, 40, 16, 16), mask=plain)
    for name in (AHEAD, BACK):
        inputs, rooms = operands(name, p), rooms_of(name, p)
        command = command_of(name, inputs, rooms, p.attributes)
        command = command._replace(inputs=(*command.inputs[:-1], Layout((35, 40), boolean, 3, strides)))
        for found, expected in zip(computed(both, command, [*inputs[:-1], room], rooms), run(both, name, p),
                                   strict=True):
            np.testing.assert_array_equal(found, expected)


def test_numbers_that_are_not_finite(both: OpenCLDevice) -> None:
    """A query with NaN, or with an infinite score that is not hidden, gives NaN; no other does."""
    p = drawn(Sizes(40, 200, 16, 16))
    p.query[0, 0, 3, 1], p.query[0, 0, 30, 2], p.query[0, 0, 31] = np.nan, np.inf, -np.inf
    result, sums = run(both, AHEAD, p)
    spoilt = np.isnan(result).any(-1)[0, 0]
    assert set(np.flatnonzero(spoilt)) == {3, 30, 31}
    assert (np.isnan(sums[0, 0]) == spoilt).all()
    p = drawn(Sizes(40, 200, 16, 16), mask=np.arange(200) != 150)
    p.key[0, 0, 150] = np.nan
    assert np.isfinite(run(both, AHEAD, p)[0]).all(), "what is hidden spoils nothing"


def test_scores_far_apart(both: OpenCLDevice) -> None:
    """The running maximum moves from block to block; weights that underflow are 0."""
    p = drawn(Sizes(16, 300, 16, 16))
    p.key[0, 0] *= np.linspace(0, 300, 300, dtype=np.float32)[:, None]
    check(both, p, 300)
    check(both, p._replace(key=p.key[:, :, ::-1].copy()), 300)


def turned(x: Values) -> tuple[Values, Layout]:
    """(batch, heads, length, features) with features before lengths, behind a gap: storage, and the layout."""
    batch, heads, length, _ = x.shape
    gap, size = 5, x.itemsize
    room = np.full(gap + x.size, 7, x.dtype)
    room[gap:] = x.transpose(0, 3, 1, 2).reshape(-1)
    strides = (x.size // batch * size, length * size, size, heads * length * size)
    return room, Layout(x.shape, x.dtype, gap * size, strides)


@pytest.mark.parametrize("name", [AHEAD, BACK])
def test_arrays_that_lie_anyhow(both: OpenCLDevice, name: str) -> None:
    p = drawn(Sizes(40, 31, 16, 17, 2, 4, 2), causal=True, offset=5)
    inputs, rooms = operands(name, p), rooms_of(name, p)
    command = command_of(name, inputs, rooms, p.attributes)
    given = [turned(x) if x.ndim == 4 else (x, layout) for x, layout in zip(inputs, command.inputs, strict=True)]
    taken = [turned(x) if x.ndim == 4 else (x, layout) for x, layout in zip(rooms, command.outputs, strict=True)]
    command = command._replace(inputs=tuple([layout for _, layout in given]),
                               outputs=tuple([layout for _, layout in taken]))
    found = computed(both, command, [room for room, _ in given], [room for room, _ in taken])
    for room, plain in zip(found, run(both, name, p), strict=True):
        expected = turned(plain)[0] if plain.ndim == 4 else plain
        np.testing.assert_array_equal(room, expected, err_msg="others, or what lies before them, were written")


def test_panels_fit_local_memory() -> None:
    """32 KiB is the least that a device has; without room for narrow panels there is no code."""
    p = drawn(Sizes(40, 40, 128, 128))
    inputs, rooms = operands(BACK, p), rooms_of(BACK, p)
    problem = problem_of(command_of(BACK, inputs, rooms, p.attributes))
    kinds = {size: kind_of(problem, grouped=True, local_memory=size) for size in (1 << 17, 1 << 15, 1 << 10)}
    widths = [kind.width for kind in kinds.values() if isinstance(kind, BlockedKind)]
    assert widths == [32, 8] and kinds[1 << 10] is None
    assert all(kind is None or kind.local_memory <= size for size, kind in kinds.items())


def test_what_is_refused(both: OpenCLDevice) -> None:
    for sizes in (Sizes(5, 40), Sizes(40, 40, 300, 8), Sizes(12, 12, 1, 1)):
        p = drawn(sizes)
        inputs, rooms = operands(AHEAD, p), rooms_of(AHEAD, p)
        [backend] = both.backends(AHEAD)
        assert backend.refuse(command_of(AHEAD, inputs, rooms, p.attributes)) is not None
        assert both.backends(BACK)[0].refuse(command_of(AHEAD, inputs, rooms, p.attributes)) is not None


# ---- as users call it
def loss(*arrays: Any) -> Any:
    return (nnc.scaled_dot_product_attention(*arrays, causal=True) ** 2).sum()


def test_every_mode_gives_the_same_bits_under_deterministic(device: OpenCLDevice) -> None:
    with nnc.use_device(nnc.make_stack(device)), nnc.config.using(deterministic=True):
        xs = [nnc.asarray(RNG.standard_normal((1, 2, 45, 16)).astype(np.float32)) for _ in range(3)]
        gradients = nnc.grad(loss, (0, 1, 2))
        for a, b in zip(gradients(*xs), nnc.jit(gradients)(*xs), strict=True):
            np.testing.assert_array_equal(a.numpy(), b.numpy())


@pytest.mark.parametrize("training", [False, True])
@pytest.mark.parametrize("dtype", ["float32", "float16"])
def test_memory_is_linear_in_the_length(both: OpenCLDevice, training: bool, dtype: str) -> None:
    with nnc.use_device(nnc.make_stack(both)):
        def peak(length: int) -> int:
            xs = [nnc.zeros((1, 4, length, 16), dtype=dtype) for _ in range(3)]
            code = nnc.grad(loss, (0, 1, 2)) if training else nnc.scaled_dot_product_attention
            found: int = nnc.jit(code).lower(*xs).memory_plan.peak
            return found

        assert peak(1024) <= 2 * peak(512) + 4096
