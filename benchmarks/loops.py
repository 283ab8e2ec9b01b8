"""A round of compiled loops beside JAX': small work, where going back to Python would cost more than all of it.

`NNC_BENCHMARK_WORKS` names the works that are wanted.  On a busy machine `NNC_BENCHMARK_THREADS=1
NNC_BENCHMARK_CLOCK=cpu` compares processor time.
"""

from __future__ import annotations

import numpy as np

from benchmarks._loops import COUNT, WORKS
from benchmarks._measure import show
from benchmarks._runner import least_in_turn
from benchmarks.peers import wanted

FRAMEWORKS = ("loops_nnc", "loops_jax")


def row(work: str) -> list[str]:
    """Microseconds of a round, the least of all turns, and the ratio where JAX is there."""
    taken = least_in_turn(FRAMEWORKS, work)
    for found in taken.values():
        np.testing.assert_allclose(found.result, next(iter(taken.values())).result, rtol=1e-3, atol=1e-3)
    rounds = [taken[name].seconds / COUNT * 1e6 if name in taken else None for name in FRAMEWORKS]
    ours, jax = rounds
    ratio = f"{jax / ours:.2f}" if ours and jax else ""
    return [work, *["" if x is None else f"{x:.2f}" for x in rounds], ratio]


def main() -> None:
    show("us of a round", ["", "nnc", "JAX", "JAX / nnc"], [row(work) for work in wanted([*WORKS], "WORKS")])


if __name__ == "__main__":
    main()
