"""Checks that a loop nest keeps the rules of its form, before anything runs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nnc_core.base.dtype import DType, boolean, float32, float64, int64, is_integer
from nnc_core.base.errors import AttributeValueError, NotSupportedError
from nnc_core.base.loopnest import FACTORED, OPERATIONS, REDUCTIONS, Access, Instruction, LoopNest, Reduction, Stage

_COMPARISONS = frozenset(("equal", "not_equal", "less", "less_equal", "greater", "greater_equal"))
_RESULT_DTYPES = {"argmax": int64, "argmin": int64, "all": boolean, "any": boolean}
Known = Mapping[int, DType]


def verify(nest: LoopNest, dtypes: Collection[str]) -> None:
    """AttributeValueError for a nest that breaks a rule, NotSupportedError for a dtype outside `dtypes`."""
    try:
        for argument in nest.arguments:
            _admit(argument.dtype, dtypes)
        _Verifier(nest, dtypes).stages()
    except (AttributeValueError, NotSupportedError) as error:
        error.locate(operator=f"loop nest {nest.name}")
        raise


def _admit(dtype: DType, dtypes: Collection[str]) -> None:
    if dtype.name not in dtypes:
        raise NotSupportedError(f"device has no {dtype}", hint=f"cast to one of {', '.join(sorted(dtypes))}")


def _require(holds: bool, message: str) -> None:
    if not holds:
        raise AttributeValueError(message)


class _Verifier:
    """Walks the stages with the dtypes of the values that are visible."""

    def __init__(self, nest: LoopNest, dtypes: Collection[str]) -> None:
        self.nest, self.dtypes = nest, dtypes
        self.visible: dict[int, DType] = {}

    def stages(self) -> None:
        number = 0
        for stage in self.nest.stages:
            number = self.stage(stage, number)

    def stage(self, stage: Stage, first: int) -> int:
        """Checks a stage whose values are numbered from `first`; returns the next free number."""
        known = dict(self.visible)
        for number, instruction in enumerate(stage.body, first):
            self.instruction(instruction, known, len(self.nest.axes) + len(stage.axes))
            known[number] = instruction.dtype
        after = first + len(stage.body)
        folded: dict[int, DType] = {}
        for number, reduction in enumerate(stage.reductions, after):
            self.reduction(reduction, known)
            folded[number] = reduction.dtype
        known |= folded
        for number, instruction in enumerate(stage.running, after + len(stage.reductions)):
            self.instruction(instruction, known, len(self.nest.axes) + len(stage.axes))
            known[number] = instruction.dtype
        self.visible.update(folded if stage.axes else known)
        return first + stage.values

    def instruction(self, instruction: Instruction, known: Known, axes: int) -> None:
        operation, dtype = instruction.operation, instruction.dtype
        _admit(dtype, self.dtypes)
        unseen = [o for o in instruction.operands if o not in known]
        _require(not unseen, f"{operation} reads values {unseen}, which it cannot see")
        if instruction.access is not None:
            self.access(instruction, instruction.access, known, axes)
        elif operation == "axis":
            in_range = instruction.axis is not None and 0 <= instruction.axis < axes
            _require(in_range and dtype == int64, f"axis {instruction.axis} as {dtype} of {axes} axes")
        elif operation != "constant":
            _computation(operation, dtype, [known[o] for o in instruction.operands])

    def access(self, instruction: Instruction, access: Access, known: Known, axes: int) -> None:
        operation = instruction.operation
        _require(operation in ("load", "store", "valid"), f"{operation} has an access")
        there = 0 <= access.argument < len(self.nest.arguments)
        _require(there, f"{operation} of argument {access.argument}, which there is not")
        argument = self.nest.arguments[access.argument]
        wanted = boolean if operation == "valid" else argument.dtype
        _require(instruction.dtype == wanted, f"{operation} as {instruction.dtype} of {argument}")
        if operation == "store":
            stored = [known[o] for o in instruction.operands]
            _require(argument.written, f"store to argument {access.argument}, which is only read")
            _require(stored == [argument.dtype], f"store of {stored} to {argument.dtype}")
        for subscript in access.subscripts:
            seen = [axis for axis, _ in subscript.coefficients]
            _require(all(0 <= axis < axes for axis in seen), f"{operation} along axes {seen} of {axes}")
            _require(subscript.divisor > 0, f"{operation} divides an index by {subscript.divisor}")
            gathered = subscript.gather is None or is_integer(known.get(subscript.gather, boolean))
            _require(gathered, f"{operation} gathers by {subscript.gather}, which is no visible integer")

    def reduction(self, reduction: Reduction, known: Known) -> None:
        kind, dtype = reduction.kind, reduction.dtype
        _require(kind in REDUCTIONS, f"no reduction {kind!r}")
        for operand in reduction.operands:
            _require(operand in known, f"{kind} folds value {operand}, which it cannot see")
        wanted = _RESULT_DTYPES.get(kind, known[reduction.value])
        _require(dtype == wanted, f"{kind} of {known[reduction.value]} gives {wanted}, not {dtype}")
        _require(kind != "logsumexp" or dtype in (float32, float64), f"logsumexp of {dtype}")
        _require((kind in FACTORED) == (reduction.factor is not None), f"{kind} with factor {reduction.factor}")
        alike = all(known[operand] == known[reduction.value] for operand in reduction.operands)
        _require(alike, f"{kind} of {' and '.join(str(known[o]) for o in reduction.operands)}")


def _computation(operation: str, dtype: DType, operands: list[DType]) -> None:
    _require(operation in OPERATIONS, f"no operation {operation!r}")
    _require(len(operands) == OPERATIONS[operation], f"{operation} of {len(operands)} operands")
    if operation == "cast":
        return
    if operation == "bitcast":
        return _require(operands[0].itemsize == dtype.itemsize, f"bitcast of {operands[0]} to {dtype}")
    if operation == "select":
        _require(operands[0] == boolean, f"select by {operands[0]}")
        operands = operands[1:]
    _require(len(set(operands)) == 1, f"{operation} of {', '.join(map(str, operands))}")
    wanted = boolean if operation in _COMPARISONS else operands[0]
    _require(dtype == wanted, f"{operation} of {operands[0]} gives {wanted}, not {dtype}")
