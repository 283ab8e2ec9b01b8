"""The logarithm of the gamma function, and its derivative digamma.

Between 1 and 4 each is its zeros' factors times a ratio of polynomials with positive coefficients; beyond 4 Stirling's
series, as a ratio of polynomials in 1 / x**2; below 1 a step of the recurrence; below 0 the reflection formula.  The
coefficients interpolate at Chebyshev nodes, computed with 90 decimal digits and rounded once; the error of every fit is
below 2**-25 (float32) and 2**-54 (float64).
"""

from __future__ import annotations

from math import inf, nan, pi
from math import log as number_log

from nnc_core.base.dtype import float32, float64
from nnc_core.codegen.formats import Coefficients, polynomial
from nnc_core.codegen.logarithms import log
from nnc_core.codegen.scalar import Scalar

_LOG_GAMMA: Coefficients = {
    float32: (
         0.5772156715393066, 0.9923544526100159, 0.5399670600891113, 0.10295749455690384,
         0.005361173301935196, 1.7674565242487006e-05),
    float64: (
         0.5772156649015329, 1.9184491240724417, 2.5482869266894705, 1.7353784145854594, 0.6475379331820537,
         0.1315475077115862, 0.013646965686628166, 0.0006254321099418796, 9.052065947579509e-06,
         8.282713446174468e-09),
}  # fmt: skip
_LOG_GAMMA_BELOW: Coefficients = {
    float32: (
         1.0, 2.1440961360931396, 1.5771842002868652, 0.4706101715564728, 0.05246038734912872,
         0.001523593789897859),
    float64: (
         1.0, 3.748513119379957, 5.738202953731988, 4.6346276830093025, 2.1337997969050173,
         0.5661283333714182, 0.08367193812940361, 0.006335723831552411, 0.00020761819740754223,
         1.979616037398412e-06),
}  # fmt: skip
"""log(gamma(x)) / ((x - 1) (x - 2)) of x - 1."""
_STIRLING: Coefficients = {
    float32: (
         0.0833333358168602, -0.0027777377981692553, 0.000790374877396971, -0.0005066983285360038),
    float64: (
         0.08333333333333333, 0.7943761826463483, 1.8544107726984451, 1.06079350874321, 0.07600121930896932),
}  # fmt: skip
_STIRLING_BELOW: Coefficients = {
    float32: (
         1.0,),
    float64: (
         1.0, 9.56584752508948, 22.562267047042265, 13.39763721789091, 1.2019505186916621),
}  # fmt: skip
"""x times what Stirling's formula leaves, of 1 / x**2."""
_DIGAMMA: Coefficients = {
    float32: (
         1.2503801584243774, 1.5858861207962036, 0.6247218251228333, 0.08671366423368454,
         0.003345218952745199, 7.361865755228791e-06),
    float64: (
         1.2503801375034054, 2.1350035194250303, 1.3724956245607915, 0.42758767493194716,
         0.06856679098671349, 0.005496586877455192, 0.00019453544844483928, 2.1917144654830184e-06,
         1.402613434700157e-09),
}  # fmt: skip
_DIGAMMA_BELOW: Coefficients = {
    float32: (
         1.0, 1.9518699645996094, 1.2320284843444824, 0.3083386719226837, 0.028907528147101402,
         0.0007199068204499781),
    float64: (
         1.0, 2.3910303677697975, 2.13025227505565, 0.9306500781833718, 0.21686606427381228,
         0.027105081389092216, 0.0017139346932061438, 4.713007993540955e-05, 3.8347125324643785e-07),
}  # fmt: skip
"""digamma(x) / (x - its zero) of x - 1."""
_ASYMPTOTE: Coefficients = {
    float32: (
         0.0833333358168602, -0.008332990109920502, 0.003940102178603411, -0.00339705403894186),
    float64: (
         0.08333333333333331, 0.9233242093945452, 2.581844719397342, 1.8404397984687837, 0.16656486954069544),
}  # fmt: skip
_ASYMPTOTE_BELOW: Coefficients = {
    float32: (
         1.0,),
    float64: (
         1.0, 11.17989051273409, 32.05250663662274, 24.80815247120413, 3.421372551409218),
}  # fmt: skip
"""x**2 (log(x) - 1 / (2 x) - digamma(x)) of 1 / x**2."""
_SIN_PI: Coefficients = {
    float32: (
         -1.644934058189392, 0.81174236536026, -0.19075006246566772, 0.02612805925309658,
         -0.0022550628054887056),
    float64: (
         -1.6449340668482264, 0.8117424252833536, -0.19075182412208389, 0.026147847817640922,
         -0.002346081035170168, 0.00014842878972770888, -6.975851212142348e-06, 2.5303274566671434e-07,
         -7.114052818770147e-09),
}  # fmt: skip
"""(sin(pi r) / (pi r) - 1) / r**2 of r**2 <= 1/4."""
_COS_PI: Coefficients = {
    float32: (
         -4.934802055358887, 4.058711528778076, -1.3352400064468384, 0.23507437109947205,
         -0.024627111852169037),
    float64: (
         -4.934802200544679, 4.0587121264167685, -1.3352627688545824, 0.23533063035860233,
         -0.025806891384027284, 0.0019295742401671152, -0.00010463763434072599, 4.301203720851614e-06,
         -1.3479054836358117e-07),
}  # fmt: skip
"""(cos(pi r) - 1) / r**2 of r**2 <= 1/4."""
_ZERO = {float32: (0.4616321325302124, 1.2438150065463558e-08), float64: (0.46163214496836225, 9.549995429965697e-17)}
"""The positive zero of digamma, minus 1, in two parts."""
_STIRLING_CONSTANT = number_log(2 * pi) / 2 - 0.5


def lgamma(x: Scalar) -> Scalar:
    """log(|gamma(x)|); infinite at 0, -1, -2 ..."""
    a = abs(x)
    below_one, logarithm = a < 1.0, log(a)
    base = (a < 4.0).select(_log_gamma_below_4(a, below_one), _log_gamma_above_4(a, logarithm))
    positive = below_one.select(base - logarithm, base)
    sine, _ = _sine_and_cosine(a)
    reflected = -(log(abs(sine)) + below_one.select(base, base + logarithm))
    reflected = sine.equal(0.0).select(x.constant(inf), reflected)
    result = (x < 0.0).select(reflected, positive)
    return (a < inf).select(result, a)


def digamma(x: Scalar) -> Scalar:
    """The derivative of lgamma; infinite at 0, NaN at -1, -2 ..."""
    a = abs(x)
    below_one = a < 1.0
    base = (a < 4.0).select(_digamma_below_4(a, below_one), _digamma_above_4(a))
    inverse = 1.0 / x
    positive = below_one.select(base - inverse, base)
    sine, cosine = _sine_and_cosine(a)
    reflected = below_one.select(base, base - inverse) + cosine / sine
    reflected = sine.equal(0.0).select(x.constant(nan), reflected)
    return (x < 0.0).select(reflected, positive)


def _log_gamma_below_4(a: Scalar, below_one: Scalar) -> Scalar:
    """lgamma(a), or lgamma(a + 1) where a is below one."""
    above_one = below_one.select(a, a - 1.0).minimum(3.0)
    ratio = polynomial(_LOG_GAMMA[a.dtype], above_one) / polynomial(_LOG_GAMMA_BELOW[a.dtype], above_one)
    return above_one * ((above_one - 1.0) * ratio) + 0.0  # -0 becomes 0


def _log_gamma_above_4(a: Scalar, logarithm: Scalar) -> Scalar:
    inverse = 1.0 / a
    square = (inverse * inverse).minimum(1 / 16)
    rest = polynomial(_STIRLING[a.dtype], square) / polynomial(_STIRLING_BELOW[a.dtype], square)
    return (a - 0.5) * (logarithm - 1.0) + (rest * inverse + _STIRLING_CONSTANT)


def _digamma_below_4(a: Scalar, below_one: Scalar) -> Scalar:
    """digamma(a), or digamma(a + 1) where a is below one."""
    above_one = below_one.select(a, a - 1.0).minimum(3.0)
    high, low = _ZERO[a.dtype]
    ratio = polynomial(_DIGAMMA[a.dtype], above_one) / polynomial(_DIGAMMA_BELOW[a.dtype], above_one)
    return ((above_one - high) - low) * ratio


def _digamma_above_4(a: Scalar) -> Scalar:
    inverse = 1.0 / a
    square = (inverse * inverse).minimum(1 / 16)
    rest = polynomial(_ASYMPTOTE[a.dtype], square) / polynomial(_ASYMPTOTE_BELOW[a.dtype], square)
    return log(a) - (inverse * 0.5 + square * rest)


def _sine_and_cosine(a: Scalar) -> tuple[Scalar, Scalar]:
    """sin(pi a) / pi and cos(pi a), both with the sign of the cosine's whole half-turns left out."""
    rest = a - a.apply("round")
    square = rest * rest
    sine = rest + rest * square * polynomial(_SIN_PI[a.dtype], square)
    return sine, square * polynomial(_COS_PI[a.dtype], square) + 1.0
