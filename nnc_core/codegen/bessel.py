"""Modified Bessel functions of the first kind, of order 0 and 1, also times e**-|x|.

Below 8 (float32) or 10 (float64) their series in (x / 2)**2, whose terms are all positive; beyond it sqrt(x) e**-x I(x)
is a polynomial in 1 / x, over an interval that is mapped to [-1, 1].  The coefficients interpolate at Chebyshev nodes,
computed with 90 decimal digits and rounded once; the error of every fit is below 2**-25 (float32) and 2**-53 (float64).
"""

from __future__ import annotations

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.exponentials import reduced
from nnc_core.codegen.formats import Coefficients, form_of, polynomial, scaled, with_sign_of
from nnc_core.codegen.scalar import Scalar

_I0: Coefficients = {
    float32: (
         1.0, 1.0, 0.2499999850988388, 0.027777792885899544, 0.0017361014615744352, 6.94478367222473e-05,
         1.928254960148479e-06, 3.947857152297729e-08, 6.043361366891986e-10, 8.279219324003328e-12,
         4.887155133706522e-14, 1.2115991041261034e-15),
    float64: (
         1.0, 1.0, 0.25000000000000006, 0.027777777777777693, 0.0017361111111111967, 6.94444444443921e-05,
         1.9290123457002865e-06, 3.9367598885345104e-08, 6.151187339355388e-10, 7.594058233627197e-12,
         7.594060710185583e-14, 6.276060842624124e-16, 4.358531351789233e-18, 2.5781805317840824e-20,
         1.3187796769527578e-22, 5.758629120327846e-25, 2.4745599143162142e-27, 5.1920095880135685e-30,
         4.6840935481549837e-32),
}  # fmt: skip
_I0_FAR: Coefficients = {
    float32: (
         0.40217649936676025, 0.003360552014783025, 0.00013621740799862891, 1.1141542017867323e-05,
         1.4754756421098136e-06, 3.03833104453588e-07, 1.0910233072536357e-07, 3.363580347581774e-08),
    float64: (
         0.4015097608312065, 0.002645885967186204, 8.311327263721624e-05, 5.152033951272523e-06,
         5.041257458220273e-07, 7.078400277725272e-08, 1.3635290931204917e-08, 3.5594718586252564e-09,
         1.2794854834486504e-09, 6.335710056030594e-10, 3.744336710674325e-10, 1.5156816932156447e-10,
         -1.1027480637908876e-10, -2.4247917231732244e-10, -9.716528662307308e-11, 1.0181138641337089e-10,
         8.344367527867416e-11, -2.422590687289376e-11, -3.055960610486955e-11, 2.767339685555002e-12,
         4.814005830000333e-12),
}  # fmt: skip
_I1: Coefficients = {
    float32: (
         1.0, 0.5, 0.0833333358168602, 0.006944445427507162, 0.00034722150303423405, 1.1574325071705971e-05,
         2.7551706693884626e-07, 4.929177066514967e-09, 6.754619780169335e-11, 8.103533035569432e-13,
         4.88467552945673e-15, 9.614042988762513e-17),
    float64: (
         1.0, 0.5, 0.08333333333333333, 0.006944444444444441, 0.00034722222222222636, 1.1574074074071527e-05,
         2.755731922408939e-07, 4.920949861131028e-09, 6.834652591432376e-11, 7.594058333459776e-13,
         6.90369059107419e-15, 5.230057804014023e-17, 3.35267649736164e-19, 1.841727364830391e-21,
         8.786493846929773e-24, 3.6113721217850504e-26, 1.4366795846824266e-28, 3.0631236052613688e-31,
         2.3878998366762342e-33),
}  # fmt: skip
_I1_FAR: Coefficients = {
    float32: (
         0.389398455619812, -0.0097495773807168, -0.00021923737949691713, -1.5037046978250146e-05,
         -1.8250069615532993e-06, -3.5481954796523496e-07, -1.231841935123157e-07, -3.785602586958703e-08),
    float64: (
         0.39133972251206706, -0.007730905126755938, -0.00013480146633788794, -7.012361313501271e-06,
         -6.294296321522071e-07, -8.389642841701125e-08, -1.5598306595784334e-08, -3.965028981256195e-09,
         -1.3948977726120614e-09, -6.794199209830196e-10, -3.9884173055440503e-10, -1.6494910233422713e-10,
         1.0940018017898828e-10, 2.525391357033204e-10, 1.0544010174897499e-10, -1.0375420084722629e-10,
         -8.799565212017509e-11, 2.4193666878165042e-11, 3.1912473453295585e-11, -2.709236254103626e-12,
         -5.001818222312378e-12),
}  # fmt: skip
_BOUND = {float32: 8.0, float64: 10.0}
_END = {float32: 95.0, float64: 720.0}  # beyond it I0 and I1 are infinite


def i0(x: Scalar) -> Scalar:
    """I0, which is even."""
    a = abs(x)
    return _grown(a, _near(_I0, a), _far(_I0_FAR, a))


def i1(x: Scalar) -> Scalar:
    """I1, which is odd; keeps -0."""
    a = abs(x)
    return with_sign_of(_grown(a, a * 0.5 * _near(_I1, a), _far(_I1_FAR, a)), x)


def i0e(x: Scalar) -> Scalar:
    """e**-|x| * I0(x)."""
    a = abs(x)
    return _decayed(a, _near(_I0, a), _far(_I0_FAR, a))


def i1e(x: Scalar) -> Scalar:
    """e**-|x| * I1(x)."""
    a = abs(x)
    return with_sign_of(_decayed(a, a * 0.5 * _near(_I1, a), _far(_I1_FAR, a)), x)


def _near(series: Coefficients, a: Scalar) -> Scalar:
    half = a.minimum(_BOUND[a.dtype]) * 0.5
    return polynomial(series[a.dtype], half * half)


def _far(fit: Coefficients, a: Scalar) -> Scalar:
    """sqrt(a) e**-a I(a) of a beyond the bound."""
    return polynomial(fit[a.dtype], 2.0 * _BOUND[a.dtype] / a.maximum(_BOUND[a.dtype]) - 1.0)


def _grown(a: Scalar, near: Scalar, far: Scalar) -> Scalar:
    """The function from a polynomial's value near 0, and from what has lost its factor e**a / sqrt(a) far from it."""
    bounded = a.minimum(_END[a.dtype])
    exponent, fraction = reduced(bounded)
    scale = far / bounded.sqrt()
    return (a < _BOUND[a.dtype]).select(near, scaled(scale + scale * fraction, exponent, form_of(a)))


def _decayed(a: Scalar, near: Scalar, far: Scalar) -> Scalar:
    form = form_of(a)
    exponent, fraction = reduced(-a.minimum(_BOUND[a.dtype]))
    near = scaled(near + near * fraction, exponent, form)
    return (a < _BOUND[a.dtype]).select(near, far / a.sqrt())
