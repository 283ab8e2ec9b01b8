"""Render loop nests as source of a C-like language."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from math import log, prod
from typing import NamedTuple

from nnc_core.base.dtype import DType, boolean, int64, is_float, uint32, uint64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import Access, Instruction, LoopNest, Reduction, Stage, Subscript
from nnc_core.codegen.clike_helpers import Helpers
from nnc_core.codegen.clike_scalars import LACKING, Scalars
from nnc_core.codegen.dialect import Dialect
from nnc_core.codegen.expand import expand
from nnc_core.codegen.general import AnyNest, GeneralNest
from nnc_core.codegen.numpy_reductions import identity
from nnc_core.codegen.ranges import always_valid, axis_lengths, index_type, numerator_range


def entry_name(nest: AnyNest) -> str:
    """The kernel's name in `render`'s program: that of the nest, made an identifier that is no keyword."""
    name = nest.name if isinstance(nest, LoopNest) else nest.nest.name
    return "kernel_" + re.sub(r"\W", "_", name, flags=re.ASCII)


def kernel_names(nest: AnyNest, place: int, writers: Iterable[type[CLikeKernel]]) -> dict[str, type[CLikeKernel]]:
    """The writers of a nest's kernels, in the order in which they run, by names that no nest at another place of a
    program has: two numbers end each, so that names of nests which end in numbers change nothing."""
    return {f"{entry_name(nest)}_{place}_{number}": writer for number, writer in enumerate(writers)}


def render(nest: AnyNest, dialect: Dialect) -> str:
    """A program with one kernel, `entry_name(nest)`, which takes the nest's arguments in order, then the numbers of a
    general nest."""
    return render_program({entry_name(nest): nest}, dialect)


def render_program(kernels: Mapping[str, AnyNest], dialect: Dialect) -> str:
    """A program of several kernels by name; names are identifiers that do not begin with nnc_.

    Functions that the language lacks are expanded; the others are its own, unless `expand` has been called before.
    """
    return program_of({name: (nest, CLikeKernel) for name, nest in kernels.items()}, dialect)


def program_of(kernels: Mapping[str, tuple[AnyNest, type[CLikeKernel]]], dialect: Dialect) -> str:
    """The same with kernels written by the writers that are chosen for them."""
    helpers = Helpers(dialect)
    sources = [writer(name, expand(nest, LACKING), helpers).source() for name, (nest, writer) in kernels.items()]
    preamble = dialect.preamble + (dialect.float64_preamble if helpers.uses_float64 else "")
    return "\n".join([preamble, *helpers.definitions.values(), *sources])


class _Place(NamedTuple):
    """The place of an access: element number, and validity or "" for always, as expressions."""

    element: str
    valid: str


class CLikeKernel:
    """Writes one kernel: arguments are a0 ..., axes x0 ..., values v0 ..., subscripts s<value>_<place>; of a general
    nest the first elements are o<argument>, lengths n<axis>."""

    def __init__(self, name: str, nest: AnyNest, helpers: Helpers) -> None:
        self.name, self.dialect = name, helpers.dialect
        self.general = nest if isinstance(nest, GeneralNest) else None
        self.nest = nest if isinstance(nest, LoopNest) else nest.nest
        self.scalars = Scalars(helpers)
        self.integer = index_type(self.nest) if self.general is None else self.general.index
        self.index = self.dialect.types[self.integer.name]
        self.dtypes = self.nest.dtypes
        self.written = 0  # values so far
        self.limits: set[int] = set()  # constants that are numbers
        self.guard = ""  # the condition under which this work item stores
        self.lines: list[str] = []
        self.depth = 0

    def source(self) -> str:
        parameters = [*map(self.parameter, range(len(self.nest.arguments))), *self.numbers()]
        self.open(self.dialect.head.format(name=self.name, parameters=", ".join(parameters)))
        if self.nest.points:
            self.points()
        self.close()
        return "\n".join(self.lines) + "\n"

    def parameter(self, place: int) -> str:
        argument = self.nest.arguments[place]
        const, name = "" if argument.written else "const ", self.stored(argument.dtype)
        template = self.dialect.parameter or "{const}{type} *{name}"
        return template.format(const=const, type=name, name=f"a{place}")

    def numbers(self) -> list[str]:
        """Declarations of the numbers that a general nest is given."""
        if self.general is None:
            return []
        long = self.dialect.types["int64"]
        firsts = [f"const {long} o{argument}" for argument in range(len(self.nest.arguments))]
        return [*firsts, *(f"const {long} n{axis}" for axis in self.general.lengths)]

    def stored(self, dtype: DType) -> str:
        self.scalars.held(dtype)
        return self.dialect.types[dtype.name]

    def points(self) -> None:
        """The outer points: one of a work item, or all from `begin` to `end`."""
        if self.dialect.point is None:
            self.take_arguments()
            self.move_arguments()
            self.open("for (int64_t point = begin; point < end; ++point)")
            self.point("point")
            self.close()
        else:
            self.line(f"if ({self.dialect.point} >= {self.count()}) return;")
            self.move_arguments()
            self.point(self.dialect.point)

    def take_arguments(self) -> None:
        for place in range(len(self.nest.arguments)):
            self.line(f"{self.parameter(place)} = arguments[{place}];")
        if numbers := self.numbers():
            self.line(f"const int64_t *numbers = arguments[{len(self.nest.arguments)}];")
            for place, declaration in enumerate(numbers):
                self.line(f"{declaration} = numbers[{place}];")

    def move_arguments(self) -> None:
        """Let pointers point to where the arguments of a general nest begin."""
        if self.general is not None:
            for place in range(len(self.nest.arguments)):
                self.line(f"a{place} += o{place};")

    def count(self) -> str:
        """The number of outer points."""
        if self.general is None:
            return self.scalars.literal(self.nest.points, uint64)
        given = self.general.lengths
        fixed = prod(length for axis, length in enumerate(self.nest.axes) if axis not in given)
        unsigned = self.dialect.types["uint64"]
        return " * ".join([self.scalars.literal(fixed, uint64), *(f"({unsigned})n{axis}" for axis in given)])

    def length(self, axis: int) -> str:
        """The length of an outer axis."""
        if self.general is not None and axis in self.general.lengths:
            return f"({self.index})n{axis}"
        return self.number(self.nest.axes[axis])

    def point(self, flat: str) -> None:
        self.place(flat)
        for stage in self.nest.stages:
            self.stage(stage)

    def place(self, flat: str) -> None:
        """Declare the place on outer axes of a point that is counted through them."""
        self.line(f"{self.index} rest = ({self.index}){flat};")
        axes = self.nest.axes
        for axis in reversed(range(len(axes))):
            if 1 in (axes[axis], self.nest.points):
                self.line(f"const {self.index} x{axis} = 0;")
            elif all(length == 1 for length in axes[:axis]):
                self.line(f"const {self.index} x{axis} = rest;")
            else:
                self.line(f"const {self.index} x{axis} = rest % {self.length(axis)};")
                self.line(f"rest /= {self.length(axis)};")

    def stage(self, stage: Stage) -> None:
        self.start_reductions(stage)
        self.in_order(stage)

    def start_reductions(self, stage: Stage) -> None:
        for number, reduction in enumerate(stage.reductions, self.written + len(stage.body)):
            self.start_reduction(number, reduction)

    def in_order(self, stage: Stage) -> None:
        """Go through the inner points of a stage, one after another."""
        after = self.written + len(stage.body)
        adds_floats = any(r.kind in _ORDERED and is_float(r.dtype) for r in stage.reductions)
        order = self.dialect.ordered_loop if adds_floats else ""
        for axis, length in enumerate(stage.axes, len(self.nest.axes)):
            self.open(f"{order}for ({self.index} x{axis} = 0; x{axis} < {self.number(length)}; ++x{axis})")
        for instruction in stage.body:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        for number, reduction in enumerate(stage.reductions, after):
            self.fold(number, reduction)
        self.written += len(stage.reductions)
        for instruction in stage.running:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        for _ in stage.axes:
            self.close()

    def start_reduction(self, number: int, reduction: Reduction) -> None:
        first = self.scalars.literal(identity(reduction.kind, reduction.dtype), reduction.dtype)
        self.line(f"{self.scalars.held(reduction.dtype)} v{number} = {first};")
        if reduction.kind in ("argmax", "argmin"):
            self.line(f"{self.dialect.types['int64']} v{number}_seen = 0;")
            self.line(f"{self.scalars.held(self.dtypes[reduction.value])} v{number}_best = 0;")

    def fold(self, number: int, reduction: Reduction) -> None:
        if reduction.kind in ("argmax", "argmin"):
            self.fold_position(number, reduction)
            return
        if reduction.kind == "dot":
            terms = [self.scalars.cast(f"v{term}", self.dtypes[term], reduction.dtype) for term in reduction.operands]
            folded = self.scalars.expression("fma", reduction.dtype, (*terms, f"v{number}"), reduction.dtype)
            self.line(f"v{number} = {folded};")
            return
        value = f"v{number}_next"
        self.line(f"const {self.scalars.held(reduction.dtype)} {value} = {self.term(reduction)};")
        if reduction.kind == "logsumexp":
            self.line(f"v{number} = {self.log_add_exp(reduction.dtype)}(v{number}, {value});")
            return
        if reduction.factor is not None:
            factors = f"v{number}", f"v{reduction.factor}"
            scaled = self.scalars.expression("multiply", reduction.dtype, factors, reduction.dtype)
            self.line(f"v{number} = {scaled};")
        operation = FOLDS[reduction.kind]
        folded = self.scalars.expression(operation, reduction.dtype, (f"v{number}", value), reduction.dtype)
        self.line(f"v{number} = {folded};")

    def term(self, reduction: Reduction) -> str:
        """The value at the point at hand that is folded."""
        return self.scalars.cast(f"v{reduction.value}", self.dtypes[reduction.value], reduction.dtype)

    def log_add_exp(self, dtype: DType) -> str:
        """The name of log(exp(a) + exp(b)), as a helper."""
        helpers = self.scalars.helpers
        words = {name: helpers.math(name, dtype) for name in ("log1p", "exp", "fabs")}
        return helpers.define(f"nnc_log_add_exp_{dtype.name}", LOG_ADD_EXP, type=self.scalars.held(dtype),
                              dtype=dtype.name, log2=self.scalars.literal(log(2), dtype), **words)

    def better(self, reduction: Reduction, best: str, value: str) -> str:
        """The condition under which a value beats the best so far: a NaN beats numbers, and nothing beats it."""
        beats = f"{value} {'>' if reduction.kind == 'argmax' else '<'} {best}"
        return f"({best} == {best} && ({beats} || {value} != {value}))" if is_float(
            self.dtypes[reduction.value]) else beats

    def fold_position(self, number: int, reduction: Reduction) -> None:
        """The first of equals."""
        best, value = f"v{number}_best", f"v{reduction.value}"
        self.open(f"if (v{number}_seen == 0 || {self.better(reduction, best, value)})")
        self.line(f"{best} = {value};")
        self.line(f"v{number} = ({self.scalars.held(reduction.dtype)})v{number}_seen;")
        self.close()
        self.line(f"++v{number}_seen;")

    def instruction(self, instruction: Instruction, lengths: Sequence[int]) -> None:
        number = self.written
        self.written += 1
        if instruction.access is None:
            self.declare(number, instruction.dtype, self.value(instruction))
            return
        place = self.locate(instruction.access, number, lengths)
        argument = self.nest.arguments[instruction.access.argument]
        element = f"a{instruction.access.argument}[{place.element}]"
        if instruction.operation == "load":
            loaded = self.scalars.load(element, argument.dtype)
            if place.valid:
                otherwise = self.scalars.literal(instruction.literal, instruction.dtype)
                loaded = f"{place.valid} ? ({loaded}) : {otherwise}"
            self.declare(number, instruction.dtype, loaded)
        elif instruction.operation == "store":
            conditions = " && ".join([condition for condition in (self.guard, place.valid) if condition])
            guard = f"if ({conditions}) " if conditions else ""
            stored = self.scalars.store(f"v{instruction.operands[0]}", argument.dtype)
            self.line(f"{guard}{element} = {stored};")
        elif instruction.operation == "valid":
            self.declare(number, boolean, place.valid or "1")
        else:
            raise NotSupportedError(f"no access by the scalar instruction {instruction.operation}")

    def value(self, instruction: Instruction) -> str:
        """An instruction without an access, as an expression."""
        if instruction.operation == "constant":
            if is_float(instruction.dtype) and instruction.literal == instruction.literal:
                self.limits.add(self.written - 1)
            return self.scalars.literal(instruction.literal, instruction.dtype)
        if instruction.operation == "axis":
            return f"({self.scalars.held(int64)})x{instruction.axis}"
        names = [f"v{operand}" for operand in instruction.operands]
        source = self.dtypes[instruction.operands[0]]
        if instruction.operation in ("minimum", "maximum") and instruction.operands[1] in self.limits:
            return self.scalars.extreme_beside_number(instruction.operation, *names)
        return self.scalars.expression(instruction.operation, instruction.dtype, names, source)

    def locate(self, access: Access, number: int, lengths: Sequence[int]) -> _Place:
        """Write out what must be computed before the access."""
        offset, terms, valid = access.offset, dict[int, int](), list[str]()
        far: list[str] = []
        for place, subscript in enumerate(access.subscripts):
            if subscript.divisor == 1 and subscript.gather is None and always_valid(subscript, lengths):
                offset += subscript.stride * subscript.offset
                for axis, coefficient in subscript.coefficients:
                    terms[axis] = terms.get(axis, 0) + subscript.stride * coefficient
            else:
                name = f"s{number}_{place}"
                valid += self.subscript(name, subscript, lengths)
                far.append(f"{self.number(subscript.stride)} * ({self.index}){name}")
        element = self.linear(offset, terms.items(), lengths)
        return _Place(" + ".join([element, *far]), " && ".join(valid))

    def subscript(self, name: str, subscript: Subscript, lengths: Sequence[int]) -> list[str]:
        """Declare the index `name` of one dimension; returns the conditions of its validity."""
        index, integer = self.linear(subscript.offset, subscript.coefficients, lengths), self.integer
        conditions: list[str] = []
        if subscript.divisor != 1:
            divisor = self.number(subscript.divisor)
            self.line(f"const {self.index} {name}_whole = {index};")
            index = f"{name}_whole / {divisor}"
            if subscript.checked:
                conditions.append(f"{name}_whole % {divisor} == 0")
            elif numerator_range(subscript, lengths)[0] < 0:
                index += f" - ({name}_whole % {divisor} < 0)"
        if subscript.gather is not None:  # any 64 bits may have been gathered: wrap, then check
            integer, long = int64, self.dialect.types["uint64"]
            index = f"(({long})({index}) + ({long})v{subscript.gather})"
        unsigned = uint64 if integer == int64 else uint32
        held = self.dialect.types[integer.name]
        self.line(f"const {held} {name} = ({held})({index});")
        if subscript.checked:
            extent = self.scalars.literal(subscript.extent, unsigned)
            conditions.append(f"({self.dialect.types[unsigned.name]}){name} < {extent}")
        return conditions

    def linear(self, offset: int, terms: Iterable[tuple[int, int]], lengths: Sequence[int]) -> str:
        """offset + sum(coefficient * axis), leaving out what is 0."""
        moving = [(axis, c) for axis, c in terms if c and lengths[axis] > 1]
        parts = [f"{self.number(c)} * x{axis}" if c != 1 else f"x{axis}" for axis, c in moving]
        return " + ".join([self.number(offset), *parts] if offset or not parts else parts)

    def number(self, value: int) -> str:
        """An integer of address arithmetic."""
        return self.scalars.literal(value, self.integer)

    def declare(self, number: int, dtype: DType, expression: str) -> None:
        self.line(f"const {self.scalars.held(dtype)} v{number} = {expression};")

    def line(self, text: str) -> None:
        self.lines.append("  " * self.depth + text)

    def open(self, text: str) -> None:
        self.line(text + " {")
        self.depth += 1

    def close(self) -> None:
        self.depth -= 1
        self.line("}")


FOLDS = {
    "sum": "add", "product": "multiply", "maximum": "maximum", "minimum": "minimum",
    "all": "bitwise_and", "any": "bitwise_or", "recurrence": "add",
}  # fmt: skip
_ORDERED = ("sum", "product", "logsumexp", "recurrence", "dot")
"""Reductions of floats whose result depends on the order."""
LOG_ADD_EXP = """\
{function} {type} nnc_log_add_exp_{dtype}({type} a, {type} b) {{
  if (a == b) return a + {log2};
  return (a > b ? a : b) + {log1p}({exp}(-{fabs}(a - b)));
}}
"""
