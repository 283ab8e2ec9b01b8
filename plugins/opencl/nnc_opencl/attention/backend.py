"""Library code for attention and its gradients, by blocks: no memory grows with the product of queries and keys."""

from __future__ import annotations

from collections.abc import Iterator
from functools import lru_cache
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import float64
from nnc_core.base.errors import NotSupportedError
from nnc_core.codegen import Dialect
from nnc_core.device import CommandBackend, Kernel
from nnc_core.operator.attention_problem import WORTH, AttentionProblem, attention_of
from nnc_core.operator.steps import EntryLaunch, StepsPart
from nnc_opencl.attention.kind import BlockedKind, kind_of, numbers_of
from nnc_opencl.attention.source import attention_source
from nnc_opencl.steps import StepsCompiler


class AttentionSource(NamedTuple):
    """The program of a kind."""

    kind: BlockedKind

    @property
    def names(self) -> list[str]:
        return self.kind.numbers

    def text(self, dialect: Dialect, grouped: bool) -> str:
        assert grouped == self.kind.grouped
        return attention_source(self.kind)


class OpenCLAttention(CommandBackend):
    """Attention, or its gradients: each group of work items has a panel of queries or of keys."""

    name = "blocks"

    def __init__(self, operator: str, compiler: StepsCompiler) -> None:
        self.operator, self.compiler = operator, compiler

    def refuse(self, command: Command) -> str | None:
        if command.name != self.operator:
            return f"it is made for {self.operator}"
        try:
            problem = problem_of(command)
        except NotSupportedError as error:
            return error.message
        if problem.multiply_adds < WORTH:
            return "it is too small to pay"
        builder = self.compiler.builder
        if float64 in [x.dtype for x in problem.layouts] and "float64" not in builder.spec.dtypes:
            return "the device has no float64"
        if len(problem.layouts) + 3 > builder.most_arguments:
            return "there are too many arguments"
        return "a panel is too large for local memory" if self.kind_of(problem) is None else None

    def prepare(self, command: Command) -> Kernel:
        problem = problem_of(command)
        kind = self.kind_of(problem)
        assert kind is not None
        steps = [EntryLaunch(entry, groups * kind.items, kind.items) for entry, groups in groups_of(problem, kind)]
        return self.compiler.kernel(self.operator, [StepsPart(AttentionSource(kind), steps, numbers_of(kind, problem))])

    def kind_of(self, problem: AttentionProblem) -> BlockedKind | None:
        return kind_of(problem, self.compiler.grouped, self.compiler.builder.device.local_mem_size)


@lru_cache(maxsize=256)
def problem_of(command: Command) -> AttentionProblem:
    """The problem of a command; NotSupportedError where there is no code for it."""
    return attention_of(command)


def groups_of(problem: AttentionProblem, kind: BlockedKind) -> Iterator[tuple[str, int]]:
    """The kernels, and the groups of work items of each."""
    batch = prod(problem.batch)
    queries = -(-problem.queries // kind.width) * batch * problem.group
    if not problem.back:
        yield "attend", queries
        return
    yield "of_keys", -(-problem.keys // kind.width) * batch
    yield "of_queries", queries
