"""Training steps of the zoo with and without fusion: commands, bytes that they move, planned memory, time to compile.

Planned for a device that generates all its code and computes nothing.  Bytes are those of the operands and results of
each command; one in a loop counts once.  Times are those of the processor.

`python -m benchmarks.fusion [NAME ...]`
"""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from dataclasses import replace
from time import process_time
from typing import NamedTuple

import nnc_core as nnc
from benchmarks._measure import show
from benchmarks.networks import CASES, Case, mebibytes, milliseconds, prepared
from nnc_core.builtin.null import NullDevice
from nnc_core.device import CommandBackend
from nnc_core.stacks import Stack

NAMES = ("LeNet", "LSTM", "Transformer", "ResNet-50")
REPEATS = 3


class Generating(NullDevice):
    """The null device without library code: each command is a loop nest."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = replace(self.spec, features=self.spec.features | {"codegen"})

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return ()


class Planned(NamedTuple):
    """A compiled training step."""

    commands: int
    moved: int
    peak: int
    nodes: int
    seconds: float


def planned(case: Case, stack: Stack, *, fusion: bool) -> Planned:
    with nnc.use_device(stack), nnc.config.using(fusion=fusion):
        compile_once = prepared(case, training=True)
        times = []
        for _ in range(REPEATS):
            begin = process_time()
            graph = compile_once()
            times.append(process_time() - begin)
    steps = graph.program.plan.steps
    moved = sum(x.nbytes for step in steps for x in (*step.command.inputs, *step.command.outputs))
    return Planned(len(steps), moved, graph.memory_plan.peak, len(graph.graph.nodes), min(times))


def main(arguments: Sequence[str] = ()) -> None:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.fusion", description="Fuse the networks of the zoo.")
    parser.add_argument("names", nargs="*", metavar="NAME", help=", ".join(CASES))
    rows = []
    for name in parser.parse_args(arguments).names or NAMES:
        stack = nnc.make_stack(Generating())
        apart, joined = (planned(CASES[name], stack, fusion=fusion) for fusion in (False, True))
        rows.append([name, str(apart.nodes), str(apart.commands), str(joined.commands), mebibytes(apart.moved),
                     mebibytes(joined.moved), mebibytes(apart.peak), mebibytes(joined.peak),
                     milliseconds(apart.seconds), milliseconds(joined.seconds),
                     f"{(joined.seconds - apart.seconds) / apart.nodes * 1e6:.0f}"])
    show("Training steps, apart and fused", ["", "nodes", "cmds", "fused", "moved MiB", "fused", "peak MiB", "fused",
                                             "compile ms", "fused", "us/node"], rows)


if __name__ == "__main__":
    import sys

    main(sys.argv[1:])
