"""Backward passes compiled by structure: the same bits as step by step, and never a stale program."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.algodiff import compiled_backward
from nnc_core.algodiff import reverse_pass as passes
from nnc_core.algodiff.compiled_backward import BackwardPrograms
from nnc_core.algodiff.tape import Tape, history, structure, variables
from nnc_core.base.errors import FallbackWarning
from nnc_core.values.dispatch import F

SQUARE = nnc.jit(lambda a, b: (nnc.tanh(a) * b, a + b))
Loss = Callable[[list[nnc.Tensor]], nnc.Tensor]


@pytest.fixture(autouse=True)
def programs(monkeypatch: pytest.MonkeyPatch) -> Iterator[BackwardPrograms]:
    """An empty cache."""
    fresh = BackwardPrograms()
    monkeypatch.setattr(compiled_backward, "PROGRAMS", fresh)
    monkeypatch.setattr(passes, "PROGRAMS", fresh)
    yield fresh


def random(*shape: int, seed: int = 0) -> np.ndarray[Any, Any]:
    return np.random.default_rng(seed).standard_normal(shape).astype(np.float32)


def gradients(loss: Loss, arrays: list[Any]) -> list[bytes]:
    """Of one pass over fresh variables, to the bit."""
    vs = [nnc.variable(a) for a in arrays]
    loss(vs).backward()
    return [b"" if v.grad is None else v.grad.numpy().tobytes() for v in vs]


def _sum(results: Any) -> nnc.Tensor:
    a, b = results
    return nnc.sum(a) + nnc.sum(b)


def _late(build: Callable[[], nnc.Tensor]) -> nnc.Tensor:
    """Eager code runs loops and branches in Python; recorded ones are steps with bodies."""
    with nnc.deferred():
        return build()


def _outer(found: Any) -> nnc.Tensor:
    values, vectors = found
    return values * nnc.square(vectors)


def _sequence(v: list[nnc.Tensor]) -> nnc.Tensor:
    hs, (h, c) = nnc.lstm(v[0], nnc.RecurrentWeights(v[1], v[2], v[3]))
    return hs[1:] * h * c


LOSSES: dict[str, tuple[Loss, list[Any]]] = {
    "dense": (lambda v: nnc.mean(nnc.square(nnc.softmax(nnc.tanh(v[0] @ v[1] + v[2]), axis=-1))),
              [random(4, 3), random(3, 5), random(5)]),
    "shared": (lambda v: ((v[0] * v[1] + v[0]) * (v[0] * v[1])).sum(), [random(3), random(3, seed=1)]),
    "movement": (lambda v: (nnc.concat([v[0].T, nnc.pad(v[1], ((1, 0), (0, 0)))], axis=0)[1:, ::2] ** 2).sum(),
                 [random(2, 3), random(1, 2)]),
    "broadcast": (lambda v: nnc.exp(-nnc.abs(v[0] - v[1])).sum(), [random(4, 1), random(3)]),
    "choice": (lambda v: nnc.where(v[0] > 0, v[0] * v[1], nnc.maximum(v[0], v[1])).max(),
               [random(5), random(5, seed=2)]),
    "convolution": (lambda v: nnc.max_pool2d(nnc.relu(nnc.conv2d(v[0], v[1], padding="SAME") + v[2]), 2).sum(),
                    [random(2, 6, 6, 1), random(3, 3, 1, 2), random(2)]),
    "classes": (lambda v: nnc.cross_entropy(v[0] @ v[1], nnc.asarray(np.array([0, 2, 1, 1]))).sum(),
                [random(4, 2), random(2, 3)]),
    "lookup": (lambda v: (nnc.take(v[0], nnc.asarray(np.array([2, 0, 2])), axis=0) * v[1]).sum(),
               [random(3, 2), random(3, 2, seed=3)]),
    "unused": (lambda v: (v[0] + nnc.stop_gradient(v[1])).sum(), [random(2), random(2, seed=4)]),
    "identity": (lambda v: v[0].sum() + v[1], [random(3), random()]),
    "lstm": (lambda v: _sequence(v).sum(), [random(3, 2, 4), random(4, 12), random(3, 12), random(12)]),
    "svd": (lambda v: (nnc.linalg.svd(v[0] @ v[1], full_matrices=False).S * v[2]).sum(),
            [random(4, 3), random(3, 2), random(2)]),
    "singular vectors": (lambda v: (nnc.linalg.svd(v[0], full_matrices=False).U * v[1]).sum(),
                         [random(4, 2), random(4, 2, seed=5)]),
    "eigh": (lambda v: _outer(nnc.linalg.eigh(v[0] @ v[0].T)).sum(), [random(3, 3)]),
    "qr": (lambda v: (nnc.linalg.qr(v[0]).R * v[1]).sum(), [random(4, 2), random(2, 2, seed=6)]),
    "one result twice": (lambda v: (lambda s: (s.S[0] * s.S[1] + s.S.sum()))(nnc.linalg.svd(v[0])), [random(3, 3)]),
    "scan": (lambda v: _late(lambda: _sum(nnc.scan(lambda c, row: (c * row + v[1], nnc.exp(-c)), v[1], v[0]))),
             [random(4, 3), random(3)]),
    "while": (lambda v: _late(lambda: nnc.while_loop(lambda a: nnc.sum(a * a) < 50, lambda a: (a * v[1] + 1,),
                                                     (v[0],))[0].sum()), [random(3), np.full(3, 1.5, np.float32)]),
    "cond": (lambda v: _late(lambda: nnc.cond(nnc.sum(v[0]) < 100, lambda a, b: a * b, lambda a, b: a - b,
                                              v[0], v[1]).sum()), [random(3), random(3, seed=7)]),
    "call": (lambda v: _sum(SQUARE(v[0], v[1])), [random(3), random(3, seed=8)]),
    "precision": (lambda v: (nnc.astype(v[0], nnc.float16) * 2).sum().astype("float32"), [random(3)]),
}


@pytest.mark.filterwarnings("ignore:.* has no kernel on:nnc_core.base.errors.FallbackWarning")
@pytest.mark.parametrize("name", LOSSES)
def test_compiled_passes_agree_to_the_bit(device: str, programs: BackwardPrograms, name: str) -> None:
    loss, arrays = LOSSES[name]
    found = [gradients(loss, arrays) for _ in range(compiled_backward.STEPPED + 2)]
    assert programs.info() == (1, 1, 1), "two passes step by step, the third compiles, the fourth finds it"
    assert all(g == found[0] for g in found)


def test_other_elements_are_read_anew(device: str) -> None:
    loss, arrays = LOSSES["dense"]
    for _ in range(4):
        gradients(loss, arrays)
    others = [a + 1 for a in arrays]
    compiled = gradients(loss, others)
    compiled_backward.PROGRAMS.clear()
    assert compiled == gradients(loss, others)


def test_given_gradients_are_inputs(device: str, programs: BackwardPrograms) -> None:
    for k in range(5):
        v = nnc.variable([1.0, 2.0])
        (v * v).backward(nnc.asarray([float(k), 1.0]))
        assert v.grad is not None and v.grad.tolist() == [2.0 * k, 4.0]
    assert programs.info() == (2, 1, 1)


@pytest.mark.parametrize("other", [
    lambda v: nnc.sum(v[0] * v[1] * 2.0),
    lambda v: nnc.sum(v[1] * v[0]),
    lambda v: nnc.sum(v[0] * v[0]),
    lambda v: nnc.sum(v[0] * v[1].detach()),
    lambda v: nnc.sum(v[0] * v[1], axis=0),
])
def test_another_structure_is_another_program(device: str, programs: BackwardPrograms, other: Loss) -> None:
    """Wiring, constants, and which values are variables are part of it; equal structures are not told apart."""

    def first(v: list[nnc.Tensor]) -> nnc.Tensor:
        return nnc.sum(v[0] * v[1])

    arrays: list[Any] = [[2.0, 3.0], [5.0, 7.0]]
    wanted = [np.array(a, np.float32).tobytes() for a in reversed(arrays)]
    stepped = gradients(other, arrays)
    for _ in range(4):
        assert gradients(first, arrays) == wanted
    for _ in range(4):
        assert gradients(other, arrays) == stepped


def test_equal_steps_are_told_apart(device: str) -> None:
    for _ in range(5):
        x = nnc.variable(2.0)
        a, b = x * 3, x * 3
        by_a, by_b, by_x = nnc.gradients(a * b * b, [a, b, x])
        assert by_a is not None and by_b is not None and by_x is not None
        assert (by_a.item(), by_b.item(), by_x.item()) == (36, 72, 324)


def test_the_structure_is_hashable_and_equal_for_equal_programs(x: nnc.Tensor) -> None:
    def tape() -> Tape:
        v = nnc.variable(x)
        y = nnc.sum(nnc.tanh(v) * v)._value
        order = history([y])
        return Tape(order, [y], [None], variables(order))

    first, second = structure(tape()), structure(tape())
    assert first is not None and first == second and hash(first) == hash(second)
    with nnc.config.using(deterministic=False):
        assert structure(tape()) != first


def test_only_what_the_rules_read_is_an_input(device: str) -> None:
    v = nnc.variable(random(4))
    y = nnc.sum(nnc.exp(v + 1) + v)._value
    order = history([y])
    program = compiled_backward.compile_sweep(Tape(order, [y], [None], variables(order)))
    assert program is not None
    assert [order[i].op.name for _, i in program.read] == ["exp"], "exp's own result; neither v nor the sum"


def test_what_cannot_be_compiled_is_swept(device: str, programs: BackwardPrograms) -> None:
    custom = nnc.custom_vjp(lambda x: x * 2).defvjp(lambda x: (x * 2, None), lambda _, g: (g * 2,))
    other = "strict-noviews:0"
    for times in range(1, 6):
        v, w, u = nnc.variable(1.0), nnc.variable(2.0), nnc.variable(3.0)
        custom(v).backward()
        (w * w).to(other).backward()
        (u.to(other) * u.to(other)).to(device).backward()
        assert [t.grad.item() for t in (v, w, u) if t.grad is not None] == [2, 4, 6], times
    assert programs.info() == (0, 0, 0)


def test_python_code_in_bodies_is_called_by_every_pass(device: str, programs: BackwardPrograms) -> None:
    """At any depth: what it does may change from call to call."""
    factors = [1.0]
    rule = nnc.custom_vjp(lambda a: a * 1.0).defvjp(lambda a: (a * 1.0, None), lambda _, g: (g * factors[-1],))

    def with_rule(c: nnc.Tensor, row: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        return c + nnc.cond(row > 0, lambda r: rule(r), lambda r: r, row), row

    def with_callback(c: nnc.Tensor, row: nnc.Tensor) -> tuple[nnc.Tensor, nnc.Tensor]:
        kept = nnc.callback(lambda r: np.float32(r * factors[-1]), row.spec, nnc.stop_gradient(row))
        return c + row * kept, row

    for body, wanted in ((with_rule, [1, 1, 1]), (with_callback, [1, 2, 3])):
        for factor in (1.0, 2.0, 3.0, 4.0):
            factors.append(factor)
            v = nnc.variable([1.0, 2.0, 3.0])
            with nnc.deferred():  # eager code unrolls loops
                y = nnc.scan(body, nnc.asarray(0.0), v)[0]
            y.backward()
            assert v.grad is not None and v.grad.tolist() == [factor * w for w in wanted], body
    assert programs.info() == (0, 0, 0)


def test_what_no_step_picks_is_read_from_what_is_there(device: str) -> None:
    """The rule of singular values reads the vectors, which the function did not ask for; nothing is computed again."""
    v = nnc.variable(random(3, 2))
    with nnc.deferred():
        whole = F.svd(v._value, full_matrices=False)
        y = F.sum(F.pick(whole, index=1), axis=(0,))
    order = history([y])
    program = compiled_backward.compile_sweep(Tape(order, [y], [None], variables(order)))
    assert program is not None
    assert [(order[i].op.name, k) for _, i, k in program.parts] == [("svd", 0), ("svd", 2)]
    assert program.read == () and not any(n.op.name == "svd" for n in program.run.graph.nodes)


def test_recorded_passes_stay_recorded(device: str, programs: BackwardPrograms) -> None:
    for _ in range(5):
        v = nnc.variable([1.0, 2.0])
        with nnc.deferred():
            (v * v).sum().backward()
            assert v.grad is not None and v.grad.is_deferred
        assert v.grad.tolist() == [2, 4]
    assert programs.info() == (0, 0, 0)


def test_deferred_tapes_are_computed_first(device: str, programs: BackwardPrograms) -> None:
    for _ in range(5):
        v = nnc.variable([1.0, 2.0])
        with nnc.deferred():
            y = (nnc.exp(v) * v).sum()
        y.backward()
        assert v.grad is not None
        np.testing.assert_allclose(v.grad.numpy(), np.exp([1, 2]) * np.array([2, 3]), rtol=1e-6)
    assert programs.info().compiled == 1


def multiplied(v: nnc.Tensor, times: int) -> nnc.Tensor:
    """Structures that differ and run the same kernels."""
    y = v
    for _ in range(times):
        y = y * v
    return y


def test_the_cache_is_bounded(device: str, programs: BackwardPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(programs._kept, "limit", 2)
    monkeypatch.setattr(compiled_backward, "STEPPED", 0)
    for n in (1, 2, 3, 1):
        v = nnc.variable(2.0)
        multiplied(v, n).backward()
        assert v.grad is not None and v.grad.item() == (n + 1) * 2.0**n
    assert programs.info() == (0, 4, 2)
    monkeypatch.setattr(compiled_backward, "STEPPED", 2)
    monkeypatch.setattr(programs._sightings, "limit", 3)
    for n in range(4, 20):
        multiplied(nnc.variable(2.0), n).backward()
    assert len(programs._sightings) == 3


def test_long_tapes_are_swept(device: str, programs: BackwardPrograms, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(compiled_backward, "LONGEST", 5)
    for _ in range(4):
        v = nnc.variable(1.0)
        y = v
        for _ in range(10):
            y = y + v
        y.backward()
        assert v.grad is not None and v.grad.item() == 11
    assert programs.info() == (0, 0, 0)


def test_a_pass_that_does_not_compile_says_so_and_is_swept(device: str, programs: BackwardPrograms,
                                                           monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(tape: Tape) -> None:
        raise nnc.Error("no room")

    monkeypatch.setattr(compiled_backward, "compile_sweep", refuse)
    loss, arrays = LOSSES["shared"]
    first = [gradients(loss, arrays) for _ in range(2)]
    with pytest.warns(FallbackWarning, match="no room"):
        assert gradients(loss, arrays) == first[0]
    assert gradients(loss, arrays) == first[0] and programs.info() == (0, 0, 0)


def test_threads_share_programs(device: str) -> None:
    from concurrent.futures import ThreadPoolExecutor
    from contextvars import copy_context

    loss, arrays = LOSSES["dense"]
    wanted = gradients(loss, arrays)
    with ThreadPoolExecutor(4) as pool:
        contexts = [copy_context() for _ in range(16)]
        found = list(pool.map(lambda c: c.run(gradients, loss, arrays), contexts))
    assert all(g == wanted for g in found)


def test_backward_info_is_public(device: str, programs: BackwardPrograms) -> None:
    loss, arrays = LOSSES["identity"]
    for _ in range(5):
        gradients(loss, arrays)
    assert nnc.backward_info() == programs.info() == (2, 1, 1)
