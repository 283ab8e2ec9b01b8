"""Random programs: eager, deferred, exported and compiled give the same bits, with and without the optimiser."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import nnc_core as nnc
from tests.tensors.conftest import devices

Program = Callable[..., list[nnc.Tensor]]
Step = Callable[[Random, Sequence[Any]], Any]
SHAPE = (3, 4)


def _unary(name: str) -> Step:
    return lambda random, pool: getattr(nnc, name)(random.choice(pool))


def _binary(name: str) -> Step:
    return lambda random, pool: getattr(nnc, name)(random.choice(pool), random.choice(pool))


STEPS: list[Step] = [
    *map(_unary, ["negative", "abs", "tanh", "sigmoid", "relu", "sin", "cos", "square", "positive", "sign"]),
    *map(_binary, ["add", "subtract", "multiply", "maximum", "minimum", "add", "multiply"]),
    lambda random, pool: random.choice(pool) * random.choice([0.0, -0.0, 1.0, 2, 0.1, -1.5]),
    lambda random, pool: random.choice([1, 0.0, 3.5]) - random.choice(pool),
    lambda random, pool: random.choice(pool) / (nnc.abs(random.choice(pool)) + 1),
    lambda random, pool: nnc.where(random.choice(pool) > random.choice(pool), random.choice(pool), 0.5),
    lambda random, pool: random.choice(pool) @ random.choice(pool).T @ random.choice(pool) * 0.1,
    lambda random, pool: nnc.sum(random.choice(pool), axis=random.choice([0, 1]), keepdims=True) + random.choice(pool),
    lambda random, pool: random.choice(pool) - nnc.max(random.choice(pool), axis=1, keepdims=True),
    lambda random, pool: nnc.softmax(random.choice(pool), axis=random.choice([0, 1])),
    lambda random, pool: nnc.concat([random.choice(pool)[1:], random.choice(pool)[:1]]),
    lambda random, pool: nnc.flip(random.choice(pool), axis=random.choice([0, 1, None])),
    lambda random, pool: random.choice(pool).T.reshape(*SHAPE),
    lambda random, pool: random.choice(pool).at[random.randrange(3), ::2].set(random.choice(pool)[0, :2]),
    lambda random, pool: nnc.pad(random.choice(pool)[:-1, 1:], ((1, 0), (0, 1))),
    lambda random, pool: random.choice(pool).astype("int32").astype("float32"),
    lambda random, pool: nnc.take(random.choice(pool), [2, 0, 0], axis=0),
    lambda random, pool: nnc.grad(lambda x: nnc.sum(nnc.tanh(x) * x))(random.choice(pool)),
]


def program(seed: int, steps: int) -> Program:
    """The same choices at each run."""

    def run(*inputs: nnc.Tensor) -> list[nnc.Tensor]:
        random, pool = Random(seed), list(inputs)
        for _ in range(steps):
            pool.append(random.choice(STEPS)(random, pool[-5:] if random.random() < 0.6 else pool))
        return [pool[-1], random.choice(pool), nnc.sum(pool[-2])]

    return run


def _bits(tensors: Sequence[nnc.Tensor]) -> list[bytes]:
    return [t.numpy().tobytes() for t in tensors]


def _exported(f: Program, inputs: Sequence[nnc.Tensor], device: str, optimise: bool) -> list[bytes]:
    with nnc.deferred():
        outputs = f(*inputs)
    used = {f"x{k}": x for k, x in enumerate(inputs)}
    named = {f"y{k}": y for k, y in enumerate(outputs)}
    # An input that no output needs is an error of its own; one output more takes them all.
    with nnc.deferred():
        named["all"] = nnc.sum(nnc.stack(list(inputs)))
    graph = nnc.export(used, named, capture="constant")
    found = graph.compile(device, optimise=optimise)(**used)
    return [found[f"y{k}"].numpy().tobytes() for k in range(len(outputs))]


@pytest.mark.parametrize("where", devices()[:2])
@given(st.integers(0, 2**32), st.integers(1, 14))
def test_every_way_of_running_gives_the_same_bits(where: str, seed: int, steps: int) -> None:
    f = program(seed, steps)
    rng = np.random.default_rng(seed)
    with nnc.use_device(where), nnc.config.using(deterministic=True):
        inputs = [nnc.asarray(rng.uniform(-2, 2, SHAPE).astype(np.float32)) for _ in range(3)]
        wanted = _bits(f(*inputs))
        with nnc.deferred():
            deferred = f(*inputs)
        assert _bits(deferred) == wanted, "deferred"
        assert _bits(nnc.jit(f)(*inputs)) == wanted, "compiled"
        assert _exported(f, inputs, where, optimise=False) == wanted, "exported, as written"
        assert _exported(f, inputs, where, optimise=True) == wanted, "exported and optimised"
