"""The error function and its relatives: erf, erfc, erfcx, ndtr, log_ndtr, erfinv.

erfc is e**(-x**2) times erfcx, and (1 + 2 x) erfcx(x) is one smooth function of t = (x - c) / (x + c) for all x >= 0
(Shepherd and Laframboise, Mathematics of Computation 36, 1981).  In float32 (x + c) erfcx(x) takes its place, which
needs one division.  x**2 is formed in two parts, so that the tails keep their digits.  erf in float32, where no tail is
wanted, is 1 - 2**(x p(x)) far from 0.  Near 0, ndtr(-a) in float32 is
2**(t - a**2 log2(e) / 2), where t is a times a polynomial, so that nothing is divided.  erfinv(x) / x is a smooth
function of w = -log(1 - x**2), and of its root where w is large (Giles, GPU Computing Gems, 2011).

The coefficients were computed with 50 to 90 decimal digits.  Those of erfcx, of ndtr near 0 and of erf far from it in
float32 minimise the largest error, the others interpolate at Chebyshev nodes; the error of every fit is below 2**-23
(float32) and 2**-54 (float64).
"""

from __future__ import annotations

from math import inf, nan, sqrt

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.exponentials import reduced
from nnc_core.codegen.formats import (
    Coefficients,
    form_of,
    head,
    multiply_add,
    nearest_integer,
    polynomial,
    scaled,
    scaled_down,
    with_sign_of,
)
from nnc_core.codegen.logarithms import log, log_of_sum, one_plus
from nnc_core.codegen.scalar import Scalar

_ERF: Coefficients = {
    float32: (
         0.12837916612625122, -0.37612637877464294, 0.11283782124519348, -0.026865430176258087,
         0.005221031606197357, -0.0008484080317430198, 0.00011265958892181516, -9.667044650996104e-06),
    float64: (
         0.1283791670955126, -0.37612638903183754, 0.1128379167095512, -0.02686617064512984,
         0.0052239776254232985, -0.000854832702193483, 0.00012055332902888736, -1.4925647567519332e-05,
         1.6462045441468418e-06, -1.6364642158167616e-07, 1.4792401209404813e-08, -1.216456005728345e-09,
         8.709045129053106e-11, -4.230945824295338e-12),
}  # fmt: skip
"""(erf(x) / x - 1) of x**2 <= 1; in float32 for erfc alone."""
_ERFCX: Coefficients = {
    float32: (
         1.0215827226638794, -0.6871606707572937, 0.2794713079929352, -0.03644300252199173, -0.021502507850527763,
         0.006485859863460064, 0.0030569119844585657, -0.000860072672367096, -0.0005976154934614897,
         7.267506589414552e-05, 8.398109639529139e-05),
    float64: (
         -0.0170048813744474, -0.1396211168405625, 0.015379652102610162, 0.0680970542546862,
         -0.10103906603585294, 0.09373283499865172, -0.06633036582050367, 0.0371675155318432,
         -0.01619773397992426, 0.005031970032548695, -0.0007577737141838885, -0.00019925700412184815,
         0.0001506231178516207, -2.439811794207995e-05, -1.1225140354449658e-05, 5.707239573693257e-06,
         2.980596055322769e-07, -8.218020654813044e-07, 7.111912428010423e-08, 1.0683442926744586e-07,
         -1.6357383982124768e-08, -1.2544825403855518e-08, 1.5712153638319064e-09, 9.655408225482863e-10),
}  # fmt: skip
"""Of t: (x + 2) erfcx(x) in float32, (1 + 2 x) erfcx(x) - 5/4 in float64."""
_ERF_NEAR = (
         0.12837915122509003, -0.37612518668174744, 0.11282078176736832, -0.02677648700773716, 0.00500818807631731,
         -0.0006069972296245396)  # fmt: skip
"""(erf(x) / x - 1) of x**2, in float32 up to x = 0.9."""
_ERF_FAR = (
         -1.6281086206436157, -0.9171263575553894, -0.15188787877559662, 0.03304007276892662, -0.004643287044018507,
         0.00030931393848732114)  # fmt: skip
"""log2(erfc(x)) / x of x, in float32 from 0.9 to 4."""
_EXP2 = (
         1.0000001192092896, 0.6931469440460205, 0.24022120237350464, 0.05550713464617729, 0.009675540961325169,
         0.0013276381650939584)  # fmt: skip
"""2**x of |x| <= 1/2, in float32, for a number that is taken from 1."""
_NORMAL = (
         -0.7862955927848816, 0.12392967939376831, -0.020747637376189232, 0.0032377569004893303,
         -0.00043353153159841895, 4.1931365558411926e-05, -6.383200457094063e-07, -1.033099579217378e-06,
         3.8213133279896283e-07, -6.256906459611855e-08)  # fmt: skip
"""(log2(2 ndtr(-a)) + _BEND a**2) / a of a - 2, in float32 up to a = 4."""
_BEND = 0.7213475108146667  # log2(e) / 2 as float32; what it is too small by is in the polynomial
_QUARTER_EXP2 = (
         0.25, 0.1732867956161499, 0.060056619346141815, 0.01387589517980814, 0.0024046257603913546,
         0.00033479725243523717, 3.832308721030131e-05)  # fmt: skip
"""2**(x - 2) of |x| <= 1/2, in float32."""
_INVERSE_NEAR: Coefficients = {
    float32: (
         1.5014092922210693, 0.24664027988910675, -0.004177324939519167, -0.001252707908861339,
         0.0002182641183026135, -4.9959999159909785e-06, -3.42626617566566e-06, 4.786896852237987e-07,
         1.650364467309373e-08, -1.0861761268188275e-08, 4.3406267469237036e-10, 1.2346576538924126e-10),
    float64: (
         1.6536545626831027, 0.24015818242558834, -0.006033670871426851, -0.0007407025341546431,
         0.00018673420801981186, -1.3882523393957483e-05, -1.3654691758785656e-06, 4.23478816822246e-07,
         -2.907039127564132e-08, -4.1126604371632185e-09, 1.051223377050429e-09, -5.414303283919504e-11,
         -1.2978805369932565e-11, 2.6305268312595183e-12, -8.07192593899004e-14, -4.0020031087558496e-14,
         6.521333511502239e-15, -3.94018812230432e-17, -1.2215637192404172e-16, 1.5510787009902526e-17,
         6.075050702072414e-19, -3.4734793888538036e-19, 1.999259988861535e-20, 3.194015548136271e-21,
         -3.5932028927020693e-22),
}  # fmt: skip
_INVERSE_MIDDLE: Coefficients = {
    float64: (
         3.0838856104922208, 1.0052589676941655, 0.005370914553555033, -0.0037512085082247342,
         0.00249144209795696, -0.0016882755354488555, 0.0009532893415794137, -0.0003550378137852452,
         2.4031512865758357e-05, 6.828711739251955e-05, -4.732068066544697e-05, 1.2465028224217455e-05,
         2.93257845538535e-06, -3.985705945648173e-06, 1.4815977874022539e-06, -2.761716223816241e-08,
         -2.4549818963339823e-07, 1.3158663683192966e-07, -2.091453334773126e-08, -1.5305397964152548e-08,
         7.680200479077053e-09),
}  # fmt: skip
_INVERSE_FAR: Coefficients = {
    float32: (
         2.958320140838623, 1.0037187337875366, 0.007048035506159067, -0.005300696007907391,
         0.003792283358052373, -0.0025218285154551268, 0.0012717904755845666, -0.0003246785781811923,
         -0.00011587107292143628, 0.0001357862784061581, -3.0094559406279586e-05, -5.047794275014894e-06),
    float64: (
         4.849906401408584, 1.0103004648645448, -0.0001387193183802327, -0.00021503011980329156,
         7.599527809894209e-05, -1.968177112463216e-05, 4.526052504540241e-06, -9.930260580756307e-07,
         2.2905292955975568e-07, -6.757032620612133e-08, 2.901831210315565e-08, -1.521973066440248e-08,
         7.822040738410833e-09, -3.5249190822801067e-09, 1.315363872459033e-09, -3.891029733762427e-10,
         6.991455005495576e-11, 1.883626194327793e-11, -2.0469026960933108e-11, 5.029463831717124e-12),
}  # fmt: skip
"""erfinv(x) / x of w or of its root."""
_ERF_END = 3.9999919  # beyond it erf is 1 in float32; no power of two, whose sums NumPy would have to look at closely
_END = {float32: 11.0, float64: 28.0}  # beyond it erfc is 0
_NORMAL_END = {float32: 15.0, float64: 40.0}  # the same of ndtr


def erf(x: Scalar) -> Scalar:
    """The error function, in [-1, 1]; keeps -0."""
    return _ERFS[x.dtype](x)


def _erf_float32(x: Scalar) -> Scalar:
    a, square = abs(x), x * x
    near = multiply_add(x, polynomial(_ERF_NEAR, square), x)
    bounded = a.minimum(_ERF_END)
    power = bounded * polynomial(_ERF_FAR, bounded)
    whole, exponent = nearest_integer(power)
    form = form_of(x)
    mantissa = polynomial(_EXP2, power - whole).bitcast(form.integer)
    tail = (mantissa + (exponent << form.mantissa)).bitcast(float32)
    return (a < 0.9).select(near, with_sign_of(1.0 - tail, x))


def _erf_float64(x: Scalar) -> Scalar:
    a = abs(x)
    return (a < 1.0).select(_inner(x), with_sign_of(1.0 - _tail(a), x))


_ERFS = {float32: _erf_float32, float64: _erf_float64}


def erfc(x: Scalar) -> Scalar:
    """1 - erf(x), accurate in the tail; subnormal and then 0 at its end."""
    a = abs(x)
    tail = _tail(a)
    return (a < 0.5).select(1.0 - _inner(x), (x < 0.0).select(2.0 - tail, tail))


def erfcx(x: Scalar) -> Scalar:
    """e**(x**2) * erfc(x), which falls as 1 / x; infinite far below 0."""
    a = abs(x)
    exponent, fraction = _exp_of_square(a.minimum(_END[x.dtype]), 1.0)
    grown = scaled(fraction + 1.0, exponent + 1, form_of(x))
    tail = a.equal(inf).select(x.constant(0.0), _scaled_tail(a))
    return (x < 0.0).select(grown - tail, tail)


def ndtr(x: Scalar) -> Scalar:
    """The normal distribution's integral up to x, accurate in the left tail: erfc(-x / sqrt(2)) / 2."""
    tail = _normal_tail(abs(x))
    return (x > 0.0).select(1.0 - tail, tail)


def log_ndtr(x: Scalar) -> Scalar:
    """log(ndtr(x)), finite in the left tail: log(erfcx(-x / sqrt(2)) / 2) - x**2 / 2."""
    a, right = abs(x), x > 0.0
    total, rest = one_plus(-_normal_tail(a))
    left = _scaled_tail(a, sqrt(0.5)) * 0.5
    result = log_of_sum(right.select(total, left), right.select(rest, 0.0))
    result = right.select(result, result - x * 0.5 * x)
    return (x > -inf).select(result, x)


def erfinv(x: Scalar) -> Scalar:
    """erf(erfinv(x)) is x; infinite at 1 and -1, NaN beyond."""
    a = abs(x)
    w = -log((1.0 - a) * (1.0 + a))
    factor = _INVERSES[x.dtype](w, w.sqrt())
    return (a < 1.0).select(x * factor, a.equal(1.0).select(with_sign_of(x.constant(inf), x), nan))


def _inverse_float32(w: Scalar, root: Scalar) -> Scalar:
    near = polynomial(_INVERSE_NEAR[float32], w - 2.5)
    return (w < 5.0).select(near, polynomial(_INVERSE_FAR[float32], root - 3.125))


def _inverse_float64(w: Scalar, root: Scalar) -> Scalar:
    near = polynomial(_INVERSE_NEAR[float64], w - 3.125)
    middle = polynomial(_INVERSE_MIDDLE[float64], root - 3.25)
    far = polynomial(_INVERSE_FAR[float64], root - 5.0)
    return (w < 6.25).select(near, (root < 4.0).select(middle, far))


_INVERSES = {float32: _inverse_float32, float64: _inverse_float64}


def _inner(x: Scalar) -> Scalar:
    """erf of |x| <= 1."""
    return multiply_add(x, polynomial(_ERF[x.dtype], x * x), x)


def _scaled_tail(a: Scalar, factor: float = 1.0) -> Scalar:
    """erfcx of a times the factor, where a >= 0 is finite."""
    return _SCALED_TAILS[a.dtype](a, factor)


def _scaled_tail_float32(a: Scalar, factor: float) -> Scalar:
    inverse = 1.0 / multiply_add(a, factor, 2.0)
    t = multiply_add(a, factor, -2.0) * inverse
    return inverse * polynomial(_ERFCX[float32], t)


def _scaled_tail_float64(a: Scalar, factor: float) -> Scalar:
    a = a if factor == 1.0 else a * factor
    t = a / (a + 4.0) * 2.0 - 1.0  # (a - 4) / (a + 4)
    return (polynomial(_ERFCX[float64], t) + 1.25) * 0.5 / (a + 0.5)


_SCALED_TAILS = {float32: _scaled_tail_float32, float64: _scaled_tail_float64}


def _tail(a: Scalar) -> Scalar:
    """erfc of a >= 0."""
    a = a.minimum(_END[a.dtype])
    exponent, fraction = _exp_of_square(a, -1.0)
    factor = _scaled_tail(a)
    return scaled_down(multiply_add(factor, fraction, factor), exponent, form_of(a))


def _normal_tail(a: Scalar) -> Scalar:
    """ndtr(-a) of a >= 0."""
    end = a.minimum(_NORMAL_END[a.dtype])
    exponent, fraction = _exp_of_square(end, -0.5)
    factor = _scaled_tail(end, sqrt(0.5))
    far = scaled_down(multiply_add(factor, fraction, factor), exponent - 1, form_of(a))
    return far if a.dtype == float64 else (a > 4.0).select(far, _near_normal_tail(a))


def _near_normal_tail(a: Scalar) -> Scalar:
    """ndtr(-a) of 0 <= a <= 4 in float32.  What is whole in the power of two is taken off its two parts before they are
    added, so that the rest keeps its digits."""
    square = a * a
    t = multiply_add(a, polynomial(_NORMAL, a - 2.0), 1.0)
    whole, exponent = nearest_integer(multiply_add(square, -_BEND, t))
    power = multiply_add(square, -_BEND, -whole) + t
    power = multiply_add(multiply_add(a, a, -square), -_BEND, power)
    return scaled_down(polynomial(_QUARTER_EXP2, power), exponent, form_of(a))


def _exp_of_square(a: Scalar, factor: float) -> tuple[Scalar, Scalar]:
    """(k, f) with e**(factor * a**2) = 2**k * (1 + f); the square is formed in two parts."""
    if a.dtype == float32:
        scaled_a = a * factor
        square = scaled_a * a
        return reduced(square, scaled_a.fma(a, -square))
    high = head(a)
    return reduced(high * high * factor, (a - high) * (a + high) * factor)
