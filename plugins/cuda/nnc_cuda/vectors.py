"""Kernels of elementwise nests whose threads load and store neighbouring elements as one word of up to 16 bytes.

A nest's sizes and addresses are arguments of its kernel.  So the kernel looks itself: where all words are aligned and
no word goes beyond a row, a thread computes `width` neighbouring points at once; otherwise threads go through the
points one by one, neighbours beside each other, as they do where there are as many threads as points.  Each point is
computed by the same formula either way.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from nnc_core.base.loopnest import Access, Instruction, LoopNest
from nnc_core.codegen import AnyNest, CLikeKernel, GeneralNest, writers_for_groups
from nnc_core.codegen.ranges import always_valid
from nnc_core.codegen.work import weight_of_point

WORD = 16
"""Bytes that a thread loads or stores at once, at most."""
MOST = 8
"""Points of a thread, at most: each has registers of its own."""
HEAVY = 64
"""Additions that a point takes as long as, from which on memory is no matter, and its code is not to be repeated."""
WORTH = 1 << 17
"""Points from which on fewer threads fill a GPU as well."""


def is_by_vectors(nest: AnyNest) -> bool:
    """Tell whether a nest is one of many elementwise points, whose results lie side by side."""
    if not isinstance(nest, GeneralNest) or not nest.lengths or nest.lengths[-1] != len(nest.nest.axes) - 1:
        return False
    loops = nest.nest
    if len(loops.stages) != 1 or loops.stages[0].axes or loops.stages[0].reductions or loops.notes:
        return False
    words, stores = word_accesses(loops), [x.access for x in loops.stages[0].body if x.operation == "store"]
    return bool(stores) and all([x in words for x in stores]) and width_of(loops) > 1 and weight_of_point(loops) < HEAVY


def width_of(nest: LoopNest) -> int:
    """Points of a thread: the widest elements fill a word."""
    widest = max([nest.arguments[access.argument].dtype.itemsize for access in word_accesses(nest)], default=WORD)
    return min(WORD // widest, MOST)


def threads_of(nest: LoopNest) -> int:
    """The threads that a nest is run by."""
    return nest.points if nest.points < WORTH else -(-nest.points // width_of(nest))


def word_accesses(nest: LoopNest) -> list[Access]:
    """Accesses of neighbouring elements by neighbouring points, each once, whose rows begin at even distances of
    `MOST` elements."""
    return [*dict.fromkeys([x.access for x in nest.stages[0].body if x.access is not None and is_by_words(x, nest)])]


def is_by_words(instruction: Instruction, nest: LoopNest) -> bool:
    """Tell whether an instruction is such an access."""
    access = instruction.access
    return instruction.operation in ("load", "store") and access is not None and _is_even(access, nest)


def _is_even(access: Access, nest: LoopNest) -> bool:
    steps = [0] * len(nest.axes)
    for subscript in access.subscripts:
        if subscript.divisor != 1 or subscript.gather is not None or not always_valid(subscript, nest.axes):
            return False
        for axis, coefficient in subscript.coefficients:
            steps[axis] += subscript.stride * coefficient
    return steps[-1] == 1 and not any([step % MOST for step in steps[:-1]])


class VectorsWriter(CLikeKernel):
    """Writes such a kernel: words are w<value> of a load, and of a store that of the value at its place."""

    def points(self) -> None:
        width, ulong = width_of(self.nest), self.dialect.types["uint64"]
        self.move_arguments()
        self.line(f"const {ulong} all = {self.count()}, thread = {self.dialect.point};")
        self.line(f"const bool by_words = {' && '.join(self.conditions())};")
        self.line(f"const {ulong} first = by_words ? thread * {width} : thread;")
        self.open(f"if (by_words && first + {width} <= all)")
        self.words()
        self.close()
        self.open("else")
        self.line(f"const {ulong} step = by_words ? 1 : {self.dialect.items};")
        self.open(f"for ({ulong} point = first; point < all; point += step)")
        self.point("point")
        self.close()
        self.close()

    def conditions(self) -> Iterator[str]:
        """Conditions for words: fewer threads than points, rows of whole words, and aligned addresses."""
        width, ulong = width_of(self.nest), self.dialect.types["uint64"]
        yield f"{self.dialect.items} < all"
        if len(self.nest.axes) > 1:
            yield f"{self.length(len(self.nest.axes) - 1)} % {width} == 0"
        for access in word_accesses(self.nest):
            nbytes = width * self.nest.arguments[access.argument].dtype.itemsize
            yield f"({ulong})({self.address(access)}) % {nbytes} == 0"

    def address(self, access: Access) -> str:
        """The address of the first point."""
        offset = access.offset + sum([x.stride * x.offset for x in access.subscripts])
        return f"a{access.argument} + {self.number(offset)}"

    def words(self) -> None:
        """Load all words, compute each point, store all words."""
        width, last = width_of(self.nest), len(self.nest.axes) - 1
        body, start = self.nest.stages[0].body, self.written
        taken = {number: one for number, one in enumerate(body) if is_by_words(one, self.nest)}
        self.place("first")
        for number, instruction in taken.items():
            self.word(instruction, number)
        self.line(f"const {self.index} begin = x{last};")
        self.open(f"{self.dialect.unrolled_loop}for (int n = 0; n < {width}; ++n)")
        self.line(f"const {self.index} x{last} = begin + n;")
        for number, instruction in enumerate(body):
            self.element(instruction, number) if number in taken else self.instruction(instruction, self.nest.axes)
        self.close()
        for number, instruction in taken.items():
            if instruction.operation == "store":
                self.line(f"*(struct words{number}*)({self.place_of(instruction)}) = w{number};")
        self.written = start

    def word(self, instruction: Instruction, number: int) -> None:
        """Declare a word, loaded if it is one that is read."""
        assert instruction.access is not None
        dtype, width = self.nest.arguments[instruction.access.argument].dtype, width_of(self.nest)
        self.line(f"struct __align__({width * dtype.itemsize}) words{number} {{ {self.stored(dtype)} n[{width}]; }} "
                  f"w{number};")
        if instruction.operation == "load":
            self.line(f"w{number} = *(const struct words{number}*)({self.place_of(instruction)});")

    def place_of(self, instruction: Instruction) -> str:
        """The address of the element of the point at hand."""
        assert instruction.access is not None
        place = self.locate(instruction.access, self.written, self.nest.axes)
        return f"a{instruction.access.argument} + ({place.element})"

    def element(self, instruction: Instruction, number: int) -> None:
        """The load or store of one element of a word."""
        assert instruction.access is not None
        argument, value = self.nest.arguments[instruction.access.argument], self.written
        self.written += 1
        if instruction.operation == "load":
            self.declare(value, instruction.dtype, self.scalars.load(f"w{number}.n[n]", argument.dtype))
        else:
            self.line(f"w{number}.n[n] = {self.scalars.store(f'v{instruction.operands[0]}', argument.dtype)};")


def writers_of(nest: AnyNest) -> Sequence[type[CLikeKernel]]:
    """The writers of a nest's kernels, which run one after another."""
    found = writers_for_groups(nest)
    return (VectorsWriter,) if found == (CLikeKernel,) and is_by_vectors(nest) else found
