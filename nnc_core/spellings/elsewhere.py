"""Answers to names of JAX, SciPy and NumPy's other modules: our own, by the place where the names are looked for."""

from __future__ import annotations

_BY_SCIPY = "nnc.callback, which calls SciPy's"
_STEPS = "nnc.while_loop or nnc.scan over the steps"
_OPTIMISED = "nnc.optim, or scipy.optimize.minimize(f, x, jac=nnc.grad(f))"
_SOLVED = "nnc.linalg.solve of the whole matrix, or nnc.scan over its rows"
_SYMMETRIC = "of a symmetric x nnc.linalg.eigh"
_SPECIAL = (
    "airy", "bessel_jn", "betainc", "betaincc", "betaincinv", "ellipe", "ellipj", "ellipk", "erfcinv", "erfi", "exp1",
    "expi", "expn", "fresnel", "gammainc", "gammaincc", "gammainccinv", "gammaincinv", "hankel1", "hyp1f1", "hyp2f1",
    "igamma", "igammac", "iv", "j0", "j1", "jn", "jv", "k0", "k1", "kv", "lambertw", "ndtri", "owens_t",
    "random_gamma_grad", "shichi", "sici", "spence", "stdtr", "struve", "voigt_profile", "wofz", "y0", "y1", "yn", "yv",
)  # fmt: skip

OF_JAX = {
    "approx_max_k": "nnc.top_k(x, k)", "bitcast_convert_type": "nnc.bitcast(x, dtype)",
    "broadcast_in_dim": "nnc.broadcast_to(x, shape)", "broadcasted_iota": "nnc.indices(shape)", "conv": "nnc.conv2d",
    "conv_general_dilated": "nnc.conv2d", "conv_transpose": "nnc.conv_transpose2d",
    "convert_element_type": "x.astype(dtype)", "cumlogsumexp": "nnc.logcumsumexp",
    "custom_linear_solve": "nnc.custom_vjp", "custom_root": "nnc.custom_vjp",
    "dot_general": "nnc.einsum or nnc.tensordot", "dynamic_index_in_dim": "x[i], or nnc.take(x, i, axis=axis)",
    "dynamic_slice_in_dim": "x[i + nnc.arange(n)]", "dynamic_update_index_in_dim": "x.at[i].set(v)",
    "dynamic_update_slice_in_dim": "x.at[i + nnc.arange(n)].set(v)", "image": "nnc.resize",
    "index_in_dim": "x[i], or nnc.take(x, i, axis=axis)", "integer_pow": "x ** n", "io_callback": "nnc.callback",
    "iota": "nnc.arange(n)", "ops": "nnc.segment_sum and its kin", "population_count": "nnc.bitwise_count",
    "reduce": "nnc.sum, nnc.max and their kin", "reduce_and": "nnc.all", "reduce_max": "nnc.max",
    "reduce_min": "nnc.min", "reduce_or": "nnc.any", "reduce_prod": "nnc.prod", "reduce_sum": "nnc.sum",
    "reduce_window": "nnc.max_pool2d, nnc.avg_pool2d or nnc.unfold", "rev": "nnc.flip(x, axis=axis)",
    "scatter_max": 'nnc.scatter_reduce, or x.at[i].max(v)', "scatter_min": 'nnc.scatter_reduce, or x.at[i].min(v)',
    "scatter_mul": "x.at[i].multiply(v)", "scatter_sub": "x.at[i].subtract(v)", "select_n": "nnc.where",
    "shift_left": "nnc.left_shift", "shift_right_arithmetic": "nnc.right_shift",
    "shift_right_logical": "nnc.right_shift of an unsigned dtype", "slice": "x[start:stop:step]",
    "slice_in_dim": "x[..., start:stop]", "sort_key_val": "nnc.argsort and nnc.take",
}  # fmt: skip

OF_SCIPY = {
    **dict.fromkeys(_SPECIAL, _BY_SCIPY), "rgamma": "1 / nnc.gamma(x)", "zetac": "nnc.zeta(x) - 1",
    "loggamma": "nnc.gammaln of positive numbers", "pseudo_huber": "delta ** 2 * (nnc.hypot(1, r / delta) - 1)",
    "powm1": "nnc.expm1(y * nnc.log(x))", "cosdg": "nnc.cos(nnc.deg2rad(x))", "sindg": "nnc.sin(nnc.deg2rad(x))",
    "binary_dilation": "nnc.max_pool2d",
    "binary_erosion": "nnc.max_pool2d of ~x", "convolve1d": "nnc.convolve, or nnc.conv1d",
    "convolve2d": "nnc.conv2d of the flipped kernel", "correlate2d": "nnc.conv2d", "curve_fit": _OPTIMISED,
    "cumulative_trapezoid": "nnc.cumulative_sum of (y[1:] + y[:-1]) / 2 * dx",
    "fftconvolve": "nnc.fft.irfft(nnc.fft.rfft(x, n) * nnc.fft.rfft(y, n), n)",
    "fsolve": "nnc.while_loop with nnc.jacobian", "gaussian_filter": "nnc.conv2d behind nnc.pad",
    "grey_dilation": "nnc.max_pool2d", "integrate": _STEPS, "interp1d": "nnc.interp", "least_squares": _OPTIMISED,
    "lfilter": "nnc.linear_recurrence or nnc.scan", "map_coordinates": "nnc.grid_sample",
    "maximum_filter": "nnc.max_pool2d", "median_filter": "nnc.median of windows stacked", "minimize": _OPTIMISED,
    "ndimage": "nnc.conv2d, nnc.max_pool2d, nnc.resize, nnc.grid_sample", "odeint": _STEPS, "optimize": _OPTIMISED,
    "pdist": "nnc.linalg.vector_norm(x[:, None] - x, axis=-1)",
    "quad": "nnc.trapezoid, or nnc.sum(weights * f(nodes))", "root_scalar": "nnc.while_loop",
    "rotate": "nnc.grid_sample with nnc.affine_grid", "scipy": "nnc's own functions, nnc.linalg, nnc.fft",
    "signal": "nnc.convolve, nnc.stft, nnc.linear_recurrence", "simpson": "nnc.sum(weights * y)",
    "sobel": "nnc.conv2d", "solve_ivp": _STEPS, "sparse": "nnc.segment_sum or nnc.scatter_add of products",
    "spectrogram": "nnc.stft", "stats": "nnc.Generator's distributions, nnc.ndtr, nnc.quantile, nnc.corrcoef",
    "uniform_filter": "nnc.avg_pool2d", "zoom": "nnc.resize",
}  # fmt: skip

OF_NUMPY = {
    "Inf": "nnc.inf", "Infinity": "nnc.inf", "NAN": "nnc.nan", "NINF": "-nnc.inf", "NaN": "nnc.nan", "PINF": "nnc.inf",
    "asfarray": 'nnc.asarray(x, dtype="float64")', "asscalar": "x.item()", "find_common_type": "nnc.result_type",
    "float_": "nnc.float64", "complex_": "nnc.complex128", "fromfile": "nnc.asarray(numpy.fromfile(file))",
    "genfromtxt": "nnc.asarray(numpy.genfromtxt(file))", "loadtxt": "nnc.asarray(numpy.loadtxt(file))",
    "savetxt": "numpy.savetxt(file, x)",
}  # fmt: skip

OF_LINALG = {
    "cho_factor": "nnc.linalg.cholesky", "cho_solve": "nnc.linalg.cholesky_solve",
    "cosm": "nnc.real(nnc.linalg.expm(1j * x))", "eig_banded": "nnc.linalg.eigh of the whole matrix",
    "eigh_tridiagonal": "nnc.linalg.eigh of the whole matrix",
    "eigvalsh_tridiagonal": "nnc.linalg.eigvalsh of the whole matrix",
    "fractional_matrix_power": f"{_SYMMETRIC}: v * w ** p @ v.T", "khatri_rao": 'nnc.einsum("ik,jk->ijk", a, b)',
    "kron": "nnc.kron", "ldl": "nnc.linalg.cholesky or nnc.linalg.lu", "logm": f"{_SYMMETRIC}: v * nnc.log(w) @ v.T",
    "null_space": "nnc.linalg.svd: the last rows of vh", "orth": "nnc.linalg.svd: the first columns of u",
    "pinvh": "nnc.linalg.pinv", "rq": "nnc.linalg.lq", "solve_banded": _SOLVED, "solve_circulant": "nnc.fft",
    "solve_lyapunov": "nnc.linalg.solve_continuous_lyapunov", "solve_toeplitz": _SOLVED, "solveh_banded": _SOLVED,
    "cholesky_ex": "nnc.linalg.cholesky, whose error says where", "householder_product": "nnc.linalg.qr, which gives q",
    "inv_ex": "nnc.linalg.inv, whose error says where", "ldl_factor": "nnc.linalg.cholesky or nnc.linalg.lu_factor",
    "matrix_exp": "nnc.linalg.expm", "solve_ex": "nnc.linalg.solve, whose error says where",
    "sqrtm": f"{_SYMMETRIC}: v * nnc.sqrt(w) @ v.T",
}  # fmt: skip

OF_UPDATES = {
    "apply": "x.at[key].set(f(x[key]))", "div": "x.at[key].divide(v)", "maximum": "x.at[key].max(v)",
    "minimum": "x.at[key].min(v)", "mul": "x.at[key].multiply(v)", "pow": "x.at[key].power(v)",
    "sub": "x.at[key].subtract(v)",
}  # fmt: skip
"""What to write instead of what `x.at[key]` has elsewhere."""

OF_FFT = {
    "dct": "nnc.fft.rfft of x and its mirror image", "dctn": "nnc.fft.rfftn of x and its mirror image",
    "dst": "nnc.fft.rfft of x and its negated mirror image", "idct": "nnc.fft.irfft",
    "next_fast_len": "scipy.fft.next_fast_len", "stft": "nnc.stft", "istft": "nnc.istft",
}  # fmt: skip

OF_GENERATORS = {
    "cauchy": "nnc.tan(nnc.pi * (g.uniform(shape) - 0.5))", "chisquare": "2 * g.gamma(freedom / 2, shape)",
    "fold_in": "g.spawn(count)", "geometric": "nnc.ceil(g.exponential(shape) / -nnc.log1p(-p))",
    "key_data": "g.state", "lognormal": "nnc.exp(g.normal(shape))",
    "maxwell": "nnc.linalg.vector_norm(g.normal((*shape, 3)), axis=-1)",
    "negative_binomial": "g.poisson(g.gamma(n, shape) * (1 - p) / p)",
    "pareto": "nnc.expm1(g.exponential(shape) / a)", "power": "g.uniform(shape) ** (1 / a)",
    "rademacher": "nnc.where(g.bernoulli(0.5, shape), 1, -1)", "rand": "g.uniform(shape)",
    "randn": "g.normal(shape)", "random": "g.uniform(shape)", "random_integers": "g.integers(low, high + 1, shape)",
    "random_sample": "g.uniform(shape)", "randperm": "g.permutation(n)",
    "rayleigh": "nnc.sqrt(2 * g.exponential(shape))", "split": "g.spawn(count)",
    "standard_cauchy": "nnc.tan(nnc.pi * (g.uniform(shape) - 0.5))", "standard_exponential": "g.exponential(shape)",
    "standard_gamma": "g.gamma(concentration, shape)", "standard_normal": "g.normal(shape)",
    "standard_t": "g.normal(shape) / nnc.sqrt(2 * g.gamma(freedom / 2, shape) / freedom)",
    "t": "g.normal(shape) / nnc.sqrt(2 * g.gamma(freedom / 2, shape) / freedom)",
    "weibull": "g.exponential(shape) ** (1 / a)", "weibull_min": "g.exponential(shape) ** (1 / a)",
}  # fmt: skip
"""Of a generator g."""

ELSEWHERE = {**OF_JAX, **OF_SCIPY, **OF_NUMPY}
"""Names that are looked for in the main name space."""
