"""Library code of a kind that hardware has: products that read their right operand in panels, and take what is around
them; an elementwise function that works on panels.  It runs on the host's memory and notes what it was asked to do."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Mapping, Sequence
from typing import Any
from zlib import crc32

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.config import config
from nnc_core.base.dtype import is_complex
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.tiling import Tiling
from nnc_core.device import Buffer, CommandBackend, Kernel, Launch, Stream
from nnc_core.engine import ComputationGraph
from nnc_core.graph import SymbolicGraph
from nnc_core.operator import OPERATORS
from nnc_core.operator.fused import FUSED
from nnc_core.operator.program import Input, Program, Step, StepResult
from nnc_core.stacks import Stack, make_stack
from nnc_core.symbol import Node
from nnc_cpu.device import CpuDevice

Array = np.ndarray[Any, Any]
WIDTH = 4
PANELS = Tiling((1, WIDTH), (1, 0, 3))
GREEDY = {"add", "multiply", "matmul", "exp", "maximum", "where", "sum", "subtract", "tanh", "cast", "conv", "permute"}
BLOCKS = Tiling((2, 3), (1, 0, 3, 2))
AROUND = frozenset({"add", "multiply", "subtract", "maximum", "relu", "negative", "cast", "broadcast_to", "pack",
                    "unpack"})
"""Operators that every right kernel rounds alike."""


class NestDevice(CpuDevice):
    """A CPU without library code, that fuses what it has nests for."""

    def __init__(self) -> None:
        super().__init__()
        self.spec = dataclasses.replace(self.spec, features=frozenset({"codegen", "reproducible"}))
        self.eager = {}

    def backends(self, name: str) -> Sequence[CommandBackend]:
        return ()


class Panels(CommandBackend):
    """Runs an operator, and programs around it of operators that it knows, most of them by their references."""

    def __init__(self, operator: str, *, wants: Mapping[int, Tiling] | None = None, fuses: bool = True,
                 known: frozenset[str] = AROUND, accepts: Callable[[Program], bool] = lambda program: True,
                 builds: Callable[[Program], bool] = lambda program: True) -> None:
        self.operator, self.wanted, self.fuses = operator, wants or {}, fuses
        self.name = f"panels of {operator}"
        self.known, self.accepts, self.builds = known, accepts, builds
        self.offered: list[str] = []
        self.ran: list[str] = []

    def refuse(self, command: Command) -> str | None:
        if command.output.dtype.itemsize != 4:
            return "float32 only"
        if command.name != FUSED.name:
            return None
        program: Program = command.attributes[0]
        self.offered.append(str(program))
        unknown = [step.op.name for n, step in enumerate(program.steps)
                   if n != program.library and step.op.name not in self.known]
        if unknown:
            return f"it knows no {unknown[0]}"
        return None if self.accepts(program) else "it would rather not"

    def wants(self, command: Command) -> Mapping[int, Tiling]:
        return {} if self.operator == "matmul" and any(command.attributes) else self.wanted

    def prepare(self, command: Command) -> Kernel:
        if command.name == FUSED.name and not self.builds(command.attributes[0]):
            raise NotSupportedError("the driver does not build it")
        return PanelKernel(self, command)


class PanelKernel(Kernel):
    """Step by step; products over panels where their right operand comes in panels."""

    def __init__(self, backend: Panels, command: Command) -> None:
        self.backend, self.command = backend, command

    def bind(self, buffers: Sequence[Buffer], stream: Stream | None = None) -> Launch:
        layouts = (*self.command.inputs, *self.command.outputs)
        device = CpuDevice()
        arrays = [device.array(b, x) for b, x in zip(buffers, layouts, strict=True)]

        def launch() -> None:
            *given, out = arrays
            with np.errstate(all="ignore"):
                out[...] = self._result(given)

        return launch

    def _result(self, given: Sequence[Array]) -> Array:
        if self.command.name != FUSED.name:
            self.backend.ran.append(self.command.name)
            reference = OPERATORS[self.command.name].reference
            assert reference is not None
            return np.asarray(reference(*given, *self.command.attributes))
        program: Program = self.command.attributes[0]
        self.backend.ran.append(str(program))
        values: list[Any] = []
        for step in program.steps:
            operands = [given[x.number] if isinstance(x, Input) else values[x.number] if isinstance(x, StepResult)
                        else np.asarray(x.value) for x in step.operands]
            if step.op.name == "unpack" and step.attributes[0] == PANELS and self.backend.operator == "matmul":
                values.append(("panels", *operands, step.spec))
            elif operands and isinstance(operands[-1], tuple):
                values.append(by_panels(operands[0], operands[-1][1], step.spec.static_shape))
            else:
                assert step.op.reference is not None
                values.append(np.asarray(step.op.reference(*operands, *step.attributes), step.spec.dtype))
        return np.asarray(values[program.results[0]])


class Greedy(Panels):
    """Wants its matrices in blocks and takes whatever it is offered, or a part of it that a seed draws; everything runs
    by its reference, but for what a loop nest would round in another way."""

    def __init__(self, operator: str, seed: int) -> None:
        exact = {name for name, op in OPERATORS.items() if op.exact}
        super().__init__(operator, known=frozenset(exact | GREEDY | {"pack", "unpack"}),
                         accepts=lambda program: all(map(_rounds_alike, program.steps)) and (
                             crc32(f"{seed} {program}".encode()) % 4 > 0))

    def wants(self, command: Command) -> Mapping[int, Tiling]:
        return {i: BLOCKS for i, x in enumerate(command.inputs) if len(x.shape) == 2}


def _rounds_alike(step: Step) -> bool:
    """Tell whether a step is the same by its reference and by the code that it has alone.  Of zeros of both signs the
    least and the largest are those that come first, in whatever order elements are taken."""
    if step.op.name in ("min", "max"):
        return False
    return step.spec.dtype == np.float32 or (step.op.exact and not is_complex(step.spec.dtype))


def by_panels(a: Array, panels: Array, shape: tuple[int, ...]) -> Array:
    """Panel by panel, each column as a plain product would sum it up."""
    whole = np.concatenate([np.matmul(a, panel) for panel in panels], axis=-1)
    return np.ascontiguousarray(whole[..., : shape[-1]])


def stack_with(*backends: Panels, codegen: bool = False) -> Stack:
    """A stack on a CPU that has this library code; `codegen`: that runs everything else by loop nests."""
    device = NestDevice() if codegen else CpuDevice()
    for backend in backends:
        device.take(backend.operator, backend)
    return make_stack(device)


def compiled(stack: Stack, inputs: dict[str, Node], *outputs: Node, fusion: bool = True) -> ComputationGraph:
    """A graph of these nodes, whose outputs are y0, y1 and so on."""
    with config.using(fusion=fusion, deterministic=True):
        run: ComputationGraph = stack.engine.compile(
            SymbolicGraph(inputs, {f"y{i}": y for i, y in enumerate(outputs)}))
        return run
