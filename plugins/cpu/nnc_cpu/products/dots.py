"""Several steps of a sum by one instruction: a lane of a vector is a word of 32 bits, in which the elements of
neighbouring steps lie side by side.

Sums of integers are exact, so that they have the bits of sums in order, whatever the instruction.  Those of bfloat16
are float32, but neither in order nor by fused multiply-add, and numbers below the normal ones count as zeros: near
enough, but not to the bit.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from nnc_core.base.dtype import DType, bfloat16, int8, is_integer
from nnc_core.operator.products.problem import MatrixProduct
from nnc_cpu.llvm.ir import FunctionWriter, Register

if TYPE_CHECKING:
    from nnc_cpu.llvm.compiler import TargetHost

_MULTIPLY_SHORTS = {16: "llvm.x86.avx512.pmaddw.d.512", 8: "llvm.x86.avx2.pmadd.wd", 4: "llvm.x86.sse2.pmadd.wd"}
"""pmaddwd by the lanes of 32 bits of its vectors."""

FEW = 64
"""Steps of a tile of AMX, as which words are as quick, since they end sums in registers; half as quick where their
elements take two bytes."""


class Dots(NamedTuple):
    """The way that the steps of a word are multiplied and added."""

    element: str
    """The type of the elements of a word: i8 (A unsigned, B signed) or i16 (both signed, or bfloat16)."""
    instruction: str = ""
    """The intrinsic that adds to a total ("dp...", "tdp..." whole tiles) or makes a sum ("pmadd..."); without one plain
    instructions do."""

    @property
    def bytes(self) -> int:
        """The size of an element."""
        return int(self.element[1:]) // 8

    @property
    def is_amx(self) -> bool:
        """True where the processor multiplies whole tiles: see `amx.py`."""
        return "tdp" in self.instruction

    @property
    def steps(self) -> int:
        """The number of steps in a word."""
        return 4 // self.bytes


def dots_of(problem: MatrixProduct, target: TargetHost, exact: bool = True) -> Dots | None:
    """The way that suits a product on a host; None: it goes through the steps one by one.  exact: every bit is to be
    that of sums in order."""
    lanes, bits = target.lanes, 32 * target.lanes
    if has_amx(target) and not problem.each:
        if problem.dtype == bfloat16 and not exact:
            return Dots("i16", "llvm.x86.tdpbf16ps")
        if is_integer(problem.dtype) and problem.steps > (FEW if problem.b_dtype == int8 else FEW // 2):
            signs = ["s" if x == int8 else "u" for x in (problem.dtype, problem.b_dtype)]
            return Dots("i8", f"llvm.x86.tdpb{''.join(signs)}d")
    if not is_integer(problem.dtype):
        paired = problem.dtype == bfloat16 and not exact and has_bfloat16(target)
        return Dots("i16", f"llvm.x86.avx512bf16.dpbf16ps.{bits}") if paired else None
    if not has_words(target):
        return Dots("i16", _MULTIPLY_SHORTS[lanes] if target.x86 else "")
    if problem.b_dtype == int8:
        return Dots("i8", f"llvm.x86.avx512.vpdpbusd.{bits}")
    return Dots("i16", f"llvm.x86.avx512.vpdpwssd.{bits}")


def has_words(target: TargetHost) -> bool:
    """Tell whether a host adds products of the elements of words ("VNNI")."""
    features = target.features.split(",")
    return "+avx512vnni" in features or ("+avxvnni" in features and target.lanes < 16)


def has_bfloat16(target: TargetHost) -> bool:
    """Tell whether a host multiplies bfloat16 and adds float32 by itself ("AVX512-BF16")."""
    return "+avx512bf16" in target.features.split(",")


def has_amx(target: TargetHost) -> bool:
    """Tell whether a host multiplies whole tiles of bytes and of bfloat16 ("AMX")."""
    features = target.features.split(",")
    return target.lanes == 16 and all([f"+amx-{part}" in features for part in ("tile", "int8", "bf16")])


def is_moved(dots: Dots | None, dtype: DType) -> bool:
    """True where elements of A are read as unsigned though they are not: 128 more than they are, which is taken back
    from the sums."""
    return dots is not None and dots.element == "i8" and not dots.is_amx and dtype == int8


def added(f: FunctionWriter, dots: Dots, total: Register, left: Register, right: Register) -> Register:
    """The total and the products of the elements of words."""
    lanes = total.lanes
    if "dpbf16ps" in dots.instruction:
        pairs = [f.let(f"bitcast {x} to <{2 * lanes} x bfloat>", "bfloat", 2 * lanes) for x in (left, right)]
        return f.call(dots.instruction, "float", total, *pairs, lanes=lanes)
    if "vpdp" in dots.instruction:
        return f.call(dots.instruction, "i32", total, left, right, lanes=lanes)
    if dots.instruction:
        shorts = [f.let(f"bitcast {x} to <{2 * lanes} x i16>", "i16", 2 * lanes) for x in (left, right)]
        return _sum(f, total, f.call(dots.instruction, "i32", *shorts, lanes=lanes))
    for half in (_low, _high):
        a, b = half(f, left), half(f, right)
        total = _sum(f, total, f.let(f"mul {a}, {b.name}", "i32", lanes))
    return total


def _sum(f: FunctionWriter, a: Register, b: Register) -> Register:
    return f.let(f"add {a}, {b.name}", "i32", a.lanes)


def _low(f: FunctionWriter, words: Register) -> Register:
    """The first int16 of each word as int32."""
    return _high(f, f.let(f"shl {words}, {_sixteen(f, words)}", "i32", words.lanes))


def _high(f: FunctionWriter, words: Register) -> Register:
    return f.let(f"ashr {words}, {_sixteen(f, words)}", "i32", words.lanes)


def _sixteen(f: FunctionWriter, words: Register) -> str:
    return f.spread(Register("16", "i32"), words.lanes).name
