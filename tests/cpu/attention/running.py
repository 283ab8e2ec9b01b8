"""Commands of attention, run by code for hosts of several widths between guard bytes."""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache

import numpy as np

from nnc_core.base.command import Command
from nnc_core.device import Kernel
from nnc_cpu.attention.backend import arranged
from nnc_cpu.attention.kernel import AttentionCompiler
from tests.attention import AHEAD, BACK, Problem, Values, command_of, operands_back
from tests.cpu.machine_code.running import HOSTS, run

KERNELS: list[Kernel] = []
"""All that were made, so that code is compiled once."""


@cache
def compiler(host: str) -> AttentionCompiler:
    return AttentionCompiler(HOSTS[host])


def computed(host: str, command: Command, inputs: Sequence[Values], outputs: Sequence[Values]) -> None:
    """Run a command whose inputs are the storage that its layouts lie in."""
    problem = arranged(command).problem
    scratch = compiler(host).plan(problem).workspace
    KERNELS.append(compiler(host).kernel(problem))
    run(KERNELS[-1], [*inputs, *outputs, *([np.zeros(scratch, np.uint8)] if scratch else [])])


def ahead(host: str, p: Problem) -> list[Values]:
    """The result and the sums."""
    rows = p.query.shape[:-1]
    outputs = [np.zeros((*rows, p.value.shape[-1]), p.query.dtype), np.zeros(rows, p.query.dtype)]
    inputs = [p.query, p.key, p.value, *p.mask]
    computed(host, command_of(AHEAD, inputs, outputs, p.attributes), inputs, outputs)
    return outputs


def back(host: str, p: Problem, inputs: Sequence[Values] = ()) -> list[Values]:
    """The cotangents of query, key and value."""
    inputs = inputs or operands_back(p)
    outputs = [np.zeros_like(x) for x in (p.query, p.key, p.value)]
    computed(host, command_of(BACK, inputs, outputs, p.attributes), inputs, outputs)
    return outputs
