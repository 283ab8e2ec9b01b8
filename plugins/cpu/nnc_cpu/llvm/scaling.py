"""Multiplying by powers of two in one instruction, which processors with AVX-512 have."""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register

_BITS = 512, 256, 128
"""Of the vectors that the instruction takes, the widest first."""


def scaled(f: FunctionWriter, x: Register, power: Register) -> Register:
    """x * 2**power for a whole power, rounded once, of floats or doubles in any number of lanes."""
    bits = 32 if x.type == "float" else 64
    widest, narrowest = _BITS[0] // bits, _BITS[-1] // bits
    if x.lanes > widest:
        low, high = (scaled(f, *[_part(f, v, range(begin, begin + x.lanes // 2)) for v in (x, power)])
                     for begin in (0, x.lanes // 2))
        return f.shuffled(low, high, range(x.lanes))
    if x.lanes < narrowest:
        wide = scaled(f, *[_widened(f, v, narrowest) for v in (x, power)])
        return f.lane(wide, 0) if x.lanes == 1 else _part(f, wide, range(x.lanes))
    kind = "ps" if bits == 32 else "pd"
    mask = Register("-1", f"i{max(x.lanes, 8)}")
    rounding = [Register("4", "i32")] if x.lanes == widest else []  # as the processor is set
    name = f"llvm.x86.avx512.mask.scalef.{kind}.{x.lanes * bits}"
    return f.call(name, x.type, x, power, x._replace(name="zeroinitializer"), mask, *rounding, lanes=x.lanes)


def _part(f: FunctionWriter, x: Register, lanes: range) -> Register:
    return f.shuffled(x, x._replace(name="poison"), lanes)


def _widened(f: FunctionWriter, x: Register, lanes: int) -> Register:
    """A value with further lanes, whatever is in them."""
    if x.lanes == 1:
        return f.spread(x, lanes)
    return _part(f, x, range(lanes))
