"""The end of a product in C-like languages: what is made of a finished sum, by the operators' own formulas."""

from __future__ import annotations

from collections.abc import Mapping

from nnc_core.base.dtype import DType
from nnc_core.base.loopnest import Instruction, LoopNest, Stage
from nnc_core.codegen import expand
from nnc_core.codegen.clike_scalars import LACKING, Scalars
from nnc_core.operator.products.ending import PRODUCT, Ending


def expanded(ending: Ending) -> tuple[Instruction, ...]:
    """The instructions with functions written out, as those of nests are."""
    nest = LoopNest("ending", (), (), (Stage((), ending.body),))
    [stage] = expand(expand(nest), LACKING).stages
    return stage.body


def ending_lines(ending: Ending, wide: DType, scalars: Scalars, sum: str, places: Mapping[str, str]) -> list[str]:
    """Statements for one element; `sum`: the finished sum, of dtype `wide`; `places`: the element of each array, as an
    expression."""
    lines: list[str] = []
    body = expanded(ending)
    dtypes = [wide, *ending.dtypes]
    for number, instruction in enumerate(body):
        operation, dtype, access = instruction.operation, instruction.dtype, instruction.access
        operands = [f"v{n}" for n in instruction.operands]
        if access is not None:
            element = sum if access.argument == PRODUCT else places[f"x{access.argument - 1}"]
            if operation == "store":
                stored = scalars.store(operands[0], dtypes[access.argument])
                lines.append(f"{element} = {stored}; const {scalars.held(dtype)} v{number} = {operands[0]};")
                continue
            value = element if access.argument == PRODUCT else scalars.load(element, dtypes[access.argument])
        elif operation == "constant":
            value = scalars.literal(instruction.literal, dtype)
        else:
            value = scalars.expression(operation, dtype, operands, body[instruction.operands[0]].dtype)
        lines.append(f"const {scalars.held(dtype)} v{number} = {value};")
    return lines
