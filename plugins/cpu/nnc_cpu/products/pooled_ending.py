"""The end of products that are pooled: what is made of each row of a window, folded as loop nests of pools fold it."""

from __future__ import annotations

from math import prod

from nnc_core.base.loopnest import Access, LoopNest, Stage
from nnc_core.codegen.expand import expand
from nnc_core.operator.products.ending import PRODUCT
from nnc_cpu.llvm.folds import fold_of
from nnc_cpu.llvm.ir import FunctionWriter, Register, integer
from nnc_cpu.llvm.scalars import EXPANDED, ScalarWriter
from nnc_cpu.partial_sums import in_parts
from nnc_cpu.products.ending import EndingWriter
from nnc_cpu.products.kind import Kind


class PooledRows:
    """The rows of a window, for one vector of columns, as folds see the points of a stage."""

    shared = False
    """Lanes are columns."""
    mask = None

    def __init__(self, stage: Stage, width: int, function: FunctionWriter, scalars: ScalarWriter) -> None:
        self.points, self.width = self, width
        self.function, self.scalars = function, scalars
        self.count = prod(stage.axes)
        self.dtypes = [x.dtype for x in stage.body] + [x.dtype for x in stage.reductions]
        self.values: dict[int, Register] = {}
        """Those of the row at hand."""
        self.row = 0

    def flat(self) -> Register:
        return integer(self.row)


class PooledEndingWriter(EndingWriter):
    """Writes the function that ends a block of rows, of which each window is one row of the results."""

    def __init__(self, kind: Kind, halves: bool, declared: dict[str, None]) -> None:
        super().__init__(kind, halves, declared)
        assert kind.ending.pool is not None
        self.nest = expand(LoopNest("pool", (), (), (kind.ending.pool,)), EXPANDED)
        [self.stage] = self.nest.stages
        self.row: int | None = None
        """The row of a window whose elements are made; None when it is folded."""
        self.folded: list[Register] = []

    def vector(self, column: Register, mask: Register | None) -> None:
        self.folded = self.folds(column, mask)
        super().vector(column, mask)

    def folds(self, column: Register, mask: Register | None) -> list[Register]:
        """Each fold of the rows of a window, for neighbouring columns."""
        rows, first = PooledRows(self.stage, self.lanes, self.function, self.scalars), len(self.stage.body)
        folds = [fold_of(rows, first + n, reduction, True, in_parts(reduction, self.stage, self.nest))
                 for n, reduction in enumerate(self.stage.reductions)]
        for fold in folds:
            fold.start()
        for row in range(rows.count):
            self.row = rows.row = row
            rows.values = dict(enumerate(self.run(self.stage.body, column, mask)))
            for fold in folds:
                fold.fold()
        self.row = None
        return [fold.finished() for fold in folds]

    def load(self, access: Access, column: Register, mask: Register | None) -> Register:
        if access.argument != PRODUCT:
            return super().load(access, column, mask)
        return self.folded[access.offset] if self.row is None else self.sum(self.row, column)
