"""Checks that a loop nest keeps the rules of its form, before anything runs it."""

from __future__ import annotations

from collections.abc import Collection, Mapping

from nnc_core.base.dtype import DType, boolean, float32, float64, int64, is_integer, name_of
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
    if name_of(dtype) not in dtypes:
        raise NotSupportedError(f"device has no {dtype}", hint=f"cast to one of {', '.join(sorted(dtypes))}")


def _require(holds: bool, message: str, *parts: object) -> None:
    """AttributeValueError unless it holds; the message is put together of its parts only then."""
    if not holds:
        raise AttributeValueError(message.format(*parts))


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
        _require(not unseen, "{} reads values {}, which it cannot see", operation, unseen)
        if instruction.access is not None:
            self.access(instruction, instruction.access, known, axes)
        elif operation == "axis":
            in_range = instruction.axis is not None and 0 <= instruction.axis < axes
            _require(in_range and dtype == int64, "axis {} as {} of {} axes", instruction.axis, dtype, axes)
        elif operation != "constant":
            _computation(operation, dtype, [known[o] for o in instruction.operands])

    def access(self, instruction: Instruction, access: Access, known: Known, axes: int) -> None:
        operation = instruction.operation
        _require(operation in ("load", "store", "valid"), "{} has an access", operation)
        there = 0 <= access.argument < len(self.nest.arguments)
        _require(there, "{} of argument {}, which there is not", operation, access.argument)
        argument = self.nest.arguments[access.argument]
        wanted = boolean if operation == "valid" else argument.dtype
        _require(instruction.dtype == wanted, "{} as {} of {}", operation, instruction.dtype, argument)
        if operation == "store":
            stored = [known[o] for o in instruction.operands]
            _require(argument.written, "store to argument {}, which is only read", access.argument)
            _require(stored == [argument.dtype], "store of {} to {}", stored, argument.dtype)
        for subscript in access.subscripts:
            seen = [axis for axis, _ in subscript.coefficients]
            _require(all(0 <= axis < axes for axis in seen), "{} along axes {} of {}", operation, seen, axes)
            _require(subscript.divisor > 0, "{} divides an index by {}", operation, subscript.divisor)
            gathered = subscript.gather is None or is_integer(known.get(subscript.gather, boolean))
            _require(gathered, "{} gathers by {}, which is no visible integer", operation, subscript.gather)

    def reduction(self, reduction: Reduction, known: Known) -> None:
        kind, dtype = reduction.kind, reduction.dtype
        _require(kind in REDUCTIONS, "no reduction {!r}", kind)
        for operand in reduction.operands:
            _require(operand in known, "{} folds value {}, which it cannot see", kind, operand)
        wanted = _RESULT_DTYPES.get(kind, known[reduction.value])
        _require(dtype == wanted, "{} of {} gives {}, not {}", kind, known[reduction.value], wanted, dtype)
        _require(kind != "logsumexp" or dtype in (float32, float64), "logsumexp of {}", dtype)
        _require((kind in FACTORED) == (reduction.factor is not None), "{} with factor {}", kind, reduction.factor)
        folded = [known[operand] for operand in reduction.operands]
        if any(d != known[reduction.value] for d in folded):
            raise AttributeValueError(f"{kind} of {' and '.join(map(str, folded))}")


def _computation(operation: str, dtype: DType, operands: list[DType]) -> None:
    _require(operation in OPERATIONS, "no operation {!r}", operation)
    _require(len(operands) == OPERATIONS[operation], "{} of {} operands", operation, len(operands))
    if operation == "cast":
        return
    if operation == "bitcast":
        return _require(operands[0].itemsize == dtype.itemsize, "bitcast of {} to {}", operands[0], dtype)
    if operation == "select":
        _require(operands[0] == boolean, "select by {}", operands[0])
        operands = operands[1:]
    if len(set(operands)) != 1:
        raise AttributeValueError(f"{operation} of {', '.join(map(str, operands))}")
    wanted = boolean if operation in _COMPARISONS else operands[0]
    _require(dtype == wanted, "{} of {} gives {}, not {}", operation, operands[0], wanted, dtype)
