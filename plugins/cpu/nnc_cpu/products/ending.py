"""The code of the end of a product: what is made of finished sums, and stored."""

from __future__ import annotations

from collections.abc import Sequence

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Access, Instruction, LoopNest, Stage
from nnc_core.codegen.expand import expand
from nnc_core.operator.products.ending import PRODUCT, Operand
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.logic import constant, held, stored
from nnc_cpu.llvm.scalars import EXPANDED, ScalarWriter
from nnc_cpu.products.kind import Kind
from nnc_cpu.products.writing import (
    Signature,
    difference,
    function_text,
    lanes_below,
    loaded,
    moved,
    parameters,
    prefetch,
    prefetch_to_write,
    product,
    store,
    total,
)

LINE = 64
"""Bytes that come at once."""


def expanded(body: tuple[Instruction, ...]) -> tuple[Instruction, ...]:
    """The instructions with functions written out."""
    [stage] = expand(LoopNest("ending", (), (), (Stage((), body),)), EXPANDED).stages
    return stage.body


def signature(kind: Kind) -> Signature:
    """`sums` of so many rows and columns; in parts of a product `targets`, the numbers of these rows; then each operand
    and output: its first element, and its rows' distance."""
    targets = [("targets", "ptr")] if kind.windows == "apart" else []
    return (("sums", "ptr"), ("rows", "i64"), ("columns", "i64"), *targets, *arrays(kind))


def arrays(kind: Kind) -> Signature:
    """The arguments for each operand and output: its first element, and the distance of its rows."""
    count = len(kind.ending.operands) + len(kind.ending.outputs)
    return [pair for n in range(count) for pair in ((f"x{n}", "ptr"), (f"row{n}", "i64"))]


class EndingWriter:
    """Writes the function that ends one tile."""

    def __init__(self, kind: Kind, halves: bool, declared: dict[str, None]) -> None:
        self.kind, self.ending, self.lanes = kind, kind.ending, kind.lanes
        self.body = expanded(kind.ending.body)
        self.halves = halves
        self.write_into(FunctionWriter(declared))
        self.arguments = (Operand(kind.wide, True), *self.ending.operands,
                          *[Operand(dtype, True) for dtype in self.ending.outputs])

    def write_into(self, function: FunctionWriter) -> None:
        """Let what is written be part of a function."""
        self.function = function
        self.scalars = ScalarWriter(function, self.halves)

    def text(self, name: str) -> str:
        f, given = self.function, signature(self.kind)
        sums, rows, columns, *others = parameters(given)
        targets = others.pop(0) if self.kind.windows == "apart" else None
        whole = f.let(f"and {columns}, {-self.lanes}", "i64")
        with f.loop(integer(0), rows) as row:
            self.starts = [moved(f, sums, held(self.kind.wide), product(
                f, row, integer(self.ending.height * self.kind.width)))]
            following = total(f, row, integer(self.kind.rows))
            if targets is not None:
                row, following = (f.let(f"load i64, {moved(f, targets, 'i64', n)}", "i64") for n in (row, following))
            for argument, x, step in zip(self.arguments[1:], others[::2], others[1::2], strict=True):
                self.starts.append(moved(f, x, stored(argument.dtype), product(f, row, step)))
            for n, (x, step) in enumerate(zip(others[::2], others[1::2], strict=True)):
                self.send_for(n, following, x, step, self.kind.vectors)
            with f.loop(integer(0), whole, self.lanes) as column:
                self.vector(column, None)
            with f.where(f.let(f"icmp slt {whole}, {columns.name}", "i1")):
                self.vector(whole, lanes_below(f, difference(f, columns, whole), self.lanes))
        return function_text(f, name, given)

    def send_for(self, n: int, row: Register, x: Register, step: Register, vectors: int) -> None:
        """Have a row of the next tile of an operand, or the lines of its result, come into the cache while that is
        computed: writing to a line waits for it, and the distance from row to row is none that processors foresee."""
        f, argument = self.function, self.arguments[n + 1]
        if argument.along:
            type = stored(argument.dtype)
            start = moved(f, x, type, product(f, row, step))
            send = prefetch if n < len(self.ending.operands) else prefetch_to_write
            whole = self.lanes * argument.dtype.itemsize
            for v in range(0, vectors, max(1, LINE // whole)):
                send(f, moved(f, start, type, integer(v), self.lanes))

    def vector(self, column: Register, mask: Register | None) -> None:
        """The ending of neighbouring columns."""
        self.run(self.body, column, mask)

    def run(self, body: Sequence[Instruction], column: Register, mask: Register | None) -> list[Register]:
        """The values of instructions at neighbouring columns."""
        values: list[Register] = []
        for instruction in body:
            operands = [values[n] for n in instruction.operands]
            dtypes = [body[n].dtype for n in instruction.operands]
            values.append(self.value(instruction, operands, dtypes, column, mask))
        return values

    def value(self, instruction: Instruction, operands: Sequence[Register], dtypes: Sequence[DType], column: Register,
              mask: Register | None) -> Register:
        operation, dtype, access = instruction.operation, instruction.dtype, instruction.access
        if operation == "constant":
            return constant(instruction.literal, dtype)
        if access is None:
            return self.scalars.instruction(operation, dtype, operands, dtypes[0])
        if operation == "load":
            return self.load(access, column, mask)
        self.store(access.argument, operands[0], column, mask)
        return operands[0]

    def load(self, access: Access, column: Register, mask: Register | None) -> Register:
        if access.argument == PRODUCT:
            return self.sum(0, column)
        f, (dtype, along) = self.function, self.arguments[access.argument]
        type, start = stored(dtype), self.starts[access.argument]
        if not along:
            return self.scalars.loaded(f.let(f"load {type}, {start}", type), dtype)
        place = moved(f, start, type, column)
        return self.scalars.loaded(loaded(f, place, type, self.lanes, dtype.itemsize, mask), dtype)

    def sum(self, row: int, column: Register) -> Register:
        """Neighbouring finished sums, in the row at hand or so many rows further on."""
        f, wide = self.function, self.kind.wide
        start = self.starts[PRODUCT]
        if row:
            start = moved(f, start, held(wide), integer(row * self.kind.width))
        place = moved(f, start, stored(wide), column)
        return self.scalars.loaded(loaded(f, place, stored(wide), self.lanes, wide.itemsize, None), wide)

    def store(self, argument: int, value: Register, column: Register, mask: Register | None) -> None:
        f, dtype = self.function, self.arguments[argument].dtype
        raw = f.spread(self.scalars.storable(value, dtype), self.lanes)
        store(f, raw, moved(f, self.starts[argument], stored(dtype), column), dtype.itemsize, mask)
