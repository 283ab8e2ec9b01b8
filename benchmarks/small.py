"""Small networks and losses trained eagerly beside PyTorch's: where calls cost more than what they compute.

A step is forward, backward and Adam's update; of losses, forward and backward.  "backward" goes back over the
dynamic graph, "grad" is what functions give that take gradients.  `NNC_BENCHMARK_WORKS` names the works that are
wanted.  On a busy machine `NNC_BENCHMARK_THREADS=1 NNC_BENCHMARK_CLOCK=cpu` compares processor time.
"""

from __future__ import annotations

from benchmarks._measure import show
from benchmarks._runner import least_in_turn
from benchmarks._small import LOSSES, NETWORKS
from benchmarks.peers import wanted

FRAMEWORKS = ("small_nnc backward", "small_nnc grad", "small_torch")


def row(work: str) -> list[str]:
    """Microseconds, and the times of PyTorch's where that is there."""
    taken = {name: found.seconds for name, found in least_in_turn(FRAMEWORKS, work).items()}
    torch = taken.pop("small_torch", None)
    cells = [f"{taken[name] * 1e6:,.0f}" if name in taken else "" for name in FRAMEWORKS[:2]]
    if torch is None:
        return [work, *cells, "", "", ""]
    ratios = [f"{taken[name] / torch:.1f}" if name in taken else "" for name in FRAMEWORKS[:2]]
    return [work, *cells, f"{torch * 1e6:,.0f}", *ratios]


def main() -> None:
    rows = [row(work) for work in wanted([*NETWORKS, *LOSSES], "WORKS")]
    show("us of a step, eager", ["", "backward", "grad", "PyTorch", "backward / PyTorch", "grad / PyTorch"], rows)


if __name__ == "__main__":
    main()
