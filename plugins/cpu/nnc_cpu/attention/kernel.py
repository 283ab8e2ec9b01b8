"""Kernels of attention: code that attention of one kind shares, and the numbers of one of them."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import cache, partial

from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_core.operator.attention_problem import AttentionProblem
from nnc_cpu.addresses import arguments_of
from nnc_cpu.attention import backward, forward
from nnc_cpu.attention.kind import AttentionKind
from nnc_cpu.attention.plan import AttentionPlan, plan_of
from nnc_cpu.kinds import SIGNATURE, CodeByKind
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, TargetHost, host
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.objects import Objects
from nnc_cpu.threads.tasks import WORTH, TaskKernel, Tasks, launch_shared, tasks_of

__all__ = ["AttentionCompiler", "compiler"]

MULTIPLY_ADD = 0.02e-9
"""Seconds of one multiplication and addition."""
COPIED = 0.3e-9
"""Seconds for an element that is added up once more."""


class AttentionCode:
    """The functions of a kind; their module lives as long as anything uses them."""

    def __init__(self, module: LoadedModule) -> None:
        self.module = module
        self.functions = {name: SIGNATURE(address) for name, address in module.addresses.items()}


class ForwardKernel(TaskKernel):
    """Attention ahead as machine code."""

    def __init__(self, code: AttentionCode, plan: AttentionPlan, seconds: float) -> None:
        self.code = code
        self.numbers = (ctypes.c_int64 * len(plan.numbers))(*plan.numbers)
        self._tasks = tasks_of(code.functions[forward.NAME], code.module.addresses[forward.NAME],
                               ctypes.addressof(self.numbers), plan.tasks[0], seconds)

    @property
    def tasks(self) -> Tasks:
        return self._tasks


class BackwardInTurn(TaskKernel):
    """Attention back that is too small for several threads, as one task."""

    def __init__(self, code: AttentionCode, plan: AttentionPlan, seconds: float) -> None:
        self.code = code
        numbers = (*plan.tasks, *plan.numbers)
        self.numbers = (ctypes.c_int64 * len(numbers))(*numbers)
        self._tasks = tasks_of(code.functions[backward.IN_TURN], code.module.addresses[backward.IN_TURN],
                               ctypes.addressof(self.numbers), 1, seconds)

    @property
    def tasks(self) -> Tasks:
        return self._tasks


class BackwardKernel(Kernel):
    """Attention back as machine code: tasks of two kinds, one after the other."""

    def __init__(self, code: AttentionCode, plan: AttentionPlan, seconds: Sequence[float]) -> None:
        self.code = code
        self.numbers = (ctypes.c_int64 * len(plan.numbers))(*plan.numbers)
        numbers = ctypes.addressof(self.numbers)
        self.stages = [tasks_of(code.functions[name], code.module.addresses[name], numbers, count, each)
                       for name, count, each in zip(backward.NAMES, plan.tasks, seconds, strict=True)]

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        arguments = arguments_of(buffers)
        arguments.kept = [*buffers], self
        return partial(self._run, arguments)

    def _run(self, arguments: object) -> None:
        for tasks in self.stages:
            launch_shared(tasks, arguments)


class AttentionCompiler:
    """Compiles attention for one host; kept: object code is kept on disk between processes."""

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self.codes = CodeByKind(self._made)

    def plan(self, problem: AttentionProblem) -> AttentionPlan:
        return plan_of(problem, 4 * self.target.lanes)

    def kernel(self, problem: AttentionProblem) -> Kernel:
        """The kernel of a problem; its buffers are inputs, outputs and, on the way back, scratch memory."""
        plan = self.plan(problem)
        code, seconds = self.codes[plan.kind], problem.multiply_adds * MULTIPLY_ADD
        if not problem.back:
            return ForwardKernel(code, plan, seconds)
        adding = plan.workspace // problem.layouts[0].dtype.itemsize * COPIED
        if max(seconds, adding) < 2 * WORTH:
            return BackwardInTurn(code, plan, seconds + adding)
        return BackwardKernel(code, plan, (seconds, adding))

    def _made(self, kind: AttentionKind) -> AttentionCode:
        code = self.objects.of_kind(("attention", kind), lambda: self._text(kind))
        names = [*backward.NAMES, backward.IN_TURN] if kind.back else [forward.NAME]
        return AttentionCode(self.machine.load([code], names))

    def _text(self, kind: AttentionKind) -> str:
        declared: dict[str, None] = {}
        text = (backward if kind.back else forward).render(kind, self.target.halves, declared)
        return "\n".join([*declared, *definitions(declared), text])


@cache
def compiler() -> AttentionCompiler:
    """The compiler for this machine."""
    return AttentionCompiler(host(), kept=True)
