"""The functions of a transform in the order in which they run, and the table that they read."""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from itertools import accumulate
from typing import NamedTuple, TypeAlias

import numpy as np

from nnc_cpu.fourier.factors import Factors
from nnc_cpu.fourier.pairs import OddRowWriter, OddWriter, Pairs, PairsWriter, RowPairsWriter
from nnc_cpu.fourier.passes import Pass, PassWriter, passes_of
from nnc_cpu.fourier.places import PlaceKind
from nnc_cpu.fourier.problem import FourierKind
from nnc_cpu.fourier.tables import Numbers, flat, in_blocks, of_matrix, of_passes, of_products, roots_at
from nnc_cpu.fourier.turning import RowsWriter, TurnedRows

Step: TypeAlias = Pass | Pairs | TurnedRows
_NONE: Numbers = np.empty(0, np.complex128)


class Chain(NamedTuple):
    """Steps, each of which reads what the one before it has written."""

    steps: tuple[Step, ...]
    passes: tuple[Pass, ...]
    """The passes among them, in order, whose roots begin the table."""
    columns: int = 0
    """The number of steps that transform columns, where rows go one after another."""


class RootTable(NamedTuple):
    """Roots of passes and pairs, then those that the elements of a matrix are multiplied by, then the scale."""

    numbers: Numbers
    factors: int
    """The number at which those of a matrix begin."""
    far: int
    """That at which those begin that these are multiplied by, where they are products."""


@lru_cache(maxsize=256)
def chain_of(kind: FourierKind) -> Chain:
    """The chain of a kind."""
    return _by_rows(kind) if kind.by_rows else _in_lanes(kind)


def table_of(kind: FourierKind, scale: float) -> RootTable:
    """The table of a kind; `scale`: the factor of the results."""
    pairs = roots_at(kind.points, np.arange(1, kind.length // 2 + 1)) if kind.in_pairs else _NONE
    matrix, far = _of_matrix(kind.factors)
    if kind.by_rows:
        pairs, matrix = (in_blocks(roots, kind.lanes) for roots in (pairs[None], matrix))
    parts = [flat(kind.dtype, *roots) for roots in ((of_passes(chain_of(kind).passes), pairs), (matrix,), (far,))]
    ends = [*accumulate(map(len, parts))]
    return RootTable(np.concatenate([*parts, np.array([scale], kind.dtype)]), ends[0], ends[1])


def _of_matrix(factors: Factors) -> tuple[Numbers, Numbers]:
    """Roots, and those that they are multiplied by."""
    if not factors.rows:
        return _NONE[None], _NONE
    return of_products(factors) if factors.by_products else (of_matrix(factors), _NONE)


def _in_lanes(kind: FourierKind) -> Chain:
    """Every lane has a row of its own."""
    factors = kind.factors
    passes = passes_of(factors.columns, max(factors.width, 1), 0)
    if factors.rows:
        assert not factors.by_products, "long rows go one after another"
        passes[-1] = passes[-1]._replace(factors="elements")
        passes += passes_of(factors.rows, factors.height, _end(passes), (factors.width, 1))
    passes = _ended(kind, passes)
    steps: list[Step] = [made._replace(masked=kind.masked) for made in passes]
    if kind.way != "fft":
        pairs = _pairs(kind, passes)._replace(masked=kind.masked)
        steps = [pairs, *steps] if pairs.joined else [*steps, pairs]
    if kind.x == "columns":
        steps[0] = _reading(steps[0], kind)
    else:
        steps.insert(0, _rows(kind, 0))
    if kind.y == "columns":
        steps[-1] = _writing(steps[-1], kind)
    else:
        steps.append(_rows(kind, 1))
    return Chain(tuple(steps), tuple(passes))


def _by_rows(kind: FourierKind) -> Chain:
    """Columns of a row's matrix lie in lanes, then its rows do."""
    factors = kind.factors
    columns = passes_of(factors.columns, 1, 0)
    columns[0] = columns[0]._replace(source="columns", masked=factors.width % kind.lanes != 0,
                                     ahead=factors.by_products)
    columns[-1] = columns[-1]._replace(factors="products" if factors.by_products else "lanes")
    rows = passes_of(factors.rows, 1, _end(columns))
    rows[-1] = rows[-1]._replace(target="columns", masked=factors.height % kind.lanes != 0)
    passes = _ended(kind, columns + rows)
    pairs = [] if kind.way == "fft" else [_pairs(kind, passes)]
    return Chain((*passes, *pairs), tuple(passes), len(columns))


def _rows(kind: FourierKind, array: int) -> TurnedRows:
    """The rows of the input, or of the result, where they lie one behind another."""
    words, lying = words_of(kind)[array], (kind.x, kind.y)[array]
    return TurnedRows(numbers_of(kind)[array], words, lying == "apart", words == 1 and not kind.in_pairs)


def _pairs(kind: FourierKind, passes: Sequence[Pass]) -> Pairs:
    return Pairs(kind.way == "irfft", kind.length, _end(passes), scaled=kind.scaled and kind.way == "rfft")


def _ended(kind: FourierKind, passes: list[Pass]) -> list[Pass]:
    """Inverse transforms swap real and imaginary parts before and behind them."""
    passes[0] = passes[0]._replace(inverse_source=kind.inverse)
    passes[-1] = passes[-1]._replace(inverse_target=kind.inverse, scaled=kind.scaled and kind.way != "rfft")
    return passes


def _end(passes: Sequence[Pass]) -> int:
    return passes[-1].table + passes[-1].numbers


def _reading(step: Step, kind: FourierKind) -> Step:
    """The step that reads the array itself."""
    assert not isinstance(step, TurnedRows)
    return step._replace(source=_real(kind) if kind.way == "rfft" else "columns")


def _writing(step: Step, kind: FourierKind) -> Step:
    assert not isinstance(step, TurnedRows)
    return step._replace(target=_real(kind) if kind.way == "irfft" else "columns")


def _real(kind: FourierKind) -> PlaceKind:
    return "real columns" if kind.in_pairs else "real parts"


def words_of(kind: FourierKind) -> tuple[int, int]:
    """Numbers of an element of both arrays."""
    return 1 if kind.way == "rfft" else 2, 1 if kind.way == "irfft" else 2


def numbers_of(kind: FourierKind) -> tuple[int, int]:
    """Numbers of a row of both arrays."""
    frequencies = 2 * (kind.points // 2 + 1)
    return ({"fft": 2 * kind.points, "rfft": kind.points, "irfft": frequencies}[kind.way],
            {"fft": 2 * kind.points, "rfft": frequencies, "irfft": kind.points}[kind.way])


def text_of(step: Step, name: str, kind: FourierKind, declared: dict[str, None], gives: bool = False) -> str:
    """The function of a step; `gives`: of rows that are given back."""
    if isinstance(step, TurnedRows):
        writer = RowsWriter(step, kind.dtype, kind.lanes, declared)
        return writer.give(name) if gives else writer.take(name)
    if isinstance(step, Pass):
        return PassWriter(step, kind.dtype, kind.lanes, declared).text(name)
    in_lanes, by_row = (PairsWriter, RowPairsWriter) if kind.in_pairs else (OddWriter, OddRowWriter)
    return (by_row if kind.by_rows else in_lanes)(step, kind.dtype, kind.lanes, declared).text(name)
