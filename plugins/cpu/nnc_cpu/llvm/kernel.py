"""Kernels of loop nests: a function of machine code, and the numbers that make it one nest's."""

from __future__ import annotations

import ctypes
from collections.abc import Mapping, Sequence
from weakref import WeakValueDictionary

from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import GeneralNest, general
from nnc_core.device import Kernel
from nnc_cpu.llvm.any_size import AnySize
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, TargetHost, host
from nnc_cpu.llvm.duration import seconds
from nnc_cpu.llvm.objects import ObjectCode, Objects
from nnc_cpu.llvm.outer import TaskShape
from nnc_cpu.threads.tasks import TaskKernel, Tasks, tasks_of

__all__ = ["MachineCode", "NestCompiler", "NestKernel", "host"]

_SIGNATURE = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_int64)


class MachineCode:
    """A function that nests share; its module lives as long as any of them."""

    def __init__(self, module: LoadedModule, name: str, shape: TaskShape) -> None:
        self.module, self.shape = module, shape
        self.address = module.addresses[name]
        self.function = _SIGNATURE(self.address)


class NestKernel(TaskKernel):
    """A loop nest as machine code."""

    def __init__(self, code: MachineCode, nest: LoopNest, numbers: Sequence[int]) -> None:
        self.code, self.buffers = code, len(nest.arguments)
        self.numbers = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        count = code.shape.tasks(numbers[len(nest.arguments) :])
        self._tasks = tasks_of(code.function, code.address, ctypes.addressof(self.numbers), count, seconds(nest),
                               nest.notes)

    @property
    def tasks(self) -> Tasks:
        return self._tasks

    def of_any_size(self, length: int) -> AnySize:
        """The code for arrays of every size, of a nest with one axis of that length."""
        return AnySize(self.code, self.tasks.seconds / length, self.buffers)


class NestCompiler:
    """Compiles nests for one host; equal general nests share their code for as long as anything uses it.

    kept: object code is kept on disk between processes.
    """

    def __init__(self, target: TargetHost, kept: bool = False) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self.objects = Objects(self.machine, kept)
        self._codes: WeakValueDictionary[str, MachineCode] = WeakValueDictionary()

    def kernels(self, nests: Sequence[LoopNest]) -> list[Kernel | NotSupportedError]:
        """A kernel of each, all new ones loaded as one module; for a nest that cannot be said the error itself."""
        made = [general(nest) for nest in nests]
        keys = [self.objects.key(shared) for shared, _ in made]
        codes: dict[str, MachineCode | NotSupportedError] = {
            key: known for key in keys if (known := self._codes.get(key)) is not None}
        codes |= self._loaded({key: shared for key, (shared, _) in zip(keys, made, strict=True) if key not in codes})
        found: list[Kernel | NotSupportedError] = []
        for nest, key, (_, numbers) in zip(nests, keys, made, strict=True):
            code = codes[key]
            if isinstance(code, MachineCode):
                found.append(NestKernel(code, nest, numbers))
            else:
                found.append(code)
        return found

    def kept(self, nests: Sequence[LoopNest]) -> list[bool]:
        """Tell of each nest whether its code has been made, by this process or one before."""
        keys = [self.objects.key(general(nest)[0]) for nest in nests]
        return [key in self._codes or self.objects.has(key) for key in keys]

    def _loaded(self, nests: Mapping[str, GeneralNest]) -> dict[str, MachineCode | NotSupportedError]:
        objects = dict[str, ObjectCode]()
        codes: dict[str, MachineCode | NotSupportedError] = {}
        for key, nest in nests.items():
            try:
                objects[key] = self.objects.of(nest, key)
            except NotSupportedError as error:
                codes[key] = error
        if objects:
            module = self.machine.load([made.code for made in objects.values()],
                                       [made.name for made in objects.values()])
            for key, made in objects.items():
                codes[key] = self._codes[key] = MachineCode(module, made.name, made.shape)
        return codes
