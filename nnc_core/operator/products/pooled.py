"""Products that are pooled where they are ended: windows of them, with no element in common, become one element each.

Rows of the product come window by window, in whatever order its code goes along them anyhow; so what is pooled is a
run of rows, whose elements are made as those of any ending, and folded as the nest of the pool folds them.
"""

from __future__ import annotations

from math import prod

from nnc_core.base.command import Command
from nnc_core.base.dtype import accumulator, int64
from nnc_core.base.errors import NotSupportedError
from nnc_core.base.layout import Layout
from nnc_core.base.loopnest import Access, Instruction, Reduction, Stage
from nnc_core.codegen.scalar import BodyBuilder, Scalar
from nnc_core.operator.products.ending import PRODUCT, Ending
from nnc_core.operator.products.joined import EndingBuilder, JoinedProduct, Pool, joined_by
from nnc_core.operator.products.problem import MatrixProduct, PoolAxis
from nnc_core.operator.program import Program, Step, StepResult
from nnc_core.shape.window import has_channels_last

POOLS = {"max_pool": "maximum", "max_pool_index": "argmax", "sum_pool": "sum"}
"""Operators that pool, and what they fold."""
MOST_ELEMENTS = 16
"""Of a window: each is written out."""


def pooled(problem: MatrixProduct, pool: Pool) -> MatrixProduct:
    """A convolution whose results are pooled: those of its windows that are read, pooling window by pooling window."""
    windows = problem.windows
    assert windows is not None, "a convolution has windows"
    axes = tuple([
        axis._replace(places=(axis.places - step * (elements - 1) - 1) // stride + 1, stride=axis.stride * stride)
        for axis, elements, stride, step in zip(windows.axes, *pool, strict=True)])
    by_axis = tuple([PoolAxis(elements, axis.stride * step)
                     for axis, elements, step in zip(windows.axes, pool.window, pool.dilation, strict=True)])
    images = problem.rows // prod([axis.places for axis in windows.axes])
    rows = images * prod([axis.places for axis in axes]) * prod(pool.window)
    return problem._replace(rows=rows, windows=windows._replace(axes=axes, pool=by_axis))


def pooled_product(command: Command, program: Program) -> JoinedProduct:
    """The product of a fused command, what is made of each element, and the pools behind."""
    written = PooledEndingBuilder(command, program)
    return joined_by(written)._replace(pool=written.pool())


class PooledEndingBuilder(EndingBuilder):
    """Writes the instructions for one element of the product, and those for what each window of them has become."""

    def __init__(self, command: Command, program: Program) -> None:
        super().__init__(command, program)
        self.behind = False
        """True while instructions are written for windows."""

    def ending(self) -> Ending:
        pools = [n for n, step in enumerate(self.program.steps) if step.op.name in POOLS]
        value = self.pooled_value(pools)
        before, after = self.steps_around(pools)
        self.write(before)
        folds = tuple([self.fold(POOLS[self.program.steps[n].op.name], self.values[value]) for n in pools])
        stage = Stage(tuple(self.pool().window), tuple(self.body.instructions), folds)
        self.begin_behind(pools, folds)
        self.write(after)
        return Ending(*self.stored(), pool=stage)

    def pool(self) -> Pool:
        """The windows of all pools of the program."""
        step = next(step for step in self.program.steps if step.op.name in POOLS)
        window, strides, _, dilation, _ = step.attributes
        return Pool(window, strides, dilation)

    def pooled_value(self, pools: list[int]) -> StepResult:
        """The value that all pools read, in the same way; NotSupportedError where rows of the product cannot be put in
        the order of their windows."""
        first = self.program.steps[pools[0]]
        window, strides, padding, dilation, order = first.attributes
        [value] = first.operands
        for step in [self.program.steps[n] for n in pools]:
            if step.operands != first.operands or step.attributes != first.attributes:
                raise NotSupportedError("pools of different values, or by different windows")
        if not isinstance(value, StepResult) or self.program.spec_of(value).static_shape != self.shape:
            raise NotSupportedError("what is pooled is not of the product's shape")
        if not has_channels_last(order) or any(map(any, padding)):
            raise NotSupportedError("pools go beyond the image, or its channels are not the last axis")
        if any(stride < (k - 1) * step + 1 for k, stride, step in zip(window, strides, dilation, strict=True)):
            raise NotSupportedError("pools have elements in common, which would be computed for each of them")
        if not 1 < prod(window) <= MOST_ELEMENTS:
            raise NotSupportedError(f"windows of a pool have {prod(window)} elements, of at most {MOST_ELEMENTS}")
        return value

    def steps_around(self, pools: list[int]) -> tuple[list[int], list[int]]:
        """The steps that pools need, and those that need pools."""
        found: tuple[list[int], list[int]] = ([], [])
        behind = set(pools)
        for number, step in enumerate(self.program.steps):
            reads = [x.number in behind for x in step.operands if isinstance(x, StepResult)]
            if number in behind:
                continue
            if any(reads):
                if not all(reads):
                    raise NotSupportedError(f"{step} needs what is pooled besides the pool")
                behind.add(number)
            if not self.is_given_before(step):
                found[number in behind].append(number)
        if not behind.issuperset(self.program.results):
            raise NotSupportedError("what is pooled is wanted by others, too")
        self.require(found[0], prod(self.shape))
        self.require(found[1], prod(self.program.steps[pools[0]].spec.static_shape))
        return found

    def fold(self, kind: str, value: Scalar) -> Reduction:
        if kind == "argmax":
            return Reduction(kind, value.number, int64)
        if kind == "sum":
            value = value.cast(accumulator(value.dtype))
        return Reduction(kind, value.number, value.dtype)

    def begin_behind(self, pools: list[int], folds: tuple[Reduction, ...]) -> None:
        """Go on with the instructions for windows, whose folds are known."""
        self.behind, self.shape = True, self.program.steps[pools[0]].spec.static_shape
        self.body, self.loaded, self.values = BodyBuilder(0), {}, {}
        for n, (number, fold) in enumerate(zip(pools, folds, strict=True)):
            load = Instruction("load", fold.dtype, access=Access(PRODUCT, n, ()))
            folded = Scalar(self.body, self.body.append(load), fold.dtype)
            self.values[StepResult(number)] = folded.cast(self.program.steps[number].spec.dtype)

    def seen(self, x: Layout, step: Step) -> Layout:
        layout = super().seen(x, step)
        moving = [stride for n, stride in zip(layout.shape[:-1], layout.strides, strict=False) if n > 1]
        if not self.behind and any(moving):
            raise NotSupportedError("rows of an operand are not in the order of pooling windows")
        return layout
