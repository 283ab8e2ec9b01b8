"""Programs: several operators as data, compared by structure, so that equal ones share their code."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any, Final, NamedTuple, TypeAlias

import numpy as np

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType
from nnc_core.type import Attributes, Op, TensorSpec


@dataclass(frozen=True, slots=True)
class Input:
    """An input of the program."""

    number: int


@dataclass(frozen=True, slots=True)
class StepResult:
    """The result of a step before."""

    number: int


@dataclass(frozen=True, slots=True, repr=False)
class Literal:
    """A number that the code holds, as its bytes: 0.0 and -0.0 are two numbers, and a NaN equals itself."""

    content: bytes
    dtype: DType

    @staticmethod
    def of(value: Any, dtype: DType) -> Literal:
        return Literal(np.asarray(value, dtype).tobytes(), dtype)

    @property
    def value(self) -> Any:
        """The number as a scalar of NumPy."""
        return np.frombuffer(self.content, self.dtype)[0]

    def __repr__(self) -> str:
        return f"{self.value.item()!r}:{self.dtype}"


Operand: TypeAlias = Input | StepResult | Literal


class Step(NamedTuple):
    """One operator of a program."""

    op: Op
    attributes: Attributes
    operands: tuple[Operand, ...]
    spec: TensorSpec

    def __repr__(self) -> str:
        operands = ", ".join([*map(_name, self.operands), *map(repr, self.attributes)])
        return f"{self.op.name}({operands}) {self.spec}"


Place: TypeAlias = tuple[int, ...] | None
"""For each dimension of a result that is longer than 1 the axis of the last result that it lies along; None for one
that is written on the way, by the fold that goes through all of it."""
ON_THE_WAY: Final = None


class _ProgramFields(NamedTuple):
    steps: tuple[Step, ...]
    inputs: tuple[TensorSpec, ...]
    results: tuple[int, ...]
    """Numbers of the steps whose values are given."""
    inner: tuple[int, ...] = ()
    """Axes of the last result that are gone through in each row: along the others, each row has what was folded of
    it."""
    anchor: int | None = None
    """The step whose own loop nest the others are written into; None where each is written where it is needed."""
    library: int | None = None
    """The step whose library code runs all of them; None where there is none."""
    places: tuple[Place, ...] = ()
    """Where each result but the last is written; those beyond have the last one's axes."""


class Program(_ProgramFields):
    """Steps, each after those that it reads.  The last result is gone through point by point."""

    def __hash__(self) -> int:
        """Counted once: commands are looked up by it many times."""
        found: int | None = self.__dict__.get("hash")
        if found is None:
            found = self.__dict__["hash"] = super().__hash__()
        return found

    @property
    def shape(self) -> tuple[int, ...]:
        """The shape of the last result."""
        return self.steps[self.results[-1]].spec.static_shape

    def place_of(self, result: int) -> Place:
        return self.places[result] if result < len(self.places) else tuple(range(len(self.shape)))

    def spec_of(self, operand: Operand) -> TensorSpec:
        match operand:
            case Input(number):
                return self.inputs[number]
            case StepResult(number):
                return self.steps[number].spec
            case Literal(_, dtype):
                return TensorSpec((), dtype)

    def command_of(self, number: int) -> Command:
        """A step as a command by itself, on packed arrays."""
        step = self.steps[number]
        operands = tuple([self.spec_of(x).layout() for x in step.operands])
        return Command(step.op.name, step.attributes, operands, (step.spec.layout(),))

    @property
    def library_operator(self) -> str:
        """The name of the operator whose library code runs all steps; "" where there is none."""
        return "" if self.library is None else self.steps[self.library].op.name

    def pattern(self) -> Pattern:
        """Operators and operands without shapes and dtypes: what library code knows a program by."""
        return tuple([(step.op.name, step.operands) for step in self.steps])

    def __repr__(self) -> str:
        steps = "; ".join([f"%{n} = {step}" for n, step in enumerate(self.steps)])
        extra = "".join([f" over {list(self.inner)}" if self.inner else "",
                         f" in %{self.anchor}" if self.anchor is not None else "",
                         f" by %{self.library}" if self.library is not None else "",
                         f" at {list(self.places)}" if self.places else ""])
        return f"[{steps}{extra}] -> {', '.join([f'%{n}' for n in self.results])}"

    def __str__(self) -> str:
        return " ".join([step.op.name for step in self.steps])


Pattern: TypeAlias = tuple[tuple[str, tuple[Operand, ...]], ...]


def _name(operand: Operand) -> str:
    match operand:
        case Input(number):
            return f"${number}"
        case StepResult(number):
            return f"%{number}"
        case Literal():
            return repr(operand)
