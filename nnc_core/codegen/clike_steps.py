"""Kernels written by hand in words that stand for those of any C-like dialect whose kernels run in groups.

Names of dtypes stand for their types, GLOBAL is before what pointers to the device's memory point at, LOCAL(type,
name, count) declares an array that a group shares, FUNCTION is before helpers.  POINT and POINTS number all work items,
MEMBER and GROUP_NUMBER an item in its group and that, BARRIER is where all items of a group meet.  PAIR, PLUS and
SCALED make complex numbers, of type `pair`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from nnc_core.codegen.dialect import Dialect

WORD = re.compile(r"\b[A-Za-z]\w*\b")
LOCAL = re.compile(r"\bLOCAL\((\w+), (\w+), ([^();]+)\);")


class ArrayParameter(NamedTuple):
    """An array that kernels are given."""

    type: str
    name: str
    written: bool = False


def spelled(text: str, dialect: Dialect) -> str:
    """A text in the words of a dialect."""
    words = {**dialect.types, "GLOBAL": dialect.of_device, "FUNCTION": dialect.function, "POINT": dialect.point or "",
             "POINTS": dialect.items, "MEMBER": dialect.item, "GROUP_NUMBER": dialect.group, "BARRIER": dialect.barrier}
    text = LOCAL.sub(lambda found: dialect.local.format(type=found[1], name=found[2], count=found[3]), text)
    return WORD.sub(lambda found: words.get(found[0], found[0]), text)


def written_kernels(bodies: Mapping[str, str], arrays: Sequence[ArrayParameter], numbers: Sequence[str], items: int,
                    dialect: Dialect) -> str:
    """Kernels by their names, all of the same parameters: arrays; numbers, as arguments or in one more array; and two
    numbers that differ from launch to launch, `size` and `step`.  `items`: those of a group."""
    assert dialect.parameter is not None
    wide = dialect.types["int64"]
    parameters = [dialect.parameter.format(const="" if array.written else "const ", type=spelled(array.type, dialect),
                                           name=array.name) for array in arrays]
    declared = ""
    if dialect.many_arguments:
        parameters += [f"const {wide} {name}" for name in numbers]
    else:
        parameters.append(dialect.parameter.format(const="const ", type=wide, name="numbers"))
        declared = " ".join([f"const {wide} {name} = numbers[{n}];" for n, name in enumerate(numbers)])
    parameters += [f"const {wide} size", f"const {wide} step"]
    before = dialect.group_of.format(items=items)
    return "\n".join([f"{before}{dialect.head.format(name=name, parameters=', '.join(parameters))} {{\n  {declared}"
                      f"{spelled(body, dialect)}}}\n" for name, body in bodies.items()])


def pairs(real: str, nbytes: int, dialect: Dialect) -> str:
    """Complex numbers of a type of so many bytes."""
    return dialect.pairs.format(real=real, nbytes=2 * nbytes)
