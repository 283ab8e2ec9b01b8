"""Inverse trigonometric functions: atan, atan2, asin, acos.

atan is reduced to |z| <= tan(pi / 8), by atan(n / d) = pi / 4 + atan((n - d) / (n + d)), and asin to |x| <= 1/2, by
asin(x) = pi / 2 - 2 asin(sqrt((1 - x) / 2)).  The coefficients interpolate (f(z) - z) / z**3 in z**2 at Chebyshev
nodes, computed with 90 decimal digits and rounded once; error of atan below 2**-28 (float32) and 2**-58 (float64), of
asin below 2**-29 and 2**-57.
"""

from __future__ import annotations

from math import inf

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.formats import Coefficients, as_float, form_of, polynomial, with_sign_of
from nnc_core.codegen.scalar import Scalar

_ATAN: Coefficients = {
    float32: (
         -0.3333333134651184, 0.19999539852142334, -0.14263950288295746, 0.10743668675422668,
         -0.06451718509197235),
    float64: (
         -0.3333333333333333, 0.19999999999999804, -0.14285714285659779, 0.11111111105150588,
         -0.09090908753259112, 0.07692296368042296, -0.0666642476020052, 0.05878927554473807,
         -0.05230443640686948, 0.045515447340221615, -0.03456931506332609, 0.016284375050043393),
}  # fmt: skip
_ASIN: Coefficients = {
    float32: (
         0.1666666567325592, 0.07500094175338745, 0.04459940269589424, 0.031100662425160408,
         0.017149237915873528, 0.03369084745645523),
    float64: (
         0.16666666666666669, 0.07499999999998433, 0.04464285714635543, 0.030381944138531247,
         0.02237217294214989, 0.017352392720869973, 0.013971212973552933, 0.011479177415184906,
         0.01032281435018578, 0.005457506718640358, 0.01740087944269402, -0.014851887071247204,
         0.028757851367421566),
}  # fmt: skip
PI = {float32: (3.141592025756836, 6.278329465203569e-07), float64: (3.141592653589793, 1.2246467991473532e-16)}
"""Pi in two parts; the first has three zeros at its end, so that small multiples of it are exact."""
_TAN_PI_8 = 0.41421356237309503


def atan(x: Scalar) -> Scalar:
    """Arctangent, in [-pi/2, pi/2]."""
    a = abs(x)
    return with_sign_of(_angle(a.minimum(1.0), a.maximum(1.0), (a > 1.0), None), x)


def atan2(y: Scalar, x: Scalar) -> Scalar:
    """The angle of the point (x, y), in [-pi, pi]; that of (0, 0) has the signs of IEEE 754."""
    form = form_of(x)
    a, b = abs(y), abs(x)
    near, far = a.minimum(b), a.maximum(b)
    up = (far < 2.0 ** (2 * form.mantissa - form.bias)).select(x.constant(2.0**form.mantissa), 1.0)
    scale = (far > 2.0 ** (form.bias - 2)).select(x.constant(0.25), up)
    both_infinite, both_zero = near.equal(inf), far.equal(0.0)
    near, far = both_infinite.select(x.constant(1.0), near * scale), both_infinite.select(x.constant(1.0), far * scale)
    far = both_zero.select(x.constant(1.0), far)
    return with_sign_of(_angle(near, far, a > b, x.bitcast(form.integer) < 0), y)


def asin(x: Scalar) -> Scalar:
    """Arcsine, in [-pi/2, pi/2]; NaN beyond 1."""
    a = abs(x)
    root, small = _half_angle(a)
    high, low = (part / 2 for part in PI[x.dtype])
    far = high - ((root + small) * 2.0 - low)
    return with_sign_of((a > 0.5).select(far, root + small), x)


def acos(x: Scalar) -> Scalar:
    """Arccosine, in [0, pi]; NaN beyond 1."""
    root, small = _half_angle(abs(x))
    high, low = PI[x.dtype]
    angle = root + small
    near = high / 2 - (with_sign_of(angle, x) - low / 2)
    far = (x < 0.0).select(high - (angle * 2.0 - low), angle * 2.0)
    return (abs(x) > 0.5).select(far, near)


def _half_angle(a: Scalar) -> tuple[Scalar, Scalar]:
    """asin(a), or asin(sqrt((1 - a) / 2)) where a > 1/2, as a large and a small part."""
    far = a > 0.5
    square = far.select((1.0 - a) * 0.5, a * a)
    root = far.select(square.sqrt(), a)
    return root, root * square * polynomial(_ASIN[a.dtype], square)


def _angle(near: Scalar, far: Scalar, steep: Scalar, left: Scalar | None) -> Scalar:
    """atan(near / far) of 0 <= near <= far, mirrored at the diagonal where `steep`, then at the axis where `left`.

    It is a multiple of pi / 4 plus or minus the arc tangent of a small number.
    """
    form = form_of(near)
    middle = near > far * _TAN_PI_8
    z = middle.select(near - far, near) / middle.select(near + far, far)
    square = z * z
    rest = z + z * square * polynomial(_ATAN[near.dtype], square)
    one, none = (near.constant(n, form.integer) for n in (1, 0))
    octants = middle.select(one, none)
    octants, turned = steep.select(2 - octants, octants), steep
    if left is not None:
        octants = left.select(4 - octants, octants)
        turned = (steep & left).select(near.constant(False, steep.dtype), steep | left)
    count = as_float(octants, form)
    high, low = (part / 4 for part in PI[near.dtype])
    return count * high + (turned.select(-rest, rest) + count * low)

