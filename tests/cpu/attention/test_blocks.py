"""Attention by blocks: the composite's numbers, and the same bits whatever the width, the threads and where arrays
lie."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import pytest

from nnc_core.base.config import config
from nnc_core.base.dtype import DType, boolean, float16, float32, float64
from nnc_core.base.layout import Layout
from nnc_cpu.addresses import arguments_of
from nnc_cpu.attention.backend import BlockedAttention, arranged
from nnc_cpu.attention.kernel import ForwardKernel
from nnc_cpu.attention.kind import BLOCK
from nnc_cpu.attention.plan import CHUNK
from nnc_cpu.memory import bytes_of
from tests.attention import AHEAD, BACK, Problem, Sizes, Values, command_of, drawn, near, operands_back, wanted
from tests.cpu.attention.running import HOSTS, ahead, back, compiler, computed
from tests.cpu.products.running import same_bits

RNG = np.random.default_rng(3)


def check(p: Problem, largest: float = 1.0, hosts: Iterable[str] = HOSTS) -> None:
    """Both ways on several hosts: the same bits, near the composite's numbers."""
    inputs = operands_back(p)
    dtype = p.query.dtype
    found = [(*ahead(host, p), *back(host, p, inputs)) for host in hosts]
    near(found[0][:2], wanted(AHEAD, [p.query, p.key, p.value, *p.mask], p.attributes), dtype, largest)
    near(found[0][2:], wanted(BACK, inputs, p.attributes), dtype, largest)
    for other in found[1:]:
        assert all(map(same_bits, found[0], other)), "another width of vectors gives other bits"


@pytest.mark.parametrize(("sizes", "dtype"), [
    (Sizes(12, 12, 16, 16), float32), (Sizes(13, 1000, 3, 5), float64), (Sizes(BLOCK, BLOCK, 16, 16), float32),
    (Sizes(BLOCK + 1, 2 * BLOCK - 1, 17, 1), float64), (Sizes(200, 12, 1, 33), float32),
    (Sizes(70, 65, 64, 64), float32), (Sizes(30, 14, 256, 255), float32), (Sizes(40, CHUNK + 1, 19, 37), float64),
])  # fmt: skip
def test_lengths_that_blocks_do_not_divide(sizes: Sizes, dtype: DType) -> None:
    check(drawn(sizes, dtype))


@pytest.mark.parametrize("causal", [False, True])
@pytest.mark.parametrize(("heads", "key_heads"), [(1, 1), (6, 6), (6, 2), (4, 1)])
def test_batches_and_heads_that_share_keys(heads: int, key_heads: int, causal: bool) -> None:
    check(drawn(Sizes(20, 31, 16, 17, 3, heads, key_heads), causal=causal, offset=11))


@pytest.mark.parametrize("offset", [0, 1, -1, 5, -30, -300, 130, 300])
def test_causal(offset: int) -> None:
    """Blocks that nobody sees are left out; of those that are crossed a part is hidden."""
    check(drawn(Sizes(230, 205, 16, 16), causal=True, offset=offset))


@pytest.mark.parametrize("shape", [(1, 2, 110, 120), (110, 120), (120,), (2, 1, 1, 120), (2, 1, 110, 1), (1,), ()])
@pytest.mark.parametrize("kind", ["boolean", "added", "infinite"])
def test_masks(shape: tuple[int, ...], kind: str) -> None:
    """A query that sees nothing gives 0."""
    seen = RNG.random(shape) < 0.6
    numbers = RNG.standard_normal(shape)
    mask = {"boolean": seen, "added": numbers, "infinite": np.where(seen, numbers, -np.inf)}[kind]
    check(drawn(Sizes(110, 120, 16, 16, 2, 2, 1), mask=np.asarray(mask)), hosts=("here", "four lanes"))


@pytest.mark.parametrize("shape", [(110, 120), (120,)])
def test_masks_beside_causal(shape: tuple[int, ...]) -> None:
    check(drawn(Sizes(110, 120, 16, 16), mask=RNG.random(shape) < 0.6, causal=True, offset=-5))


def test_numbers_that_are_not_finite() -> None:
    """A query with NaN, or with an infinite score that is not hidden, gives NaN; no other does."""
    p = drawn(Sizes(40, 200, 16, 16))
    p.query[0, 0, 3, 1], p.query[0, 0, 30, 2], p.query[0, 0, 31] = np.nan, np.inf, -np.inf
    result, sums = ahead("here", p)
    spoilt = np.isnan(result).any(-1)[0, 0]
    assert set(np.flatnonzero(spoilt)) == {3, 30, 31}
    assert (np.isnan(sums[0, 0]) == spoilt).all()
    p = drawn(Sizes(40, 200, 16, 16), mask=np.arange(200) != 150)
    p.key[0, 0, 150] = np.nan
    assert np.isfinite(ahead("here", p)[0]).all(), "what is hidden spoils nothing"
    p.value[0, 0, 20, 1] = np.nan
    assert np.isnan(ahead("here", p)[0][..., 1]).all()


def test_scores_far_apart() -> None:
    """The running maximum moves from block to block; weights that underflow are 0."""
    p = drawn(Sizes(16, 300, 16, 16))
    p.key[0, 0] *= np.linspace(0, 300, 300, dtype=np.float32)[:, None]
    check(p, 300)
    check(p._replace(key=p.key[:, :, ::-1].copy()), 300)


# ---- where arrays lie
def in_columns(x: Values, gap: int) -> tuple[Values, Layout]:
    """(batch, heads, length, features) as (batch, length, heads, features) with gaps: storage, and the layout."""
    batch, heads, length, features = x.shape
    room = np.full((batch, length, heads * features + gap), 7, x.dtype)
    room[..., gap:] = x.swapaxes(1, 2).reshape(batch, length, -1)
    size, row = x.itemsize, (heads * features + gap) * x.itemsize
    return room, Layout(x.shape, x.dtype, gap * size, (length * row, features * size, row, size))


@pytest.mark.parametrize("gap", [0, 3])
def test_heads_behind_the_length(gap: int) -> None:
    p = drawn(Sizes(20, 31, 16, 17, 2, 4, 2), causal=True, offset=5)
    for name, inputs, compute in ((AHEAD, [p.query, p.key, p.value], ahead), (BACK, operands_back(p), back)):
        plain = compute("here", p)
        command = command_of(name, inputs, plain, p.attributes)
        matrices = 3 if name == AHEAD else 4
        rooms = [in_columns(x, gap) for x in inputs[:matrices]]
        outs = [in_columns(np.zeros_like(x), gap) for x in plain if x.ndim == 4]
        rest = command.outputs[len(outs) :]
        command = command._replace(inputs=(*[layout for _, layout in rooms], *command.inputs[matrices:]),
                                   outputs=(*[layout for _, layout in outs], *rest))
        found = [room for room, _ in outs] + [np.zeros(x.shape, x.dtype) for x in rest]
        computed("here", command, [room for room, _ in rooms] + inputs[matrices:], found)
        for (room, _), x in zip(outs, plain, strict=False):
            assert same_bits(room, in_columns(x, gap)[0]), "other elements, or what lies between them, were written"


@pytest.mark.parametrize("operator", [AHEAD, BACK])
def test_features_that_lie_apart_are_copied(operator: str) -> None:
    """A key that was turned is claimed as any other is."""
    p = drawn(Sizes(20, 31, 16, 16))
    inputs = [p.query, p.key, p.value] if operator == AHEAD else operands_back(p)
    plain = ahead("here", p) if operator == AHEAD else back("here", p)
    command = command_of(operator, inputs, plain, p.attributes)
    turned = np.ascontiguousarray(p.key.swapaxes(2, 3))
    key = Layout(p.key.shape, float32, 0, (1, 1, 4, 31 * 4))
    command = command._replace(inputs=(command.inputs[0], key, *command.inputs[2:]))
    backend = BlockedAttention(operator)
    assert arranged(command).copied == (1,)
    outputs = [np.zeros_like(x) for x in plain]
    buffers = [bytes_of(x) for x in (inputs[0], turned, *inputs[2:], *outputs)]
    backend.prepare(command).bind([*buffers, np.zeros(backend.workspace(command), np.uint8)])()  # type: ignore[list-item]
    assert all(map(same_bits, outputs, plain))


@pytest.mark.parametrize("strides", [(1, 0), (1, 40), (80, 2), (0, 2), (2, 0)])
def test_masks_that_lie_anyhow(strides: tuple[int, int]) -> None:
    """Seen from queries and keys, in elements."""
    rows, columns = strides
    room = RNG.random(4000) < 0.5
    mask = Layout((35, 40), boolean, 3, (rows, columns))
    plain = np.lib.stride_tricks.as_strided(room[3:], (35, 40), strides).copy()
    p = drawn(Sizes(35, 40, 16, 16), mask=plain)
    for name, compute in ((AHEAD, ahead), (BACK, back)):
        inputs = [p.query, p.key, p.value, plain] if name == AHEAD else operands_back(p)
        expected = compute("here", p)
        command = command_of(name, inputs, expected, p.attributes)
        command = command._replace(inputs=(*command.inputs[:-1], mask))
        outputs = [np.zeros_like(x) for x in expected]
        computed("here", command, [*inputs[:-1], room], outputs)
        assert all(map(same_bits, outputs, expected))


# ---- tasks
def test_tasks_are_independent() -> None:
    """Each by itself, the last first, gives what all together give."""
    p = drawn(Sizes(300, 100, 16, 16, 1, 2, 2), causal=True)
    together = ahead("here", p)
    inputs = [p.query, p.key, p.value]
    apart = [np.zeros_like(x) for x in together]
    kernel = compiler("here").kernel(arranged(command_of(AHEAD, inputs, apart, p.attributes)).problem)
    assert isinstance(kernel, ForwardKernel)
    tasks, arguments = kernel.tasks, arguments_of([bytes_of(x) for x in (*inputs, *apart)])
    for task in reversed(range(tasks.total)):
        tasks.function(arguments, tasks.numbers, task, task + 1)
    assert tasks.total >= 6
    assert all(map(same_bits, together, apart))


def test_results_do_not_depend_on_how_many_share_the_work() -> None:
    p = drawn(Sizes(200, 900, 16, 16, 1, 2, 1))
    inputs = operands_back(p)
    found = []
    for threads in (1, 2, 7):
        with config.using(threads=threads):
            found.append((*ahead("here", p), *back("here", p, inputs)))
    for other in found[1:]:
        assert all(map(same_bits, found[0], other))


def test_sizes_are_not_in_the_code() -> None:
    kernels = [compiler("here").kernel(arranged(command_of(AHEAD, [p.query, p.key, p.value], [
        np.zeros((1, n, q, 64), np.float32), np.zeros((1, n, q), np.float32)], p.attributes)).problem)
        for n, q, k in ((1, 64, 32), (3, 640, 100), (2, 255, 7))
        for p in [drawn(Sizes(q, k, 64, 64, 1, n, n))]]
    assert len({id(kernel.code) for kernel in kernels}) == 1  # type: ignore[attr-defined]


def test_scratch_memory_is_linear_in_the_length() -> None:
    def scratch(length: int) -> int:
        p = drawn(Sizes(length, length, 64, 64, 1, 8, 8))
        command = command_of(BACK, operands_shaped(p), [p.query, p.key, p.value], p.attributes)
        return BlockedAttention(BACK).workspace(command)

    assert scratch(2048) <= 2 * scratch(1024) <= 2 * 2 * 8 * 1024 * 64 * 4 * 1.1


def operands_shaped(p: Problem) -> list[Values]:
    rows = p.query.shape[:-1]
    return [p.query, p.key, p.value, np.zeros((*rows, p.value.shape[-1]), np.float32), np.zeros(rows, np.float32),
            np.zeros(rows, np.float32)]


def test_what_is_refused() -> None:
    def reason(p: Problem) -> str:
        rows = p.query.shape[:-1]
        outputs = [np.zeros((*rows, p.value.shape[-1]), p.query.dtype), np.zeros(rows, p.query.dtype)]
        command = command_of(AHEAD, [p.query, p.key, p.value, *p.mask], outputs, p.attributes)
        return BlockedAttention(AHEAD).refuse(command) or ""

    large = Sizes(64, 64, 16, 16)
    masks = (np.ones((64, 64), bool),) * 2
    assert reason(drawn(large)) == ""
    for p, said in [(drawn(large, float16), "no blocks of float16"), (drawn(large)._replace(mask=masks), "one mask"),
                    (drawn(large, mask=masks[0])._replace(mask=(np.zeros((64, 64)),)), "one mask"),
                    (drawn(Sizes(64, 0, 8, 8)), "nothing to attend to"), (drawn(Sizes(64, 64, 257, 8)), "256 features"),
                    (drawn(Sizes(4, 640, 64, 64)), "too few queries"), (drawn(Sizes(12, 12, 4, 4)), "too small")]:
        assert said in reason(p)
    command = command_of(BACK, [], [], ())
    assert "made for" in (BlockedAttention(AHEAD).refuse(command) or "")
