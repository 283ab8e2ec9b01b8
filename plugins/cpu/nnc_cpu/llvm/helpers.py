"""Functions that kernels call lane by lane: what has loops of its own, and what threads take turns at."""

from __future__ import annotations

import re
from collections.abc import Iterable

_POWER = """\
define internal {type} @nnc_power_{sign}{bits}({type} %base, {type} %exponent) {{
entry:
  %below = icmp slt {type} %exponent, 0
  br i1 {negative}, label %inverse, label %loop
inverse:
  %one = icmp eq {type} %base, 1
  %minus = icmp eq {type} %base, -1
  %bit = and {type} %exponent, 1
  %odd = icmp ne {type} %bit, 0
  %sign = select i1 %odd, {type} %base, {type} 1
  %far = select i1 %minus, {type} %sign, {type} 0
  %near = select i1 %one, {type} 1, {type} %far
  ret {type} %near
loop:
  %result = phi {type} [1, %entry], [%next, %more]
  %square = phi {type} [%base, %entry], [%squared, %more]
  %left = phi {type} [%exponent, %entry], [%halved, %more]
  %done = icmp eq {type} %left, 0
  br i1 %done, label %end, label %more
more:
  %low = and {type} %left, 1
  %takes = icmp ne {type} %low, 0
  %product = mul {type} %result, %square
  %next = select i1 %takes, {type} %product, {type} %result
  %squared = mul {type} %square, %square
  %halved = lshr {type} %left, 1
  br label %loop
end:
  ret {type} %result
}}
"""
_GCD = """\
define internal {type} @nnc_gcd_{sign}{bits}({type} %a, {type} %b) {{
entry:
  %abelow = icmp slt {type} %a, 0
  %bbelow = icmp slt {type} %b, 0
  %aminus = sub {type} 0, %a
  %bminus = sub {type} 0, %b
  %anegative = and i1 %abelow, {signed}
  %bnegative = and i1 %bbelow, {signed}
  %first = select i1 %anegative, {type} %aminus, {type} %a
  %second = select i1 %bnegative, {type} %bminus, {type} %b
  br label %loop
loop:
  %large = phi {type} [%first, %entry], [%small, %more]
  %small = phi {type} [%second, %entry], [%rest, %more]
  %done = icmp eq {type} %small, 0
  br i1 %done, label %end, label %more
more:
  %rest = urem {type} %large, %small
  br label %loop
end:
  ret {type} %large
}}
"""
_NOTE = """\
define internal void @nnc_note_s64(ptr %note, i64 %check, i64 %place, i64 %value) noinline cold {{
entry:
  %check.at = getelementptr i64, ptr %note, i64 1
  %place.at = getelementptr i64, ptr %note, i64 2
  %value.at = getelementptr i64, ptr %note, i64 3
  %lock = getelementptr i64, ptr %note, i64 4
  br label %wait
wait:
  %taken = cmpxchg ptr %lock, i64 0, i64 1 acquire monotonic
  %mine = extractvalue {{ i64, i1 }} %taken, 1
  br i1 %mine, label %compare, label %wait
compare:
  %noted = load i64, ptr %note
  %none = icmp eq i64 %noted, 0
  %old.check = load i64, ptr %check.at
  %old.place = load i64, ptr %place.at
  %lower = icmp slt i64 %check, %old.check
  %same = icmp eq i64 %check, %old.check
  %before = icmp slt i64 %place, %old.place
  %nearer = and i1 %same, %before
  %earlier = or i1 %lower, %nearer
  %first = or i1 %none, %earlier
  br i1 %first, label %write, label %end
write:
  store i64 1, ptr %note
  store i64 %check, ptr %check.at
  store i64 %place, ptr %place.at
  store i64 %value, ptr %value.at
  br label %end
end:
  store atomic i64 0, ptr %lock release, align 8
  ret void
}}
"""
_TEMPLATES = {"power": _POWER, "gcd": _GCD, "note": _NOTE}
_NAME = re.compile(r"@nnc_(\w+)_([su])(\d+)\(")


def definitions(declared: dict[str, None]) -> list[str]:
    """The functions of ours among those that are declared, which these definitions replace."""
    return [*_defined(declared)]


def _defined(declared: dict[str, None]) -> Iterable[str]:
    for line in list(declared):
        found = _NAME.search(line)
        if found:
            name, sign, bits = found.groups()
            del declared[line]
            signed = "true" if sign == "s" else "false"
            yield _TEMPLATES[name].format(type=f"i{bits}", bits=bits, sign=sign, signed=signed,
                                          negative="%below" if sign == "s" else "false")
