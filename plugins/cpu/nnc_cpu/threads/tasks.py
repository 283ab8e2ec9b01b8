"""Work in tasks that threads may share, and kernels that consist of it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from functools import partial
from typing import Any, NamedTuple

from nnc_core.device import Buffer, Kernel, Launch, Stream
from nnc_cpu.addresses import arguments_of
from nnc_cpu.notes import LookingLaunch, look, words_at
from nnc_cpu.threads.pool import code, pool, wanted_threads

WORTH = 30e-6
"""Seconds of work that each of several threads must have: about what it takes to wake them."""


class Tasks(NamedTuple):
    """Work of machine code: `function(arguments, numbers, first, end)` does tasks `first` up to `end`, each of which
    writes what no other touches; `arguments` are the addresses of buffers.  Others keep code and numbers alive."""

    function: Any
    """As `ctypes` calls it."""
    address: int
    """Where it begins."""
    numbers: int
    """The address of numbers that it is given."""
    total: int
    seconds: float
    """About what one thread takes."""
    most_threads: int
    """The number of threads that are of use."""
    notes: bool = False
    """True if the last buffer begins with room for notes, which is zero when the first task begins."""


def tasks_of(function: Any, address: int, numbers: int, total: int, seconds: float, notes: bool = False) -> Tasks:
    """Tasks, with as many threads as that time is worth."""
    return Tasks(function, address, numbers, total, seconds, max(1, min(total, int(seconds / WORTH))), notes)


class TaskKernel(Kernel):
    """A kernel of machine code."""

    def ready(self) -> TaskKernel:
        """Itself: other kernels have machine code later."""
        return self

    @property
    @abstractmethod
    def tasks(self) -> Tasks:
        """The work of one launch."""

    def noted(self, addresses: Sequence[int]) -> None:
        """Raise what a launch with buffers at these addresses has noted, or put it right."""
        look(words_at(addresses[-1]))

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        tasks, arguments = self.tasks, arguments_of(buffers)
        arguments.kept = [*buffers], self
        launch: Launch = partial(launch_shared, tasks, arguments)
        if tasks.most_threads == 1:
            launch = partial(tasks.function, arguments, tasks.numbers, 0, tasks.total)
        looks = tasks.notes
        return LookingLaunch(launch, partial(self.noted, arguments), words_at(arguments[-1])) if looks else launch

    def launch(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> None:
        tasks = self.tasks
        if tasks.notes:
            self.bind(buffers)()
        elif tasks.most_threads == 1:
            tasks.function(arguments_of(buffers), tasks.numbers, 0, tasks.total)
        else:
            launch_shared(tasks, arguments_of(buffers))


def launch_shared(tasks: Tasks, arguments: Any) -> None:
    """Do all tasks, with as many threads as may be and are of use."""
    threads = min(tasks.most_threads, wanted_threads())
    helpers = pool().helpers(threads - 1) if threads > 1 else 0
    code().run(pool().address if helpers else None, tasks.address, arguments, tasks.numbers, tasks.total,
               helpers)
