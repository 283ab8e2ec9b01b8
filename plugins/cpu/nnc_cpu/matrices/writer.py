"""The function of an operator of matrices: for each matrix of a stack the steps of its kind, in scratch memory."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.matrices.elements import ElementWriter
from nnc_cpu.matrices.numpys import INVALID
from nnc_cpu.matrices.phases import PhaseWriter
from nnc_cpu.matrices.steps import (
    HEAD,
    NOTE,
    WHERE,
    CallLoop,
    CallRoutine,
    Give,
    GiveOrder,
    MatrixKind,
    Settle,
    Step,
    Take,
)
from nnc_cpu.products.parts import SIGNATURE
from nnc_cpu.products.writing import difference, function_text, moved, parameters, product, smaller, total

NAME = "matrices"


def render(kind: MatrixKind, declared: dict[str, None]) -> str:
    """The text of the function."""
    return MatrixWriter(kind, declared).text()


class MatrixWriter:
    """Writes the function.  A matrix that the steps have no result for is noted, and the rest of its steps left out:
    whoever looks at the note runs the command in another way."""

    def __init__(self, kind: MatrixKind, declared: dict[str, None]) -> None:
        self.kind, self.function = kind, FunctionWriter(declared)

    def text(self) -> str:
        f, kind = self.function, self.kind
        arguments, self.numbers, begin, end = parameters(SIGNATURE)
        self.head = {name: self.number(n) for n, name in enumerate(HEAD)}
        pointers = [f.let(f"load ptr, {moved(f, arguments, 'ptr', integer(n))}", "ptr")
                    for n in range(kind.inputs + kind.outputs + 1)]
        self.arrays, self.note = pointers[:-1], pointers[-1]
        with f.loop(begin, end) as task:
            self.room = self.byte(self.note, total(f, integer(NOTE), product(f, task, self.head["room"])))
            first = product(f, task, self.head["each"])
            count = smaller(f, self.head["each"], difference(f, self.head["matrices"], first))
            with self.held(), f.loop(first, total(f, first, count)) as matrix:
                self.steps(matrix)
        return function_text(f, NAME, SIGNATURE, linkage="")

    def number(self, n: int) -> Register:
        return self.function.let(f"load i64, {self.number_at(n)}", "i64")

    def number_at(self, n: int) -> Register:
        return moved(self.function, self.numbers, "i64", integer(n))

    def byte(self, pointer: Register, by: Register) -> Register:
        return moved(self.function, pointer, "i8", by)

    @contextmanager
    def held(self) -> Iterator[None]:
        """Hold the BLAS to one thread meanwhile."""
        f = self.function
        holds = f.let(f"icmp ne {self.head['hold']}, 0", "i1")
        for name in ("hold", "release"):
            with f.where(holds):
                function, held = (f.let(f"inttoptr {self.head[word]} to ptr", "ptr") for word in (name, "held"))
                f.line(f"call void {function.name}({held})")
            if name == "hold":
                yield

    def steps(self, matrix: Register) -> None:
        place = len(HEAD)
        with ExitStack() as inside:
            for step in self.kind.steps:
                failed = self.step(step, place, matrix)
                place += step.needed
                if failed is not None:
                    with self.function.where(failed):
                        self.function.call_void("nnc_note_s64", self.note, integer(0), matrix, integer(0))
                    inside.enter_context(self.function.where(self.negated(failed)))

    def negated(self, x: Register) -> Register:
        return self.function.let(f"xor {x}, true", "i1")

    def step(self, step: Step, place: int, matrix: Register) -> Register | None:
        """Write a step; what it gives is true where there is no result, None where there always is one."""
        match step:
            case CallLoop():
                return self.call_loop(step, place)
            case CallRoutine():
                return self.call_routine(step, place)
            case Take() | Give():
                return self.moving(step, place, matrix)
            case Settle():
                numbers = [self.number(place + n) for n in range(step.needed)]
                PhaseWriter(self.function, step, numbers, self.room).write()
            case GiveOrder():
                self.order(step, place, matrix)
        return None

    # ---- matrices and areas
    def where(self, place: int) -> dict[str, Register]:
        return {name: self.number(place + n) for n, name in enumerate(WHERE)}

    def moving(self, step: Take | Give, place: int, matrix: Register) -> Register | None:
        """Go through the elements of a matrix and its area."""
        f, at = self.function, self.where(place)
        number = step.input if isinstance(step, Take) else self.kind.inputs + step.output
        array = self.byte(self.arrays[number], total(f, at["offset"], product(f, matrix, at["batch"])))
        area = self.byte(self.room, at["place"])
        elements = ElementWriter(f, step.element, f.variable("i1") if step.finite else None)
        if elements.unbounded is not None:
            f.set(elements.unbounded, integer(0, 1))
        with f.loop(integer(0), at["rows"]) as i, f.loop(integer(0), at["columns"]) as j:
            inside = moved(f, area, step.element.area, product(f, integer(step.element.parts), total(
                f, product(f, i, at["columns"]), j)))
            outside = self.byte(array, self.place(at, i, j))
            if isinstance(step, Take):
                value = elements.array(outside)
                if step.hermitian:
                    value = elements.halved(value, elements.array(self.byte(array, self.place(at, j, i))))
                elements.take(value, inside)
            else:
                above = f.let(f"icmp sgt {i}, {j.name}", "i1") if step.part == "upper" else None
                elements.give(elements.area(inside), outside, above)
        return None if elements.unbounded is None else f.get(elements.unbounded, "i1")

    def place(self, at: dict[str, Register], i: Register, j: Register) -> Register:
        f = self.function
        return total(f, product(f, i, at["row"]), product(f, j, at["column"]))

    def order(self, step: GiveOrder, place: int, matrix: Register) -> None:
        f, at = self.function, self.where(place)
        order = self.byte(self.arrays[self.kind.inputs + step.output], total(
            f, at["offset"], product(f, matrix, at["batch"])))
        with f.loop(integer(0), at["rows"]) as i:
            f.line(f"store {i}, {self.byte(order, product(f, i, at['row']))}")
        exchanges = self.byte(self.room, at["place"])
        with f.loop(integer(0), at["columns"]) as i:
            type = f"i{step.bits}"
            other = f.let(f"load {type}, {moved(f, exchanges, type, i)}", type)
            wide = other if type == "i64" else f.let(f"zext {other} to i64", "i64")
            ends = [self.byte(order, product(f, n, at["row"])) for n in (i, difference(f, wide, integer(1)))]
            found = [f.let(f"load i64, {end}", "i64") for end in ends]
            for value, end in zip(found, reversed(ends), strict=True):
                f.line(f"store {value}, {end}")

    # ---- calls
    def call_loop(self, step: CallLoop, place: int) -> Register | None:
        f = self.function
        arguments = f.variable("ptr", length=step.operands)
        function = f.let(f"inttoptr {self.number(place)} to ptr", "ptr")
        data = f.let(f"inttoptr {self.number(place + 1)} to ptr", "ptr")
        for n in range(step.operands):
            area = self.byte(self.room, self.number(place + 2 + n))
            f.line(f"store {area}, {moved(f, arguments, 'ptr', integer(n))}")
        sizes = place + 2 + step.operands
        given = (arguments, self.number_at(sizes), self.number_at(sizes + step.sizes), data)
        if step.fails:
            f.call("feclearexcept", "i32", integer(INVALID, 32))
        f.line(f"call void {function.name}({', '.join(map(str, given))})")
        if not step.fails:
            return None
        status = f.call("fetestexcept", "i32", integer(INVALID, 32))
        return f.let(f"icmp ne {status}, 0", "i1")

    def call_routine(self, step: CallRoutine, place: int) -> Register | None:
        f = self.function
        function, status = f.let(f"inttoptr {self.number(place)} to ptr", "ptr"), f.variable("i64")
        f.set(status, integer(0))
        given = [self.byte(self.room, self.number(place + n)) if is_area else self.number_at(place + n)
                 for n, is_area in enumerate(step.arguments, 1)]
        f.line(f"call void {function.name}({_listed([*given, status])})")
        return f.let(f"icmp ne {f.get(status, 'i64')}, 0", "i1") if step.fails else None


def _listed(operands: Sequence[Register]) -> str:
    return ", ".join(map(str, operands))
