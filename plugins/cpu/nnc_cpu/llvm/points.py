"""Scalar instructions at the points at hand: values by number, loads and stores."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nnc_core.base.dtype import DType, int64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.loopnest import Access, Instruction, LoopNest
from nnc_cpu.llvm.every_other import load_every_other, store_every_other
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer, suffix
from nnc_cpu.llvm.logic import constant, held, stored
from nnc_cpu.llvm.notes import NoteWriter
from nnc_cpu.llvm.places import NOTHING, Place, PlaceWriter, plus
from nnc_cpu.llvm.scalars import ScalarWriter


class PointWriter:
    """Writes instructions of a nest, for one point or for those of all lanes, into a function."""

    def __init__(self, nest: LoopNest, width: int, function: FunctionWriter, halves: bool) -> None:
        self.nest, self.width, self.function = nest, width, function
        self.scalars = ScalarWriter(function, halves)
        self.places = PlaceWriter(self.scalars, width)
        self.dtypes = nest.dtypes
        self.steady: dict[int, Register] = {}
        """Values that are the same wherever the points at hand are."""
        self.values: dict[int, Register] = {}
        """Those of the vector of points that is at hand."""
        self._vectors: list[tuple[Register | None, dict[int, Register]]] = []
        self.mask: Register | None = None
        """The lanes that have a point; None for all."""
        self.left = 0
        """Their number where it is known, and not that of all."""
        self.pointers: list[Register] = []
        """Where the arguments begin."""
        self.tiles: dict[Access, Register] = {}
        """What some loads read at the points of a tile, in memory of the stack, by lanes."""
        self.row = NOTHING
        """The row of the tiles that is at hand."""
        self._zeros: dict[str, Register] = {}
        self.lengths: dict[int, Register] = {}
        """The lengths of the outer axes."""

    def begin(self, axis: int | None, positions: Sequence[Register]) -> None:
        """Begin at other points: for each of some positions on an axis the vector of points there, which have values of
        their own; without positions the points at hand."""
        self._axis = axis
        self._vectors = [(x, dict(self.steady)) for x in positions] or [(None, {})]

    def vectors(self) -> Iterator[int]:
        """Have each of the vectors at hand in turn."""
        for n, (x, values) in enumerate(self._vectors):
            self.values = values
            if self._axis is not None and x is not None:
                self.places.axes[self._axis] = x
            yield n

    def along(self, axis: int, first: Register, stop: Register, length: int | None,
              abreast: int = 1) -> Iterator[list[Register]]:
        """Go along an axis with all lanes, several vectors abreast if there are as many; the block is written again
        where less than that is left, and where the last lanes may have no point.  Gives where the vectors are."""
        f, places = self.function, self.places
        width = integer(self.width)
        places.vector = axis
        whole = length is not None and length % self.width == 0
        end = stop if whole else f.let(f"sub {stop}, {integer(self.width - 1).name}", "i64")
        position = f.variable("i64")
        f.set(position, first)
        if abreast > 1 and (length is None or length >= abreast * self.width):
            far = f.let(f"sub {stop}, {abreast * self.width - 1}", "i64")
            with f.loop(first, far, abreast * self.width) as x:
                places.axes[axis] = x
                yield [plus(f, x, integer(n * self.width)) for n in range(abreast)]
                f.set(position, plus(f, x, integer(abreast * self.width)))
            first = f.get(position, "i64")
        if length is None or length >= self.width:
            with f.loop(first, end, self.width) as x:
                places.axes[axis] = x
                yield [x]
                f.set(position, plus(f, x, width))
        if not whole:
            x = f.get(position, "i64")
            left = f.let(f"sub {stop}, {x.name}", "i64")
            with f.where(f.let(f"icmp sgt {left}, 0", "i1")):
                places.axes[axis] = x
                count = f.spread(left, self.width)
                lane = Register("<" + ", ".join([f"i64 {k}" for k in range(self.width)]) + ">", "i64", self.width)
                self.mask = f.let(f"icmp slt {lane}, {count.name}", "i1", self.width)
                self.left = 0 if length is None else length % self.width
                yield [x]
                self.mask, self.left = None, 0
        places.vector = None

    def instruction(self, number: int, instruction: Instruction, lengths: Sequence[int]) -> None:
        value = self.value(instruction, lengths)
        if value is not None:
            self.values[number] = value

    def value(self, instruction: Instruction, lengths: Sequence[int]) -> Register | None:
        operation, dtype = instruction.operation, instruction.dtype
        if operation == "constant":
            return constant(instruction.literal, dtype)
        if operation == "axis":
            return self.position(instruction.axis)
        if instruction.access is None:
            operands = [self.values[operand] for operand in instruction.operands]
            return self.scalars.instruction(operation, dtype, operands, self.dtypes[instruction.operands[0]])
        if operation == "note":
            NoteWriter(self, lengths).write(instruction)
            return None
        if operation == "load" and instruction.access in self.tiles:
            return self.load_from_tile(instruction.access)
        place = self.places.place(instruction.access, lengths, self.index)
        if operation == "load":
            return self.load(instruction, instruction.access, place)
        if operation == "store":
            self.store(instruction.access, place, self.values[instruction.operands[0]])
            return None
        if operation == "valid":
            return Register("true", "i1") if place.valid is None else place.valid
        raise NotSupportedError(f"no access by the scalar instruction {operation}")

    def index(self, number: int) -> Register:
        """A value as an index."""
        return self.scalars.cast(self.values[number], self.dtypes[number], int64)

    def position(self, axis: int | None) -> Register:
        assert axis is not None, "an axis instruction names its axis"
        first = self.places.axes[axis]
        return self.places.along(first, 1) if axis == self.places.vector else first

    # ---- memory
    def load(self, instruction: Instruction, access: Access, place: Place) -> Register:
        f, dtype = self.function, self.nest.arguments[access.argument].dtype
        type = stored(dtype)
        fill = constant(instruction.literal, dtype)
        if place.uniform and (place.valid is None or place.valid.lanes == 1):
            return self.load_one(access, place, dtype, fill)
        lanes = self.width
        pointer = self.pointer(access, place.lowest(f, lanes)) if place.contiguous else None
        if pointer is not None and place.valid is not None and place.valid.lanes == 1 and _is_zero(instruction):
            pointer = f.let(f"select {place.valid}, {pointer}, {self.zeros(type)}", "ptr")
            place = place._replace(valid=None)
        mask = self.masked(place.valid)
        vector = Register("", type, lanes)
        if pointer is not None:
            mask = None if mask is None else self.in_memory_order(mask, place)
            if mask is None:
                raw = f.let(f"load {vector.full}, {pointer}, align {dtype.itemsize}", type, lanes)
            else:
                raw = f.call(f"llvm.masked.load.v{lanes}{suffix(type)}.p0", type, pointer,
                             integer(dtype.itemsize, 32), mask, vector._replace(name="zeroinitializer"), lanes=lanes)
            raw = self.in_memory_order(raw, place)
        elif place.every_other:
            raw = load_every_other(f, self.pointer(access, place), type, dtype.itemsize, lanes, mask)
        else:
            mask = f.spread(Register("true", "i1"), lanes) if mask is None else mask
            raw = f.call(f"llvm.masked.gather.v{lanes}{suffix(type)}.v{lanes}p0", type,
                         self.pointers_of(access, place), integer(dtype.itemsize, 32), mask,
                         vector._replace(name="zeroinitializer"), lanes=lanes)
        value = self.scalars.loaded(raw, dtype)
        return value if place.valid is None else self.scalars.select(place.valid, value, fill)

    def zeros(self, type: str) -> Register:
        """The address of a vector of zeros."""
        if type not in self._zeros:
            self._zeros[type] = self.function.variable(type, self.width)
            nothing = Register("zeroinitializer", type, self.width)
            self.function.variables.append(f"  store {nothing}, {self._zeros[type]}")
        return self._zeros[type]

    def load_from_tile(self, access: Access) -> Register:
        dtype = self.nest.arguments[access.argument].dtype
        return self.scalars.loaded(self.function.get(self.tile_row(access, self.row), stored(dtype), self.width), dtype)

    def tile_row(self, access: Access, row: Register) -> Register:
        """The address of a row of a tile."""
        full = Register("", stored(self.nest.arguments[access.argument].dtype), self.width).full
        return self.function.let(f"getelementptr {full}, {self.tiles[access]}, {row}", "ptr")

    def load_one(self, access: Access, place: Place, dtype: DType, fill: Register) -> Register:
        f, type = self.function, stored(dtype)
        if place.valid is None:
            return self.scalars.loaded(f.let(f"load {type}, {self.pointer(access, place)}", type), dtype)
        result = f.variable(held(dtype))
        f.set(result, fill)
        with f.where(place.valid):
            raw = f.let(f"load {type}, {self.pointer(access, place)}", type)
            f.set(result, self.scalars.loaded(raw, dtype))
        return f.get(result, held(dtype))

    def store(self, access: Access, place: Place, value: Register) -> None:
        f, dtype = self.function, self.nest.arguments[access.argument].dtype
        if place.uniform and value.lanes == 1 and (place.valid is None or place.valid.lanes == 1):
            self.store_one(access, place, self.scalars.storable(value, dtype))
            return
        lanes, type = self.width, stored(dtype)
        mask = self.masked(place.valid)
        raw = f.spread(self.scalars.storable(value, dtype), lanes)
        if place.contiguous:
            pointer = self.pointer(access, place.lowest(f, lanes))
            if self.left and place.valid is None and place.step == 1:
                self.store_left(pointer, raw, dtype)
                return
            mask = None if mask is None else self.in_memory_order(mask, place)
            raw = self.in_memory_order(raw, place)
            if mask is None:
                f.line(f"store {raw}, {pointer}, align {dtype.itemsize}")
            else:
                f.call_void(f"llvm.masked.store.v{lanes}{suffix(type)}.p0", raw, pointer,
                            integer(dtype.itemsize, 32), mask)
            return
        if place.every_other:
            store_every_other(f, self.pointer(access, place), raw, dtype.itemsize, mask)
            return
        mask = f.spread(Register("true", "i1"), lanes) if mask is None else mask
        f.call_void(f"llvm.masked.scatter.v{lanes}{suffix(type)}.v{lanes}p0", raw, self.pointers_of(access, place),
                    integer(dtype.itemsize, 32), mask)

    def store_left(self, pointer: Register, raw: Register, dtype: DType) -> None:
        """Store the lanes that are left, by two vectors that may overlap.  Processors do not see what a mask leaves
        out: what is read next behind these lanes, as in the next row of an array that is overwritten, would wait until
        they are in the cache."""
        f, size = self.function, 1 << self.left.bit_length() - 1
        for first in sorted({0, self.left - size}):
            part = f.lane(raw, first) if size == 1 else f.shuffled(raw, raw, range(first, first + size))
            place = f.let(f"getelementptr {raw.type}, {pointer}, {integer(first)}", "ptr")
            f.line(f"store {part}, {place}, align {dtype.itemsize}")

    def store_one(self, access: Access, place: Place, raw: Register) -> None:
        if place.valid is None:
            self.function.line(f"store {raw}, {self.pointer(access, place)}")
            return
        with self.function.where(place.valid):
            self.function.line(f"store {raw}, {self.pointer(access, place)}")

    def masked(self, valid: Register | None) -> Register | None:
        """The lanes that may touch memory; None for all."""
        if valid is None or self.mask is None:
            only = valid if self.mask is None else self.mask
            return None if only is None else self.function.spread(only, self.width)
        return self.scalars.both(valid, self.mask)

    def in_memory_order(self, x: Register, place: Place) -> Register:
        """Lanes that lie backwards the other way round."""
        return x if place.step == 1 else self.function.backwards(x)

    def pointer(self, access: Access, place: Place) -> Register:
        type = stored(self.nest.arguments[access.argument].dtype)
        return self.function.let(f"getelementptr {type}, {self.pointers[access.argument]}, {place.first}", "ptr")

    def pointers_of(self, access: Access, place: Place) -> Register:
        index = self.function.spread(self.places.along(place.first, place.step), self.width)
        if place.further is not None:
            index = plus(self.function, index, place.further)
        type = stored(self.nest.arguments[access.argument].dtype)
        return self.function.let(f"getelementptr {type}, {self.pointers[access.argument]}, {index}", "ptr", self.width)


def _is_zero(load: Instruction) -> bool:
    """True if a load gives zero, with the sign of plus, where it is invalid."""
    return not load.literal and repr(load.literal) != "-0.0"
