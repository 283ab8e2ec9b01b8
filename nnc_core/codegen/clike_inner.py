"""Loops over inner points, for devices whose compilers make vectors of them: loops without an order, folds in parts.

Sums, products, maxima and minima of floats are always folded as PARTS partial results, whatever else a kernel does.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import prod

from nnc_core.base.dtype import boolean, float32, float64, is_float
from nnc_core.base.loopnest import PARTS, Access, Instruction, LoopNest, Reduction, Stage
from nnc_core.codegen.clike import CLikeKernel
from nnc_core.codegen.expansions import LIBRARY_FUNCTIONS
from nnc_core.codegen.numpy_reductions import identity
from nnc_core.codegen.ranges import always_valid, axis_lengths
from nnc_core.codegen.repeated import NOTHING_REPEATED, repeated_values

TERMS = 256
"""Terms of a sum that are computed before they are added.  Of 32 bits it is a vector of them, which stays in registers:
so a layer norm takes a quarter less.  Where terms are converted, or turned, that takes many times as long."""
SHORT = 16
"""Points of an axis that are too few for vectors."""
_SPLIT = {"sum": "add", "product": "multiply", "maximum": "maximum", "minimum": "minimum"}
_VECTOR_FOLDS = {
    "sum": "{a} + {b}", "product": "{a} * {b}", "maximum": "select({a}, {b}, {b} > {a})",
    "minimum": "select({a}, {b}, {b} < {a})"}  # fmt: skip
"""Of vectors; NaN is looked for besides, since vectors wait for their own last values."""
_HALVES = {"maximum": "select({b}, {a}, ({a} >= {b}) | ({a} != {a}))",
           "minimum": "select({b}, {a}, ({a} <= {b}) | ({a} != {a}))"}
_EXTREMES = ("maximum", "minimum")
_CALLS = LIBRARY_FUNCTIONS | {"fmod", "remainder", "floor_divide"}
"""Instructions that are calls of the compiler's library, for floats."""


def is_split(reduction: Reduction) -> bool:
    """Tell whether a reduction is folded in parts, where no point of it is read on the way."""
    return reduction.kind in _SPLIT and is_float(reduction.dtype)


def calls_library(nest: LoopNest) -> bool:
    """Tell whether a nest's kernel calls functions of the compiler's library.

    In loops they are no vectors, and Intel's compiler (2026.2) dies of loops of halves with such calls where a program
    also has one for a single point.
    """
    return any(i.operation in _CALLS and is_float(i.dtype) for stage in nest.stages for i in stage.body)


class InnerPointsWriter(CLikeKernel):
    """Writes what a kernel does at one point: loops over the inner points of each stage."""

    repeated = NOTHING_REPEATED
    """Values of inner points that a later stage asks for again, which are kept in arrays."""

    @property
    def apart_loop(self) -> str:
        """The words before loops that have no order."""
        return "" if calls_library(self.nest) else self.dialect.apart_loop

    def keep_repeated(self) -> None:
        """Declare arrays for the values of inner points that are kept."""
        self.repeated = repeated_values(self.nest, 1)
        first = 0
        for stage in self.nest.stages:
            for number in range(first, first + len(stage.body)):
                if number in self.repeated.sources.values():
                    self.line(f"{self.scalars.held(self.dtypes[number])} v{number}_kept[{prod(stage.axes)}];")
            first += stage.values

    def stage(self, stage: Stage) -> None:
        split = {number: reduction for number, reduction in enumerate(stage.reductions, self.written + len(stage.body))
                 if is_split(reduction)}
        if stage.running or not stage.axes:
            super().stage(stage)
        elif not stage.reductions and self.is_apart(stage):
            self.apart(stage)
        elif not split:
            super().stage(stage)
        elif len(split) == len(stage.reductions) and self.is_long(stage) and self.is_apart(stage):
            self.by_vectors(stage, split)
        else:
            self.one_by_one(stage, split)

    def is_apart(self, stage: Stage) -> bool:
        """True where inner points neither read what others write nor write the same element."""
        stores = [i.access for i in stage.body if i.operation == "store" and i.access is not None]
        written = {access.argument for access in stores}
        loads = {i.access.argument for i in stage.body if i.operation == "load" and i.access is not None}
        last = len(self.nest.axes) + len(stage.axes) - 1
        return not written & loads and all(_is_along(access, last) for access in stores) and stage.axes[-1] >= SHORT

    def is_long(self, stage: Stage) -> bool:
        """True where vectors of terms can be added: rows of them begin with the first part."""
        rows = prod(stage.axes[:-1])
        simple = all(reduction.dtype in (float32, float64) for reduction in stage.reductions)
        return simple and stage.axes[-1] >= 2 * PARTS and (rows == 1 or stage.axes[-1] % PARTS == 0)

    def inner_loops(self, stage: Stage, axes: Sequence[int], before: str = "") -> None:
        """Open a loop over each of the axes, with these words before it."""
        for axis in axes:
            length = self.number(stage.axes[axis - len(self.nest.axes)])
            self.open(f"{before}for ({self.index} x{axis} = 0; x{axis} < {length}; ++x{axis})")

    def axes_of(self, stage: Stage) -> range:
        """The numbers of a stage's own axes, behind the outer ones."""
        return range(len(self.nest.axes), len(self.nest.axes) + len(stage.axes))

    def body(self, stage: Stage) -> None:
        place = self.place_in(stage)
        for instruction in stage.body:
            self.kept_or_computed(instruction, stage, place)

    def kept_or_computed(self, instruction: Instruction, stage: Stage, place: str) -> None:
        """Write an instruction, unless its value has been kept or nothing asks for it."""
        number, repeated = self.written, self.repeated
        if number in repeated.sources:
            self.declare(number, instruction.dtype, f"v{repeated.sources[number]}_kept[{place}]")
            self.written += 1
        elif number in repeated.needless:
            self.written += 1
        else:
            self.instruction(instruction, axis_lengths(self.nest, stage))
        if number in repeated.sources.values():
            self.line(f"v{number}_kept[{place}] = v{number};")

    def place_in(self, stage: Stage) -> str:
        """The place of the inner point at hand."""
        place = "0"
        for axis, length in zip(self.axes_of(stage), stage.axes, strict=True):
            place = f"({place}) * {self.number(length)} + x{axis}" if place != "0" else f"x{axis}"
        return place

    def apart(self, stage: Stage) -> None:
        """A loop without an order."""
        *outer, last = self.axes_of(stage)
        self.inner_loops(stage, outer)
        self.inner_loops(stage, [last], self.apart_loop)
        self.body(stage)
        for _ in stage.axes:
            self.close()

    def by_vectors(self, stage: Stage, split: dict[int, Reduction]) -> None:
        """Terms are computed in a loop without an order, and then added, a vector of parts at a time."""
        computed = {number: reduction for number, reduction in split.items() if not self.load_of(reduction, stage)}
        at_once = self.terms_at_once(stage)
        self.declare_parts(split, computed, at_once)
        self.inner_loops(stage, self.axes_of(stage)[:-1])
        length = self.number(stage.axes[-1])
        self.open(f"for ({self.index} first = 0; first < {length}; first += {at_once})")
        self.line(f"const {self.index} some = min(({self.index}){at_once}, {length} - first);")
        self.terms(stage, split, computed)
        self.add_vectors(split)
        for number, reduction in split.items():
            self.rest_of(number, reduction)
        for _ in stage.axes:
            self.close()
        for number, reduction in split.items():
            self.fold_parts(number, reduction)
        self.written += len(split)

    def terms_at_once(self, stage: Stage) -> int:
        """The number of terms that are computed before they are added."""
        dtypes = {i.dtype for i in stage.body} | {reduction.dtype for reduction in stage.reductions}
        accesses = [i.access for i in stage.body if i.access is not None]
        dtypes |= {self.nest.arguments[access.argument].dtype for access in accesses}
        last = self.axes_of(stage)[-1]
        plain = all(step_along(access, last) in (0, 1) and not any(s.gather is not None for s in access.subscripts)
                    for access in accesses)
        return PARTS if plain and all(dtype.itemsize == 4 or dtype == boolean for dtype in dtypes) else TERMS

    def declare_parts(self, split: Mapping[int, Reduction], computed: Mapping[int, Reduction], at_once: int) -> None:
        """Declare a vector of parts for each reduction, and room for terms that are computed."""
        for number, reduction in split.items():
            held = self.scalars.held(reduction.dtype)
            self.line(f"{held}{PARTS} v{number}_parts = ({held}{PARTS})({self.identity(reduction)});")
            if reduction.kind in _EXTREMES:
                self.line(f"{self.signed(reduction)}{PARTS} v{number}_nan = 0;")
        for number, reduction in computed.items():
            self.line(f"{self.scalars.held(reduction.dtype)} v{number}_terms[{at_once}];")

    def terms(self, stage: Stage, split: Mapping[int, Reduction], computed: Mapping[int, Reduction]) -> None:
        """Compute some terms, in any order, or find where they lie."""
        last = self.axes_of(stage)[-1]
        self.line(f"const {self.index} x{last} = first;")
        for number, reduction in split.items():
            self.read_in_place(number, reduction, stage)
        self.open(f"{self.apart_loop}for ({self.index} i = 0; i < some; ++i)")
        self.line(f"const {self.index} x{last} = first + i;")
        self.body(stage)
        for number, reduction in computed.items():
            self.line(f"v{number}_terms[i] = {self.term(reduction)};")
        self.close()

    def add_vectors(self, split: Mapping[int, Reduction]) -> None:
        """Fold whole vectors of terms into the parts."""
        self.line(f"{self.index} done = 0;")
        self.open(f"for (; done + {PARTS} <= some; done += {PARTS})")
        for number, reduction in split.items():
            parts, terms = f"v{number}_parts", f"vload{PARTS}(0, v{number}_terms + done)"
            self.line(f"const {self.scalars.held(reduction.dtype)}{PARTS} v{number}_some = {terms};")
            self.line(f"{parts} = {_VECTOR_FOLDS[reduction.kind].format(a=parts, b=f'v{number}_some')};")
            if reduction.kind in _EXTREMES:
                self.line(f"v{number}_nan |= v{number}_some != v{number}_some;")
        self.close()

    def fold_parts(self, number: int, reduction: Reduction) -> None:
        """Fold the parts of a reduction into its result; a NaN among terms is one of all parts."""
        if reduction.kind in _EXTREMES:
            held = self.scalars.held(reduction.dtype)
            nan = f"({held}{PARTS})({self.scalars.literal(float('nan'), reduction.dtype)})"
            self.line(f"v{number}_parts = select(v{number}_parts, {nan}, v{number}_nan);")
        self.tree_of_vectors(number, reduction)

    def load_of(self, reduction: Reduction, stage: Stage) -> Access | None:
        """The access of what is folded, if that is read as it lies, one element after another; else None."""
        number = reduction.value - self.first_of(stage)
        if not 0 <= number < len(stage.body) or reduction.value in self.repeated.numbers:
            return None
        access, lengths = stage.body[number].access, axis_lengths(self.nest, stage)
        if stage.body[number].operation != "load" or access is None or step_along(access, len(lengths) - 1) != 1:
            return None
        same = self.nest.arguments[access.argument].dtype == reduction.dtype
        plain = all(s.divisor == 1 and s.gather is None and always_valid(s, lengths) for s in access.subscripts)
        return access if same and plain else None

    def first_of(self, stage: Stage) -> int:
        """The number of a stage's first value."""
        place = next(n for n, other in enumerate(self.nest.stages) if other is stage)
        return sum([other.values for other in self.nest.stages[:place]])

    def read_in_place(self, number: int, reduction: Reduction, stage: Stage) -> None:
        """Declare where the terms of a reduction begin, if they need not be computed."""
        access = self.load_of(reduction, stage)
        if access is not None:
            element = self.locate(access, number, axis_lengths(self.nest, stage)).element
            pointer = (self.dialect.parameter or "{const}{type} *{name}").format(
                const="const ", type=self.stored(reduction.dtype), name=f"v{number}_terms")
            self.line(f"{pointer} = a{access.argument} + ({element});")

    def rest_of(self, number: int, reduction: Reduction) -> None:
        """Terms that fill no vector."""
        held = self.scalars.held(reduction.dtype)
        self.open("if (done < some)")
        self.line(f"{held} part[{PARTS}]; vstore{PARTS}(v{number}_parts, 0, part);")
        term = f"v{number}_terms[i]"
        self.line(f"for ({self.index} i = done; i < some; ++i) "
                  f"part[i - done] = {self.folded_pair(reduction, 'part[i - done]', term)};")
        self.line(f"v{number}_parts = vload{PARTS}(0, part);")
        self.close()

    def one_by_one(self, stage: Stage, split: dict[int, Reduction]) -> None:
        """Each term is added to its part when it has been computed."""
        after = self.written + len(stage.body)
        for number, reduction in enumerate(stage.reductions, after):
            if number in split:
                held = self.scalars.held(reduction.dtype)
                self.line(f"{held} v{number}_part[{PARTS}];")
                self.line(f"for (int n = 0; n < {PARTS}; ++n) v{number}_part[n] = {self.identity(reduction)};")
            else:
                self.start_reduction(number, reduction)
        which = f"part_of{after}"
        self.line(f"int {which} = 0;")
        self.inner_loops(stage, self.axes_of(stage), self.dialect.ordered_loop)
        self.body(stage)
        for number, reduction in enumerate(stage.reductions, after):
            if number in split:
                part = f"v{number}_part[{which}]"
                self.line(f"{part} = {self.folded_pair(reduction, part, f'({self.term(reduction)})')};")
            else:
                self.fold(number, reduction)
        self.line(f"{which} = ({which} + 1) % {PARTS};")
        for _ in stage.axes:
            self.close()
        for number, reduction in split.items():
            self.tree(reduction, min(PARTS, prod(stage.axes)), [f"v{number}_part[{n}]" for n in range(PARTS)])
            self.line(f"const {self.scalars.held(reduction.dtype)} v{number} = v{number}_part[0];")
        self.written += len(stage.reductions)

    def tree(self, reduction: Reduction, count: int, parts: Sequence[str]) -> None:
        """Fold the parts, of which so many have points, into the first."""
        half = PARTS // 2
        while half:
            for n in range(min(half, count - half)):
                self.line(f"{parts[n]} = {self.folded_pair(reduction, parts[n], parts[n + half])};")
            half //= 2

    def tree_of_vectors(self, number: int, reduction: Reduction) -> None:
        """Declare what a vector of parts is folded to, by halves."""
        held, whole, count = self.scalars.held(reduction.dtype), f"v{number}_parts", PARTS // 2
        while count > 1:
            folded = _HALVES.get(reduction.kind, _VECTOR_FOLDS[reduction.kind])
            self.line(f"const {held}{count} v{number}_{count} = {folded.format(a=whole + '.lo', b=whole + '.hi')};")
            whole, count = f"v{number}_{count}", count // 2
        self.line(f"const {held} v{number} = {self.folded_pair(reduction, whole + '.x', whole + '.y')};")

    def identity(self, reduction: Reduction) -> str:
        return self.scalars.literal(identity(reduction.kind, reduction.dtype), reduction.dtype)

    def signed(self, reduction: Reduction) -> str:
        """The type of comparisons of a reduction's vectors."""
        return self.dialect.types["int64" if reduction.dtype == float64 else "int32"]

    def folded_pair(self, reduction: Reduction, a: str, b: str) -> str:
        return self.scalars.expression(_SPLIT[reduction.kind], reduction.dtype, (a, b), reduction.dtype)


def step_along(access: Access, axis: int) -> int:
    """Elements from one point of an axis to the next; 0 where that is not the same everywhere."""
    plain = [s for s in access.subscripts if s.divisor == 1 and s.gather is None]
    return sum([s.stride * c for s in plain for moved, c in s.coefficients if moved == axis])


def _is_along(access: Access, axis: int) -> bool:
    """Tell whether neighbours on an axis are other elements."""
    return any(axis == moved and subscript.divisor == 1 and subscript.gather is None and subscript.stride
               for subscript in access.subscripts for moved, _ in subscript.coefficients)
