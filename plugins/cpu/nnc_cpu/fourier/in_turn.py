"""Transforms along several axes, one after another."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from functools import partial

from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_cpu.addresses import arguments_of
from nnc_cpu.fourier.driver import HEAD
from nnc_cpu.kinds import FunctionCode, FunctionKernel
from nnc_cpu.threads.tasks import launch_shared

IN_TURN = """\
; numbers: count, then function, numbers and tasks of each; all but the first read what they write to
define void @in_turn(ptr %arguments, ptr %numbers, i64 %begin, i64 %end) #0 {
entry:
  %own = alloca [3 x ptr]
  %count = load i64, ptr %numbers
  %x = load ptr, ptr %arguments
  %y.at = getelementptr ptr, ptr %arguments, i64 1
  %y = load ptr, ptr %y.at
  %scratch.at = getelementptr ptr, ptr %arguments, i64 2
  %scratch = load ptr, ptr %scratch.at
  %own.y = getelementptr ptr, ptr %own, i64 1
  %own.scratch = getelementptr ptr, ptr %own, i64 2
  store ptr %y, ptr %own.y
  store ptr %scratch, ptr %own.scratch
  br label %loop
loop:
  %n = phi i64 [ 0, %entry ], [ %next, %loop ]
  %source = phi ptr [ %x, %entry ], [ %y, %loop ]
  store ptr %source, ptr %own
  %before = mul i64 %n, 3
  %first = add i64 %before, 1
  %function.at = getelementptr i64, ptr %numbers, i64 %first
  %function = load ptr, ptr %function.at
  %numbers.at = getelementptr i64, ptr %function.at, i64 1
  %of.it = load ptr, ptr %numbers.at
  %tasks.at = getelementptr i64, ptr %function.at, i64 2
  %tasks = load i64, ptr %tasks.at
  call void %function(ptr %own, ptr %of.it, i64 0, i64 %tasks)
  %next = add i64 %n, 1
  %more = icmp slt i64 %next, %count
  br i1 %more, label %loop, label %done
done:
  ret void
}
"""


class TransformsInTurn(FunctionKernel):
    """Transforms that are too small for several threads, as one task."""

    def __init__(self, code: FunctionCode, kernels: Sequence[FunctionKernel], seconds: float) -> None:
        self.kernels = kernels
        words = [word for kernel in kernels for word in (kernel.tasks.address, kernel.tasks.numbers,
                                                         kernel.tasks.total)]
        super().__init__(code, [len(kernels), *words], 1, seconds, notes=True)


class SharedTransforms(Kernel):
    """Transforms each of which threads share."""

    def __init__(self, kernels: Sequence[FunctionKernel]) -> None:
        self.kernels = kernels

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        x, y, scratch = buffers
        first, further = arguments_of([x, y, scratch]), arguments_of([y, y, scratch])
        first.kept = [*buffers], self
        return partial(self._run, first, further)

    def _run(self, first: object, further: object) -> None:
        ctypes.memset(first[2], 0, HEAD)  # type: ignore[index]
        for n, kernel in enumerate(self.kernels):
            launch_shared(kernel.tasks, further if n else first)
