"""Functions of SciPy that document support of the Array API: each a function of arrays, of NumPy's or of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from scipy import cluster, differentiate, fft, integrate, ndimage, optimize, signal, special, stats
from scipy.optimize import elementwise
from scipy.spatial.transform import Rotation

Case = Callable[..., Any]


def data() -> dict[str, np.ndarray[Any, Any]]:
    """Arrays by the names that cases take."""
    rng = np.random.default_rng(11)
    return {
        "a": rng.normal(size=(6, 16)), "b": rng.normal(size=(6, 16)) + 0.3, "p": rng.uniform(0.05, 0.95, size=(6, 16)),
        "x": rng.normal(size=40), "y": rng.normal(size=40) + 0.5, "z": rng.normal(size=8) + 1j * rng.normal(size=8),
        "points": rng.normal(size=(20, 3)), "codes": rng.normal(size=(4, 3)), "taps": rng.normal(size=9),
        "quaternion": np.array([0.1, 0.2, 0.3, 0.9]),
        "counts": rng.integers(5, 50, size=8).astype(np.float64), "image": rng.normal(size=(12, 10)),
    }  # fmt: skip


def _namespace(x: Any) -> Any:
    return x.__array_namespace__()


FFT: dict[str, Case] = {
    "fft.fft": lambda z: fft.fft(z),
    "fft.ifft": lambda z: fft.ifft(z),
    "fft.rfft": lambda x: fft.rfft(x, norm="ortho"),
    "fft.irfft": lambda z: fft.irfft(z),
    "fft.fft2": lambda a: fft.fft2(a),
    "fft.fftn": lambda a: fft.fftn(a),
    "fft.hfft": lambda z: fft.hfft(z),
    "fft.fftshift": lambda x: fft.fftshift(x),
    "fft.dct": lambda x: fft.dct(x),
    "fft.fht": lambda x: fft.fht(x, 0.1, 0.2),
}

SPECIAL: dict[str, Case] = {
    "special.erf": lambda a: special.erf(a),
    "special.gammaln": lambda p: special.gammaln(p),
    "special.expit": lambda a: special.expit(a),
    "special.logit": lambda p: special.logit(p),
    "special.ndtr": lambda a: special.ndtr(a),
    "special.ndtri": lambda p: special.ndtri(p),
    "special.xlogy": lambda p, b: special.xlogy(p, b * b),
    "special.rel_entr": lambda p: special.rel_entr(p, p * 0.5),
    "special.betainc": lambda p: special.betainc(p, p + 1.0, p),
    "special.logsumexp": lambda a: special.logsumexp(a, axis=1),
    "special.softmax": lambda a: special.softmax(a, axis=0),
    "special.log_softmax": lambda a: special.log_softmax(a, axis=1),
}

STATS: dict[str, Case] = {
    "stats.skew": lambda a: stats.skew(a, axis=1),
    "stats.kurtosis": lambda a: stats.kurtosis(a, axis=1),
    "stats.moment": lambda a: stats.moment(a, 3, axis=1),
    "stats.describe": lambda a: tuple(stats.describe(a, axis=1))[1:],
    "stats.zscore": lambda a: stats.zscore(a, axis=1),
    "stats.zmap": lambda a, b: stats.zmap(a, b, axis=1),
    "stats.gmean": lambda p: stats.gmean(p, axis=1),
    "stats.hmean": lambda p: stats.hmean(p, axis=1),
    "stats.pmean": lambda p: stats.pmean(p, 2.5, axis=1),
    "stats.variation": lambda a: stats.variation(a, axis=1),
    "stats.sem": lambda a: stats.sem(a, axis=1),
    "stats.entropy": lambda p: stats.entropy(p, axis=1),
    "stats.ttest_1samp": lambda a: tuple(stats.ttest_1samp(a, 0.1, axis=1)),
    "stats.ttest_ind": lambda a, b: tuple(stats.ttest_ind(a, b, axis=1)),
    "stats.ttest_rel": lambda a, b: tuple(stats.ttest_rel(a, b, axis=1)),
    "stats.pearsonr": lambda x, y: (lambda r: (r.statistic, r.pvalue))(stats.pearsonr(x, y)),
    "stats.chisquare": lambda counts: tuple(stats.chisquare(counts)),
    "stats.power_divergence": lambda counts: tuple(stats.power_divergence(counts, lambda_="log-likelihood")),
    "stats.skewtest": lambda a: tuple(stats.skewtest(a, axis=1)),
    "stats.kurtosistest": lambda x: tuple(stats.kurtosistest(x)),
    "stats.normaltest": lambda a: tuple(stats.normaltest(a, axis=1)),
    "stats.jarque_bera": lambda a: tuple(stats.jarque_bera(a, axis=1)),
    "stats.bartlett": lambda x, y: tuple(stats.bartlett(x, y)),
    "stats.combine_pvalues": lambda p: tuple(stats.combine_pvalues(p, axis=1)),
    "stats.circmean": lambda a: stats.circmean(a, axis=1),
    "stats.directional_stats": lambda points: (
        lambda r: (r.mean_direction, r.mean_resultant_length))(stats.directional_stats(points)),
    "stats.differential_entropy": lambda a: stats.differential_entropy(a, axis=1),
    "stats.boxcox_llf": lambda p: stats.boxcox_llf(0.5, p[0, :]),
    "stats.iqr": lambda a: stats.iqr(a, axis=1),
    "stats.quantile": lambda a, p: stats.quantile(a, p[0, :3], axis=1),
    "stats.trim_mean": lambda a: stats.trim_mean(a, 0.1, axis=1),
    "stats.rankdata": lambda a: stats.rankdata(a, axis=1),
    "stats.spearmanrho": lambda x, y: (lambda r: (r.statistic, r.pvalue))(stats.spearmanrho(x, y)),
    "stats.mannwhitneyu": lambda x, y: tuple(stats.mannwhitneyu(x, y, method="asymptotic")),
}

SIGNAL: dict[str, Case] = {
    "signal.convolve": lambda x, taps: signal.convolve(x, taps),
    "signal.fftconvolve": lambda x, taps: signal.fftconvolve(x, taps, mode="same"),
    "signal.oaconvolve": lambda x, taps: signal.oaconvolve(x, taps),
    "signal.correlate": lambda x, taps: signal.correlate(x, taps),
    "signal.hilbert": lambda x: signal.hilbert(x),
    "signal.detrend": lambda x: signal.detrend(x),
    "signal.lfilter": lambda x, taps: signal.lfilter(taps, taps[:1] * 0.0 + 1.0, x),
    "signal.medfilt": lambda x: signal.medfilt(x, 5),
    "signal.resample": lambda x: signal.resample(x, 20),
}

OTHERS: dict[str, Case] = {
    "integrate.trapezoid": lambda a: integrate.trapezoid(a, dx=0.5, axis=1),
    "integrate.cumulative_trapezoid": lambda a: integrate.cumulative_trapezoid(a, dx=0.5, axis=1),
    "integrate.cubature": lambda p: integrate.cubature(
        lambda x: _namespace(x).exp(-_namespace(x).sum(x * x, axis=-1)), p[0, :2] * 0.0, p[0, :2]).estimate,
    "integrate.tanhsinh": lambda p: integrate.tanhsinh(lambda x: x * x, p * 0.0, p).integral,
    "integrate.nsum": lambda p: integrate.nsum(lambda k: 1.0 / k**2, p[0, 0] * 0.0 + 1.0, p[0, 0] * 0.0 + 30.0).sum,
    "differentiate.derivative": lambda p: differentiate.derivative(lambda x: x**3, p).df,
    "differentiate.jacobian": lambda taps: differentiate.jacobian(lambda x: x**2 + x, taps).df,
    "differentiate.hessian": lambda codes: differentiate.hessian(lambda x: _namespace(x).sum(x**3, axis=0), codes).ddf,
    "optimize.elementwise.find_root": lambda p: elementwise.find_root(
        lambda x, c: x**3 - c, (p * 0.0, p * 0.0 + 1.0), args=(p,)).x,
    "optimize.elementwise.find_minimum": lambda p: elementwise.find_minimum(
        lambda x, c: (x - c)**2, (p - 2.0, p - 1.0, p + 3.0), args=(p,)).f_x,
    "optimize.elementwise.bracket_root": lambda p: elementwise.bracket_root(
        lambda x, c: x - c, p * 0.0, p * 0.0 + 0.01, args=(p,)).bracket,
    "optimize.rosen": lambda x: optimize.rosen(x),
    "optimize.rosen_der": lambda x: optimize.rosen_der(x),
    "optimize.rosen_hess": lambda taps: optimize.rosen_hess(taps),
    "cluster.vq.whiten": lambda points: cluster.vq.whiten(points),
    "cluster.vq.vq": lambda points, codes: cluster.vq.vq(points, codes),
    "cluster.vq.kmeans": lambda points, codes: cluster.vq.kmeans(points, codes),
    "cluster.hierarchy.linkage": lambda points: cluster.hierarchy.linkage(points, "single"),
    "cluster.hierarchy.cophenet": lambda points: cluster.hierarchy.cophenet(cluster.hierarchy.linkage(points)),
    "ndimage.gaussian_filter": lambda image: ndimage.gaussian_filter(image, 1.5),
    "ndimage.zoom": lambda image: ndimage.zoom(image, 2.0, order=1),
    "ndimage.label": lambda image: ndimage.label(image > 0.0)[0],
    "spatial.transform.Rotation": lambda quaternion, points: Rotation.from_quat(quaternion).apply(points),
    "spatial.transform.Rotation.as_matrix": lambda quaternion: Rotation.from_quat(quaternion).as_matrix(),
}

CASES = FFT | SPECIAL | STATS | SIGNAL | OTHERS
ON_HOST = frozenset({
    "cluster.hierarchy.cophenet", "cluster.hierarchy.linkage", "cluster.vq.kmeans", "cluster.vq.vq", "fft.dct",
    "ndimage.gaussian_filter", "ndimage.label", "ndimage.zoom", "signal.convolve", "signal.correlate",
    "signal.detrend", "signal.lfilter", "signal.medfilt", "special.betainc", "special.erf", "special.expit",
    "special.gammaln", "special.logit", "special.ndtr", "special.ndtri", "stats.bartlett", "stats.chisquare",
    "stats.combine_pvalues", "stats.entropy", "stats.jarque_bera", "stats.kurtosistest", "stats.mannwhitneyu",
    "stats.normaltest", "stats.pearsonr", "stats.power_divergence", "stats.skewtest", "stats.spearmanrho",
    "stats.ttest_1samp", "stats.ttest_ind", "stats.ttest_rel",
})  # fmt: skip
"""Cases for which SciPy asks for arrays of NumPy's itself: it computes there what libraries of arrays have not, and
gives back what it was given."""
