"""Integers as bits, common divisors and multiples."""

from __future__ import annotations

from nnc_core.functions.pointwise import binary, unary

__all__ = [
    "bitwise_and", "bitwise_invert", "bitwise_left_shift", "bitwise_not", "bitwise_or", "bitwise_right_shift",
    "bitwise_xor", "gcd", "invert", "lcm", "left_shift", "right_shift",
]  # fmt: skip

bitwise_and, bitwise_or, bitwise_xor = binary("bitwise_and"), binary("bitwise_or"), binary("bitwise_xor")
bitwise_invert = bitwise_not = invert = unary("bitwise_invert")
bitwise_left_shift = left_shift = binary("bitwise_left_shift")
bitwise_right_shift = right_shift = binary("bitwise_right_shift")
gcd, lcm = binary("gcd"), binary("lcm")
