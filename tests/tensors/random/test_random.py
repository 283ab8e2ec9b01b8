"""Generators: the same bits in every mode and on every device, streams that are apart, and state that can be kept."""

from __future__ import annotations

import copy
import pickle
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
import scipy.stats

import nnc_core as nnc
from nnc_core.base.errors import AttributeValueError, DeviceError, DTypeError, ShapeError, SymbolValueError
from nnc_core.operator.philox import philox_words
from nnc_core.random.generator import default_generator

Draw = Callable[[nnc.Generator], nnc.Tensor]
DRAWS: dict[str, Draw] = {
    "bits": lambda g: g.bits((3, 5)),
    "bits64": lambda g: g.bits(7, "uint64"),
    "uniform": lambda g: g.uniform((4, 3), -1.0, 2.0),
    "bernoulli": lambda g: g.bernoulli(0.3, 40),
    "integers": lambda g: g.integers(-3, 10, (6, 2)),
    "unsigned integers": lambda g: g.integers(2**62, 2**62 + 2**33, 5, "uint64"),
    "permutation": lambda g: g.permutation(11),
    "shuffled": lambda g: g.permutation(nnc.asarray(np.arange(12).reshape(3, 4)), axis=1),
    "choice": lambda g: g.choice(9, (2, 3)),
    "sample": lambda g: g.choice(nnc.asarray([1.0, 2.0, 3.0, 4.0]), 3, replace=False),
    "weighted": lambda g: g.choice(5, (2, 4), weights=[1.0, 0.0, 3.0, 2.0, 0.5]),
    "weighted sample": lambda g: g.choice(5, 4, weights=[1.0, 0.0, 3.0, 2.0, 0.5], replace=False),
    "gamma": lambda g: g.gamma([0.3, 1.0, 20.0], (2, 3)),
    "poisson": lambda g: g.poisson([0.5, 3.0, 200.0], (4, 3)),
    "binomial": lambda g: g.binomial(40, [0.1, 0.5, 0.9], (4, 3)),
    "multinomial": lambda g: g.multinomial(12, [0.2, 0.5, 0.3], (5,)),
    "categorical": lambda g: g.categorical([0.0, 1.0, 2.0], (20,)),
    "bernoulli of tensors": lambda g: g.bernoulli(nnc.asarray([0.1, 0.5, 0.9]), (9, 3)),
}
each_draw = pytest.mark.parametrize("draw", DRAWS.values(), ids=DRAWS)
SEED = 2**40 + 17


def bits(t: nnc.Tensor) -> bytes:
    return t.numpy().tobytes()


def expected(draw: Draw, times: int = 3) -> list[bytes]:
    """Eager draws on strict:0, whose kernels are the references."""
    with nnc.use_device("strict:0"):
        g = nnc.Generator(SEED)
        return [bits(draw(g)) for _ in range(times)]


@each_draw
def test_every_mode_and_device_draws_the_same(draw: Draw, device: str) -> None:
    wanted = expected(draw)
    assert len(set(wanted)) == 3
    g = nnc.Generator(SEED)
    assert [bits(draw(g)) for _ in range(3)] == wanted, "eager"
    g = nnc.Generator(SEED)
    with nnc.deferred():
        drawn = [draw(g) for _ in range(3)]
    assert [bits(t) for t in reversed(drawn)] == wanted[::-1], "deferred, in whatever order it is computed"
    g = nnc.Generator(SEED)
    assert [bits(t) for t in nnc.jit(lambda: [draw(g) for _ in range(3)])()] == wanted, "compiled"


@each_draw
def test_compiled_code_draws_anew_and_goes_on_with_the_stream(draw: Draw, device: str) -> None:
    g = nnc.Generator(SEED)
    compiled = nnc.jit(lambda: draw(g))
    assert [bits(f()) for f in (lambda: draw(g), compiled, compiled)] == expected(draw)
    assert compiled.traces == 1
    assert g.state == (SEED, 3)
    g.seed(SEED)
    assert bits(compiled()) == expected(draw)[0]
    assert compiled.traces == 1


@pytest.mark.parametrize("name", ["bits", "uniform", "bernoulli", "integers", "permutation"])
def test_an_exported_graph_takes_a_key_and_gives_the_next(name: str, device: str) -> None:
    draw, g = DRAWS[name], nnc.Generator(SEED)
    with nnc.deferred():
        key = g.key.read()
        drawn = draw(g)
        after = g.key.read()
    run = nnc.export({"key": key}, {"drawn": drawn, "next": after}).compile(device)
    given, found = key, []
    for _ in range(3):
        results = run(key=given)
        found.append(bits(results["drawn"]))
        given = results["next"]
    assert found == expected(draw)


def test_normal_draws_agree_to_a_few_units_in_the_last_place(device: str) -> None:
    with nnc.use_device("strict:0"):
        wanted = nnc.Generator(SEED).normal(1000).numpy()
    g = nnc.Generator(SEED)
    found = [g.normal(1000).numpy()]
    g.seed(SEED)
    found.append(nnc.jit(lambda: g.normal(1000))().numpy())
    for z in found:
        np.testing.assert_array_almost_equal_nulp(z, wanted, 4)


def test_the_default_generator(device: str) -> None:
    g = nnc.manual_seed(SEED)
    assert g is default_generator()
    assert g.key.device.id == device
    compiled = nnc.jit(lambda: default_generator().bits(4))
    wanted = expected(lambda g: g.bits(4))
    assert [bits(compiled()) for _ in range(3)] == wanted
    nnc.manual_seed(SEED)
    assert bits(compiled()) == wanted[0]  # compiled code follows


@pytest.fixture
def stacks() -> Iterator[list[nnc.Stack]]:
    """Two of one device; the default generator is put back afterwards."""
    generator, device = default_generator(), nnc.stack_for("strict:0").device
    before, home = generator.state, generator.key.stack
    yield [nnc.make_stack(device), nnc.make_stack(device)]
    generator.key.move(home)
    generator.state = before


def test_generators_belong_to_stacks_not_to_ids(stacks: list[nnc.Stack]) -> None:
    wanted = expected(lambda g: g.bits(4))
    for stack in stacks:
        with nnc.use_device(stack):
            g = nnc.manual_seed(SEED)
            assert g is default_generator() and g.key.stack is stack
            assert [bits(g.bits(4)) for _ in range(3)] == wanted
        g.state = (SEED, 0)  # elsewhere
        twin, child = copy.copy(g), g.spawn(1)[0]
        assert g.key.stack is twin.key.stack is child.key.stack is stack
    with nnc.use_device(stacks[0]):
        assert (nnc.dropout(nnc.ones(8), 0.5) + nnc.ones(8)).shape == (8,)  # it comes along
        g = nnc.Generator(SEED, stacks[1])
        with pytest.raises(DeviceError, match="two different stacks of strict:0"):
            nnc.asarray([1, 2], dtype="uint64") + g.bits(2, "uint64")
        with pytest.raises(DeviceError, match="'random key' and the tensor are on two different stacks of strict:0"):
            g.key.write(nnc.asarray([1, 2], dtype="uint64"))


def test_spawned_generators_are_apart(device: str) -> None:
    parent = nnc.Generator(SEED)
    children = parent.spawn(4)
    assert parent.state == (SEED, 1)
    again = nnc.Generator(SEED).spawn(4)
    assert [c.state for c in children] == [c.state for c in again]
    assert all(c.key.device.id == device for c in children)
    drawn = [bits(c.bits(8)) for c in (*children, parent)]
    assert len(set(drawn)) == 5
    grandchildren = [g.state for c in children for g in c.spawn(3)]
    assert len({*grandchildren, *(c.state for c in children)}) == 16
    assert parent.spawn(0) == []
    with pytest.raises(AttributeValueError, match="count is -1"):
        parent.spawn(-1)


def test_spawned_streams_are_not_correlated() -> None:
    a, b = nnc.Generator(0).spawn(2)
    x, y = a.uniform(20_000).numpy(), b.uniform(20_000).numpy()
    assert abs(np.corrcoef(x, y)[0, 1]) < 0.03


def test_state_is_kept_and_copied(device: str) -> None:
    g = nnc.Generator(SEED)
    g.bits(3)
    state = g.state
    assert state == (SEED, 1)
    twins = [copy.copy(g), copy.deepcopy(g), pickle.loads(pickle.dumps(g))]
    wanted = [bits(g.bits(3)) for _ in range(2)]
    for twin in twins:
        assert twin.key.device.id == device
        assert [bits(twin.bits(3)) for _ in range(2)] == wanted
    g.state = state
    assert bits(g.bits(3)) == wanted[0]
    g.state = (0, 2**64 - 1)  # the last draw of a stream; then it begins again
    g.bits(1)
    assert g.state == (0, 0)


def test_state_cannot_be_read_in_a_trace() -> None:
    g = nnc.Generator(0)
    with pytest.raises(SymbolValueError):
        nnc.jit(lambda: nnc.asarray(float(g.state[1])))()


@pytest.mark.parametrize(("low", "high", "dtype"), [
    (0, 1, "int8"), (-128, 128, "int8"), (0, 256, "uint8"), (5, 8, "uint8"), (-7, 3, "int16"), (0, 2**32, "uint32"),
    (-(2**31), 2**31, "int32"), (-(2**31), 2**31 - 1, "int32"), (-(2**63), 2**63, "int64"), (0, 2**64, "uint64"),
    (2**63 - 5, 2**63, "int64"), (2**64 - 3, 2**64, "uint64"), (-5, 2**32 - 6, "int64"), (0, 2**40, "int64"),
])
def test_integers_are_scaled_words(low: int, high: int, dtype: str, device: str) -> None:
    words = philox_words(np.array([SEED, 0], np.uint64), 80)
    wide = [int(a) << 32 | int(b) for a, b in zip(words[0::2], words[1::2], strict=True)]
    found = nnc.Generator(SEED).integers(low, high, 40, dtype)
    assert found.dtype == dtype
    assert found.tolist() == [low + (w * (high - low) >> 64) for w in wide]


def test_all_integers_are_equally_likely() -> None:
    counts = np.bincount(nnc.Generator(1).integers(0, 12, 24_000).numpy(), minlength=12)
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


def test_all_orders_are_equally_likely() -> None:
    g = nnc.Generator(2)
    orders = [tuple(g.permutation(3).tolist()) for _ in range(3000)]
    counts = [orders.count(order) for order in sorted(set(orders))]
    assert len(counts) == 6
    assert scipy.stats.chisquare(counts).pvalue > 1e-3


@pytest.mark.parametrize("count", [0, 1, 5, 50, 51, 100])
def test_nothing_is_chosen_twice_without_replacement(count: int) -> None:
    g = nnc.Generator(3)
    for _ in range(20):
        chosen = g.choice(100, count, replace=False).tolist()
        assert len(set(chosen)) == count and set(chosen) <= set(range(100))


def test_permutations_and_choices_of_tensors(device: str) -> None:
    x = nnc.asarray(np.arange(24, dtype=np.float32).reshape(4, 6))
    rows, columns = nnc.Generator(3).permutation(x), nnc.Generator(3).permutation(x, axis=-1)
    assert sorted(rows.tolist()) == x.tolist() != rows.tolist()
    assert sorted(columns.T.tolist()) == x.T.tolist() != columns.T.tolist()
    assert nnc.Generator(3).choice(x, (5, 2)).shape == (5, 2, 6)
    sample = nnc.Generator(3).choice(4, 4, replace=False)
    assert sorted(sample.tolist()) == [0, 1, 2, 3]
    assert nnc.Generator(3).choice(x, (), replace=True).tolist() in x.tolist()
    assert nnc.Generator(3).permutation(0).tolist() == []


def test_a_permutation_says_nothing_of_the_host(device: str) -> None:
    """Warnings are errors here."""
    assert sorted(nnc.Generator(0).permutation(5).tolist()) == [0, 1, 2, 3, 4]


@pytest.mark.parametrize(("call", "error", "said"), [
    (lambda g: g.integers(3, 3), AttributeValueError, "from 3 up to, but not including, 3"),
    (lambda g: g.integers(0, 300, dtype="int8"), AttributeValueError, "-128 <= low < high <= 128"),
    (lambda g: g.integers(0, 2**32 + 1), AttributeValueError, "neither at most 2\\*\\*32 nor a power of two"),
    (lambda g: g.integers(0, 3, dtype="float32"), DTypeError, "integers of dtype float32"),
    (lambda g: g.integers(0, 2, dtype="bool"), DTypeError, "integers of dtype bool"),
    (lambda g: g.permutation(-1), AttributeValueError, "permutation: the number of elements -1 is no integer"),
    (lambda g: g.permutation(2.5), AttributeValueError, "permutation: the number of elements 2.5 is no integer"),
    (lambda g: g.permutation(nnc.zeros((2, 3)), axis=2), ShapeError, "no axis 2"),
    (lambda g: g.choice(3, 4, replace=False), AttributeValueError, "(?s)4 of 3 elements.*replace=True"),
    (lambda g: g.choice(0, 1), AttributeValueError, "1 of 0 elements"),
    (lambda g: g.choice(nnc.zeros(())), ShapeError, "no axis to choose from"),
    (lambda g: nnc.Generator(0.5), AttributeValueError, "seed 0.5 is no integer"),
])
def test_what_cannot_be_drawn_is_named(call: Callable[[nnc.Generator], Any], error: type[Exception], said: str) -> None:
    g = nnc.Generator(0)
    with pytest.raises(error, match=said):
        call(g)
    assert g.state == (0, 0)  # nothing was drawn
