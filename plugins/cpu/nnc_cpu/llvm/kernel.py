"""Kernels of loop nests: a function of machine code, and the numbers that make it one nest's."""

from __future__ import annotations

import ctypes
from collections.abc import Sequence
from weakref import WeakValueDictionary

from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import LoopNest
from nnc_core.codegen import GeneralNest, general
from nnc_core.device import Kernel
from nnc_cpu.llvm.compiler import HostCompiler, LoadedModule, TargetHost, host
from nnc_cpu.llvm.duration import seconds
from nnc_cpu.llvm.helpers import definitions
from nnc_cpu.llvm.render import TaskShape, render
from nnc_cpu.threads.tasks import TaskKernel, Tasks, threads_for

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

    def __init__(self, code: MachineCode, arguments: int, numbers: Sequence[int], seconds: float) -> None:
        self.code = code
        self.numbers = (ctypes.c_int64 * max(len(numbers), 1))(*numbers)
        count = code.shape.tasks(numbers[arguments:])
        self._tasks = Tasks(code.function, code.address, ctypes.addressof(self.numbers), count,
                            threads_for(count, seconds))

    @property
    def tasks(self) -> Tasks:
        return self._tasks


class NestCompiler:
    """Compiles nests for one host; equal general nests share their code for as long as anything uses it."""

    def __init__(self, target: TargetHost) -> None:
        self.target, self.machine = target, HostCompiler(target)
        self._codes: WeakValueDictionary[GeneralNest, MachineCode] = WeakValueDictionary()

    def kernels(self, nests: Sequence[LoopNest]) -> list[Kernel | NotSupportedError]:
        """A kernel of each, all new ones compiled as one module; for a nest that cannot be said the error itself."""
        made = [general(nest) for nest in nests]
        codes: dict[GeneralNest, MachineCode | NotSupportedError] = {
            shared: known for shared, _ in made if (known := self._codes.get(shared)) is not None}
        codes |= self._compiled([shared for shared in dict.fromkeys(n for n, _ in made) if shared not in codes])
        found: list[Kernel | NotSupportedError] = []
        for nest, (shared, numbers) in zip(nests, made, strict=True):
            code = codes[shared]
            if isinstance(code, MachineCode):
                found.append(NestKernel(code, len(shared.nest.arguments), numbers, seconds(nest)))
            else:
                found.append(code)
        return found

    def _compiled(self, nests: Sequence[GeneralNest]) -> dict[GeneralNest, MachineCode | NotSupportedError]:
        declared: dict[str, None] = {}
        codes: dict[GeneralNest, MachineCode | NotSupportedError] = {}
        texts, shapes = dict[GeneralNest, str](), dict[GeneralNest, tuple[str, TaskShape]]()
        for number, nest in enumerate(nests):
            name = f"kernel_{number}"
            try:
                texts[nest], shape = render(name, nest, self.target.lanes, self.target.halves, declared)
            except NotSupportedError as error:
                codes[nest] = error
            else:
                shapes[nest] = name, shape
        if shapes:
            defined = definitions(declared)
            text = "\n".join([*declared, *defined, *texts.values()])
            module = self.machine.load(text, dict.fromkeys([name for name, _ in shapes.values()]))
            for nest, (name, shape) in shapes.items():
                code = MachineCode(module, name, shape)
                codes[nest] = self._codes[nest] = code
        return codes
