"""Training steps of the zoo, a command for each operator and fused: commands, work, planned memory, time to compile.

Planned for the device `null`; nothing is computed.  Bytes are those of the elements that each command reads and writes
once, operations are those of its loop nest: what a fused command computes again for other elements is counted again,
and commands in loops count in each round.  Times are those of the processor.

`python -m benchmarks.fusion [NAME ...]`
"""

from __future__ import annotations

import argparse
from collections.abc import Iterable, Iterator, Sequence

import nnc_core as nnc
from benchmarks._measure import show
from benchmarks.networks import CASES, PARTS, Case, Compiled, measured, mebibytes
from nnc_core.base.cost import Cost
from nnc_core.engine.program_tree import Item, LoopItem, PlannedCommand, inner
from nnc_core.operator.cost import cost_of

NAMES = ("LeNet", "LSTM", "Transformer", "ResNet-50")
FROM_FUSE_TO_BIND = PARTS[PARTS.index("fuse") :]


def commands(items: Iterable[Item], rounds: int = 1) -> Iterator[tuple[PlannedCommand, int]]:
    """Planned commands, and how often each of them runs; conditions are taken to hold once."""
    for item in items:
        for step in item.planned:
            yield step, rounds
        counted = isinstance(item, LoopItem) and isinstance(item.loop.length, int)
        for inside in inner(item):
            yield from commands(inside, rounds * item.rounds if counted else rounds)  # type: ignore[union-attr]


def work(items: Iterable[Item]) -> Cost:
    """The operations and bytes of a program."""
    flops, nbytes = 0.0, 0
    known: dict[object, Cost] = {}
    for step, rounds in commands(items):
        key = step.decision.op, step.command
        cost = known.get(key) or known.setdefault(key, cost_of(*key))
        flops, nbytes = flops + rounds * cost.flops, nbytes + rounds * cost.bytes
    return Cost(flops, nbytes)


def row(name: str, compiled: Compiled) -> list[str]:
    program, nodes = compiled.graph.program, len(compiled.graph.graph.nodes)
    cost = work(program.plan.items)
    times = [compiled.seconds["optimise"], sum(compiled.seconds[part] for part in FROM_FUSE_TO_BIND)]
    return [name, str(nodes), str(compiled.plan.commands), mebibytes(cost.bytes), mebibytes(compiled.plan.peak),
            f"{cost.flops / 1e9:,.1f}", *[f"{seconds / nodes * 1e6:.0f}" for seconds in times]]


def rows(name: str, case: Case) -> Iterator[list[str]]:
    for fusion in (False, True):
        with nnc.config.using(fusion=fusion):
            yield row("fused" if fusion else f"{name} x{case.batch}", measured(case, training=True))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fusion", description="Fuse the networks of the zoo.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    names = parser.parse_args(arguments).names or NAMES
    show("Training steps, a command for each operator and fused; optimising and from fusing to binding, us a node",
         ["", "nodes", "cmds", "moved MiB", "arena MiB", "GFLOP", "optimise", "fuse-bind"],
         [found for name in names for found in rows(name, CASES[name])])


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
