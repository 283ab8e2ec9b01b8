"""Functions that a C-like program defines for itself, each written only where a kernel calls it."""

from __future__ import annotations

from nnc_core.base.dtype import DType, float32, float64, uint32
from nnc_core.codegen.dialect import Dialect

FLOAT16_BITS = """\
{function} {ushort} nnc_float16_bits(float x) {{
  const {uint} bits = nnc_bitcast_float32_uint32(x), sign = (bits >> 16) & 0x8000U, size = bits & 0x7fffffffU;
  if (size > 0x7f800000U) return ({ushort})(sign | 0x7e00U);
  if (size >= 0x47800000U) return ({ushort})(sign | 0x7c00U);
  if (size < 0x38800000U) /* subnormal: the sum's last bit is worth as much as a float16's */
    return ({ushort})(sign | (nnc_bitcast_float32_uint32(nnc_bitcast_uint32_float32(size) + 0.5f)
                              - 0x3f000000U));
  return ({ushort})(sign | ((size - 0x38000000U + 0xfffU + ((size >> 13) & 1U)) >> 13));
}}
"""
FLOAT16_VALUE = """\
{function} float nnc_float16_value({ushort} bits) {{
  const {uint} sign = ({uint})(bits & 0x8000U) << 16, size = bits & 0x7fffU;
  if (size < 0x400U) {{
    const float small = (float)size * 0x1p-24f;
    return sign ? -small : small;
  }}
  return nnc_bitcast_uint32_float32(sign | ((size << 13) + (size >= 0x7c00U ? 0x70000000U : 0x38000000U)));
}}
"""
BFLOAT16_BITS = """\
{function} {ushort} nnc_bfloat16_bits(float x) {{
  const {uint} bits = nnc_bitcast_float32_uint32(x);
  if ((bits & 0x7fffffffU) > 0x7f800000U) return ({ushort})((bits >> 16) | 0x40U);
  return ({ushort})((bits + 0x7fffU + ((bits >> 16) & 1U)) >> 16);
}}
"""
BFLOAT16_VALUE = """\
{function} float nnc_bfloat16_value({ushort} bits) {{
  return nnc_bitcast_uint32_float32(({uint})bits << 16);
}}
"""
ROUND = """\
{function} float nnc_round_{dtype}(float x) {{
  return nnc_{dtype}_value(nnc_{dtype}_bits(x));
}}
"""
ODD_FLOAT = """\
/* Rounded to an odd last bit where inexact, so that rounding once more to fewer bits is right. */
{function} float nnc_odd_float(double x) {{
  const float closest = (float)x;
  const {uint} bits = nnc_bitcast_float32_uint32(closest);
  if ((double)closest == x || x != x || (bits & 1U)) return closest;
  return nnc_bitcast_uint32_float32(fabs((double)closest) > fabs(x) ? bits - 1U : bits + 1U);
}}
"""
BITCAST = """\
{function} {target} nnc_bitcast_{source_name}_{target_name}({source} x) {{
  union {{ {source} from; {target} to; }} both;
  both.from = x;
  return both.to;
}}
"""
SATURATE = """\
{function} {type} nnc_saturate_{real}_{dtype}({real} x) {{
  if (!(x > {low})) return x <= {low} ? {smallest} : 0;
  return x >= {high} ? {largest} : ({type})x;
}}
"""
SIGNED_FLOOR_DIVIDE = """\
{function} {type} nnc_floor_divide_{dtype}({type} a, {type} b) {{
  if (b == 0) return 0;
  if (b == -1) return ({type})(0U - ({unsigned})a);
  return ({type})(a / b - (a % b != 0 && (a < 0) != (b < 0)));
}}
"""
SIGNED_REMAINDER = """\
{function} {type} nnc_remainder_{dtype}({type} a, {type} b) {{
  if (b == 0 || b == -1) return 0;
  return ({type})(a % b + ((a % b != 0 && (a < 0) != (b < 0)) ? b : 0));
}}
"""
FLOAT_FLOOR_DIVIDE = """\
{function} {type} nnc_floor_divide_{dtype}({type} a, {type} b) {{
  if (b == 0) return a / b;
  const {type} rest = {fmod}(a, b);
  {type} quotient = (a - rest) / b;
  if (rest != 0 && (b < 0) != (rest < 0)) quotient -= 1;
  if (quotient == 0) return {copysign}(({type})0, a / b);
  const {type} whole = {floor}(quotient);
  return quotient - whole > ({type})0.5 ? whole + 1 : whole;
}}
"""
FLOAT_REMAINDER = """\
{function} {type} nnc_remainder_{dtype}({type} a, {type} b) {{
  const {type} rest = {fmod}(a, b);
  if (b == 0) return rest;
  if (rest == 0) return {copysign}(({type})0, b);
  return (b < 0) != (rest < 0) ? rest + b : rest;
}}
"""
INTEGER_POWER = """\
{function} {type} nnc_power_{dtype}({type} base, {type} exponent) {{
  {unsigned} result = 1, square = ({unsigned})base, left = ({unsigned})exponent;
  if (exponent < 0) return base == 1 ? 1 : base == ({type})-1 ? ((exponent & 1) ? base : 1) : 0;
  for (; left; left >>= 1) {{
    if (left & 1) result *= square;
    square *= square;
  }}
  return ({type})result;
}}
"""
INTEGER_GCD = """\
{function} {type} nnc_gcd_{dtype}({type} a, {type} b) {{
  {unsigned} large = a < 0 ? 0U - ({unsigned})a : ({unsigned})a, small = b < 0 ? 0U - ({unsigned})b : ({unsigned})b;
  while (small) {{
    const {unsigned} rest = large % small;
    large = small;
    small = rest;
  }}
  return ({type})large;
}}
"""


class Helpers:
    """The helper functions of a program, in an order in which each is defined before it is called."""

    def __init__(self, dialect: Dialect) -> None:
        self.dialect = dialect
        self.definitions: dict[str, str] = {}
        self.uses_float64 = False

    def define(self, name: str, template: str, **words: str) -> str:
        """Define a function once; returns its name."""
        types = self.dialect.types
        common = {"function": self.dialect.function, "uint": types["uint32"], "ushort": types["uint16"]}
        text = self.dialect.helpers.get(name, "{0}").replace("{0}", template)
        self.definitions.setdefault(name, text.format(**common, **words))
        return name

    def math(self, name: str, dtype: DType) -> str:
        """A function of the language for float32 or float64."""
        if name in self.dialect.builtins:
            return f"__builtin_{name}" + ("" if dtype == float64 else "f")
        return name if dtype == float64 or not self.dialect.suffixed_math else name + "f"

    def bitcast(self, source: DType, target: DType) -> str:
        types, name = self.dialect.types, f"nnc_bitcast_{source.name}_{target.name}"
        words = {"source": types[source.name], "source_name": source.name}
        return self.define(name, BITCAST, target=types[target.name], target_name=target.name, **words)

    def bits(self, dtype: DType) -> str:
        """float to the stored bits of float16 or bfloat16, halves to even."""
        self._float_bits()
        template = FLOAT16_BITS if dtype.name == "float16" else BFLOAT16_BITS
        return self.define(f"nnc_{dtype.name}_bits", template)

    def value(self, dtype: DType) -> str:
        """Stored bits of float16 or bfloat16 to float."""
        self._float_bits()
        template = FLOAT16_VALUE if dtype.name == "float16" else BFLOAT16_VALUE
        return self.define(f"nnc_{dtype.name}_value", template)

    def rounding(self, dtype: DType) -> str:
        """float to the nearest float16 or bfloat16, as float."""
        self.bits(dtype)
        self.value(dtype)
        return self.define(f"nnc_round_{dtype.name}", ROUND, dtype=dtype.name)

    def odd_float(self) -> str:
        self._float_bits()
        return self.define("nnc_odd_float", ODD_FLOAT)

    def _float_bits(self) -> None:
        self.bitcast(float32, uint32)
        self.bitcast(uint32, float32)
