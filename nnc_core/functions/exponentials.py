"""Exponentials and logarithms besides exp and log."""

from __future__ import annotations

from nnc_core.functions.pointwise import binary, unary

__all__ = [
    "entr", "exp2", "expit", "expm1", "log10", "log1p", "log2", "logaddexp", "logaddexp2", "logit", "xlog1py", "xlogy",
]  # fmt: skip

exp2, expm1, log1p, log2, log10 = unary("exp2"), unary("expm1"), unary("log1p"), unary("log2"), unary("log10")
logaddexp, logaddexp2 = binary("logaddexp"), binary("logaddexp2")
xlogy, xlog1py, entr = binary("xlogy"), binary("xlog1py"), unary("entr")
logit, expit = unary("logit"), unary("sigmoid", "expit")
