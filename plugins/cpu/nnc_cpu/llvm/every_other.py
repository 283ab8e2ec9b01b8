"""Loads and stores of every other element: vectors of twice the width, of which half is left alone.

Gathers take as many steps as there are lanes.  Elements between and behind may be another array's, or not be there, so
that neither loads nor stores touch them.
"""

from __future__ import annotations

from nnc_cpu.llvm.ir import FunctionWriter, Register, integer, suffix


def load_every_other(f: FunctionWriter, pointer: Register, type: str, alignment: int, lanes: int,
                     mask: Register | None) -> Register:
    """Elements 0, 2, 4 ... from an address, in the lanes of the mask; None for all."""
    wide = Register("", type, 2 * lanes)
    raw = f.call(f"llvm.masked.load.v{2 * lanes}{suffix(type)}.p0", type, pointer, integer(alignment, 32),
                 _apart(f, mask, lanes), wide._replace(name="zeroinitializer"), lanes=2 * lanes)
    return f.shuffled(raw, wide._replace(name="poison"), range(0, 2 * lanes, 2))


def store_every_other(f: FunctionWriter, pointer: Register, value: Register, alignment: int,
                      mask: Register | None) -> None:
    """The same for a store."""
    lanes = value.lanes
    nothing = value._replace(name="poison")
    raw = f.shuffled(value, nothing, [k // 2 for k in range(2 * lanes)])
    f.call_void(f"llvm.masked.store.v{2 * lanes}{suffix(value.type)}.p0", raw, pointer, integer(alignment, 32),
                _apart(f, mask, lanes))


def _apart(f: FunctionWriter, mask: Register | None, lanes: int) -> Register:
    """The mask with a lane that is off behind each of its own."""
    if mask is None:
        return Register("<" + ", ".join(["i1 true", "i1 false"] * lanes) + ">", "i1", 2 * lanes)
    off = mask._replace(name="zeroinitializer")
    return f.shuffled(mask, off, [k // 2 if k % 2 == 0 else lanes for k in range(2 * lanes)])
