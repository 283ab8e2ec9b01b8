"""Fused commands around a product: the operators that follow it become its ending, by their own formulas."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import prod
from typing import NamedTuple

from nnc_core.base.command import Command
from nnc_core.base.dtype import DType, accumulator, is_complex
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import Access, Instruction
from nnc_core.base.tiling import Tiling
from nnc_core.codegen.scalar import BodyBuilder, Scalar
from nnc_core.operator.loops import broadcast_layout
from nnc_core.operator.packing import UNPACK
from nnc_core.operator.products.ending import PRODUCT, Ending, Operand
from nnc_core.operator.program import Input, Literal, Program, Step, StepResult
from nnc_core.operator.program import Operand as ProgramOperand
from nnc_core.type import Attributes

REPEATED, RESHAPED = "broadcast_to", "reshape"
"""Operators whose elements are those of their input."""


class Factor(NamedTuple):
    """One of the two arrays that are multiplied."""

    layout: Layout
    place: int
    """Its number among the inputs of the command."""
    tiling: Tiling | None = None
    """The order that it is packed in; `shape` is that of what was packed."""
    shape: tuple[int, ...] = ()


def plain(factor: Factor) -> Layout:
    """The layout of a factor before it was packed."""
    if factor.tiling is None:
        return factor.layout
    if not factor.layout.contiguous:
        raise NotSupportedError("panels lie apart")
    return Layout.packed(factor.shape, factor.layout.dtype, factor.layout.offset)


def width_of(tiling: Tiling) -> int:
    """The columns of its panels."""
    return max(tiling.blocks)


class Pool(NamedTuple):
    """The windows that pool a product, and their way along it."""

    window: Sequence[int]
    strides: Sequence[int]
    dilation: Sequence[int]


class JoinedProduct(NamedTuple):
    """A product with what follows it."""

    attributes: Attributes
    factors: tuple[Factor, Factor]
    others: tuple[Layout, ...]
    """Operands of the ending, then outputs, each as large as the product."""
    places: tuple[int, ...]
    """Their numbers among the arrays of the command."""
    ending: Ending
    shape: tuple[int, ...]
    """Of the product."""
    pool: Pool | None = None
    """The windows of it that are pooled, each of which has an element in each output then."""


def joined_product(command: Command, program: Program) -> JoinedProduct:
    """The product of a fused command and its ending; NotSupportedError where what is joined to it is none."""
    return joined_by(EndingBuilder(command, program))


def joined_by(written: EndingBuilder) -> JoinedProduct:
    """The product of a fused command with the ending that is written for it."""
    command, program = written.command, written.program
    anchor = program.steps[written.anchor]
    factors = [_factor(command, program, operand) for operand in anchor.operands]
    ending = written.ending()
    places = tuple(range(len(command.inputs), len(command.inputs) + len(command.outputs)))
    outputs = [written.whole(x) for x in command.outputs]
    return JoinedProduct(anchor.attributes, (factors[0], factors[1]), (*written.layouts, *outputs),
                         (*written.inputs, *places), ending, anchor.spec.static_shape)


def _factor(command: Command, program: Program, operand: ProgramOperand) -> Factor:
    match operand:
        case Input(number):
            return Factor(command.inputs[number], number)
        case StepResult(number):
            step = program.steps[number]
            if step.op is UNPACK and isinstance(step.operands[0], Input):
                tiling, shape = step.attributes
                return Factor(command.inputs[step.operands[0].number], step.operands[0].number, tiling, shape)
    raise NotSupportedError("a product takes no operator in that comes before it")


class EndingBuilder:
    """Writes the instructions for one element of each result: loads first, stores last."""

    def __init__(self, command: Command, program: Program) -> None:
        self.command, self.program = command, program
        assert program.library is not None
        self.anchor = program.library
        self.shape = program.steps[self.anchor].spec.static_shape
        self.inputs: list[int] = []
        """Those of the command that the ending reads, in its order."""
        self.layouts: list[Layout] = []
        """Each as large as the product."""
        self.operands: list[Operand] = []
        self.values: dict[StepResult, Scalar] = {}
        self.loaded: dict[tuple[int, Layout], Scalar] = {}
        self.body = BodyBuilder(0)

    def ending(self) -> Ending:
        self.write(self.needed_steps())
        return Ending(*self.stored())

    def write(self, steps: Sequence[int]) -> None:
        """Write steps, the product among them where it is needed, behind all that they load."""
        product = None
        if self.anchor in steps:
            product = self._load(PRODUCT, accumulator(self._dtype(StepResult(self.anchor))))
        for step in [self.program.steps[n] for n in steps if n != self.anchor]:
            for operand in step.operands:
                if isinstance(operand, Input):
                    self._input(operand.number, step)
        if product is not None:
            self.values[StepResult(self.anchor)] = product.cast(self._dtype(StepResult(self.anchor)))
        for number in steps:
            if number != self.anchor:
                self.values[StepResult(number)] = self._step(self.program.steps[number])

    def stored(self) -> tuple[tuple[Instruction, ...], tuple[Operand, ...], tuple[DType, ...]]:
        """Store the results; all instructions, operands, and the dtypes of outputs."""
        for place, number in enumerate(self.program.results):
            value = self.values[StepResult(number)]
            access = Access(PRODUCT + 1 + len(self.operands) + place, 0, ())
            self.body.append(Instruction("store", value.dtype, (value.number,), access=access))
        outputs = tuple([self._dtype(StepResult(number)) for number in self.program.results])
        return tuple(self.body.instructions), tuple(self.operands), outputs

    def needed_steps(self) -> list[int]:
        """The product and the steps behind it, each one elementwise on as many elements."""
        found = [n for n, step in enumerate(self.program.steps) if not self.is_given_before(step)]
        self.require(found, prod(self.shape))
        return found

    def is_given_before(self, step: Step) -> bool:
        """True for what the product reads."""
        return step.op is UNPACK

    def require(self, steps: Iterable[int], size: int) -> None:
        """NotSupportedError where a step is not one for each of so many elements."""
        for number in steps:
            step = self.program.steps[number]
            if prod(step.spec.static_shape) != size:
                raise NotSupportedError(f"{step} is of another size than the product")
            known = number == self.anchor or step.op.scalar is not None or step.op.name in (REPEATED, RESHAPED)
            if not known or any(map(is_complex, self._dtypes(step))):
                raise NotSupportedError(f"{step} has no formula for one element")

    def _dtypes(self, step: Step) -> list[DType]:
        return [step.spec.dtype, *map(self._dtype, step.operands)]

    def _dtype(self, operand: ProgramOperand) -> DType:
        return self.program.spec_of(operand).dtype

    def _load(self, argument: int, dtype: DType) -> Scalar:
        return Scalar(self.body, self.body.append(Instruction("load", dtype, access=Access(argument, 0, ()))), dtype)

    def _input(self, number: int, step: Step) -> Scalar:
        """An element of an input, loaded once."""
        layout = self.seen(self.command.inputs[number], step)
        key = number, layout
        if key not in self.loaded:
            self.inputs.append(number)
            self.layouts.append(layout)
            self.operands.append(Operand(layout.dtype, layout.strides[-1] != 0))
            self.loaded[key] = self._load(PRODUCT + len(self.operands), layout.dtype)
        return self.loaded[key]

    def seen(self, x: Layout, step: Step) -> Layout:
        """An input of a step in the shape of the product."""
        if step.spec.static_shape == self.shape and step.op.name != RESHAPED:
            return broadcast_layout(x, self.shape)
        return broadcast_layout(x._replace(shape=(), strides=()), self.shape) if x.size == 1 else self.whole(x)

    def whole(self, x: Layout) -> Layout:
        """An array of as many elements in the shape of the product; NotSupportedError where these lie otherwise."""
        if x.shape == self.shape:
            return x
        if x.size != prod(self.shape) or not x.contiguous:
            raise NotSupportedError("what is reshaped does not lie in one piece, or is repeated")
        return Layout.packed(self.shape, x.dtype, x.offset)

    def _step(self, step: Step) -> Scalar:
        operands = [self._value(operand, step) for operand in step.operands]
        if step.op.scalar is None:
            return operands[0]
        result: Scalar = step.op.scalar(*operands, *step.attributes).cast(step.spec.dtype)
        return result

    def _value(self, operand: ProgramOperand, step: Step) -> Scalar:
        if isinstance(operand, Literal):
            literal = Instruction("constant", operand.dtype, literal=operand.value.item())
            return Scalar(self.body, self.body.append(literal), operand.dtype)
        return self._input(operand.number, step) if isinstance(operand, Input) else self.values[operand]
