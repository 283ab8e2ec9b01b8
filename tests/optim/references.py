"""Minimisers written in NumPy, in float64: functions of (first value, gradients) that give the last value."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from nnc_core import optim

A = np.ndarray[Any, Any]


def sgd(p: A, gradients: A, rate: Any, momentum: float = 0, nesterov: bool = False, decay: float = 0,
        dampening: float = 0) -> A:
    v = np.zeros_like(p)
    for t, g in enumerate(gradients):
        g = g + decay * p
        v = momentum * v + (1 - dampening) * g
        p = p - (rate(t) if callable(rate) else rate) * (g + momentum * v if nesterov else v)
    return p


def adagrad(p: A, gradients: A, rate: float, epsilon: float = 1e-10, first: float = 0) -> A:
    for k in range(len(gradients)):
        p = p - rate * gradients[k] / (np.sqrt(first + (gradients[: k + 1] ** 2).sum(0)) + epsilon)
    return p


def adam(p: A, gradients: A, rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
         decay: float = 0, decoupled: bool = False, amsgrad: bool = False) -> A:
    m, v, top = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        g = g if decoupled else g + decay * p
        p = p * (1 - rate * decay) if decoupled else p
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        top = np.maximum(top, v)
        p = p - rate * (m / (1 - beta1**t)) / (np.sqrt((top if amsgrad else v) / (1 - beta2**t)) + epsilon)
    return p


def adamax(p: A, gradients: A, rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> A:
    m, u = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        m, u = beta1 * m + (1 - beta1) * g, np.maximum(beta2 * u, np.abs(g) + epsilon)
        p = p - rate / (1 - beta1**t) * m / u
    return p


def nadam(p: A, gradients: A, rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8,
          psi: float = 0.004) -> A:
    m, v, product = np.zeros_like(p), np.zeros_like(p), 1.0
    for t, g in enumerate(gradients, 1):
        mu, after = beta1 * (1 - 0.5 * 0.96 ** (t * psi)), beta1 * (1 - 0.5 * 0.96 ** ((t + 1) * psi))
        product *= mu
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        ahead = after * m / (1 - product * after) + (1 - mu) * g / (1 - product)
        p = p - rate * ahead / (np.sqrt(v / (1 - beta2**t)) + epsilon)
    return p


def radam(p: A, gradients: A, rate: float, beta1: float = 0.9, beta2: float = 0.999, epsilon: float = 1e-8) -> A:
    m, v, last = np.zeros_like(p), np.zeros_like(p), 2 / (1 - beta2) - 1
    for t, g in enumerate(gradients, 1):
        m, v = beta1 * m + (1 - beta1) * g, beta2 * v + (1 - beta2) * g * g
        mean, length = m / (1 - beta1**t), last - 2 * t * beta2**t / (1 - beta2**t)
        if length > 5:
            r = np.sqrt((length - 4) * (length - 2) * last / ((last - 4) * (last - 2) * length))
            p = p - rate * mean * r / (np.sqrt(v / (1 - beta2**t)) + epsilon)
        else:
            p = p - rate * mean
    return p


def rmsprop(p: A, gradients: A, rate: float, smoothing: float = 0.99, epsilon: float = 1e-8, momentum: float = 0,
            centred: bool = False, decay: float = 0) -> A:
    v, mean, b = np.zeros_like(p), np.zeros_like(p), np.zeros_like(p)
    for g in gradients:
        g = g + decay * p
        v, mean = smoothing * v + (1 - smoothing) * g * g, smoothing * mean + (1 - smoothing) * g
        q = g / (np.sqrt(v - mean**2 if centred else v) + epsilon)
        b = momentum * b + q
        p = p - rate * b
    return p


def adadelta(p: A, gradients: A, rate: float = 1.0, rho: float = 0.9, epsilon: float = 1e-6) -> A:
    v, u = np.zeros_like(p), np.zeros_like(p)
    for g in gradients:
        v = rho * v + (1 - rho) * g * g
        d = np.sqrt(u + epsilon) / np.sqrt(v + epsilon) * g
        u = rho * u + (1 - rho) * d * d
        p = p - rate * d
    return p


def lamb(p: A, gradients: A, rate: float, decay: float = 0, epsilon: float = 1e-6) -> A:
    m, v = np.zeros_like(p), np.zeros_like(p)
    for t, g in enumerate(gradients, 1):
        m, v = 0.9 * m + 0.1 * g, 0.999 * v + 0.001 * g * g
        u = (m / (1 - 0.9**t)) / (np.sqrt(v / (1 - 0.999**t)) + epsilon) + decay * p
        of_p, of_u = np.linalg.norm(p), np.linalg.norm(u)
        p = p - rate * (of_p / of_u if of_p > 0 and of_u > 0 else 1.0) * u
    return p


def lars(p: A, gradients: A, rate: float, momentum: float = 0.9, decay: float = 0, trust: float = 0.001,
         nesterov: bool = False) -> A:
    v = np.zeros_like(p)
    for g in gradients:
        of_p, of_g = np.linalg.norm(p), np.linalg.norm(g)
        local = trust * of_p / (of_g + decay * of_p) if of_p > 0 and of_g > 0 else 1.0
        u = rate * local * (g + decay * p)
        v = momentum * v + u
        p = p - (u + momentum * v if nesterov else v)
    return p


def lion(p: A, gradients: A, rate: float, beta1: float = 0.9, beta2: float = 0.99, decay: float = 0) -> A:
    m = np.zeros_like(p)
    for g in gradients:
        p = p * (1 - rate * decay) - rate * np.sign(beta1 * m + (1 - beta1) * g)
        m = beta2 * m + (1 - beta2) * g
    return p


def rprop(p: A, gradients: A, rate: float = 0.01, growth: float = 1.2, shrinkage: float = 0.5, low: float = 1e-6,
          high: float = 50.0) -> A:
    size, before = np.full_like(p, rate), np.zeros_like(p)
    for g in gradients:
        sign = np.sign(g * before)
        size = np.clip(size * np.select([sign > 0, sign < 0], [growth, shrinkage], 1.0), low, high)
        before = np.where(sign < 0, 0, g)
        p = p - np.sign(before) * size
    return p


def adafactor(p: A, gradients: A, rate: float = 0.01, decay: float = 0, relative: bool = True) -> A:
    v, row, column = np.zeros_like(p), np.zeros(p.shape[:-1]), np.zeros(p.shape[:-2] + p.shape[-1:])
    for t, g in enumerate(gradients, 1):
        beta, squares = 1 - t**-0.8, g * g + 1e-30
        if p.ndim > 1:
            row = beta * row + (1 - beta) * squares.mean(-1)
            column = beta * column + (1 - beta) * squares.mean(-2)
            v = row[..., :, None] * column[..., None, :] / row.mean(-1)[..., None, None]
        else:
            v = beta * v + (1 - beta) * squares
        u = g / np.sqrt(v)
        u = u / max(1.0, np.sqrt((u * u).mean()))
        step = max(1e-3, np.sqrt((p * p).mean())) * min(rate, t**-0.5) if relative else rate
        p = p * (1 - rate * decay) - step * u
    return p


def asgd(p: A, gradients: A, rate: float, shrink: float = 1e-4, power: float = 0.75) -> A:
    for t, g in enumerate(gradients):
        eta = rate / (1 + shrink * rate * t) ** power
        p = p * (1 - shrink * eta) - eta * g
    return p


Case = tuple[Callable[[Any], optim.Minimiser], Callable[[A, A], A]]
CASES: dict[str, Case] = {
    "sgd": (lambda ps: optim.SGD(ps, 0.1), lambda p, g: sgd(p, g, 0.1)),
    "momentum": (lambda ps: optim.SGD(ps, 0.1, 0.9), lambda p, g: sgd(p, g, 0.1, 0.9)),
    "nesterov": (lambda ps: optim.SGD(ps, 0.1, 0.9, True), lambda p, g: sgd(p, g, 0.1, 0.9, True)),
    "decay": (lambda ps: optim.SGD(ps, 0.1, 0.5, weight_decay=0.2), lambda p, g: sgd(p, g, 0.1, 0.5, decay=0.2)),
    "dampening": (lambda ps: optim.SGD(ps, 0.1, 0.9, dampening=0.3), lambda p, g: sgd(p, g, 0.1, 0.9, dampening=0.3)),
    "scale": (lambda ps: optim.SGD(ps, 0.1, 0.9, scale=0.25), lambda p, g: sgd(p, g / 4, 0.1, 0.9)),
    "scheduled": (lambda ps: optim.SGD(ps, optim.schedules.Exponential(0.1, 0.5), 0.9),
                  lambda p, g: sgd(p, g, lambda t: 0.1 * 0.5**t, 0.9)),
    "adagrad": (lambda ps: optim.Adagrad(ps, 0.1), lambda p, g: adagrad(p, g, 0.1)),
    "adagrad-sum": (lambda ps: optim.Adagrad(ps, 0.1, first_sum=0.5), lambda p, g: adagrad(p, g, 0.1, first=0.5)),
    "adam": (lambda ps: optim.Adam(ps, 0.1), lambda p, g: adam(p, g, 0.1)),
    "adam-betas": (lambda ps: optim.Adam(ps, 0.1, 0.5, 0.7, 1e-3), lambda p, g: adam(p, g, 0.1, 0.5, 0.7, 1e-3)),
    "adam-decay": (lambda ps: optim.Adam(ps, 0.1, weight_decay=0.2), lambda p, g: adam(p, g, 0.1, decay=0.2)),
    "adamw": (lambda ps: optim.AdamW(ps, 0.1, weight_decay=0.2),
              lambda p, g: adam(p, g, 0.1, decay=0.2, decoupled=True)),
    "adamw-amsgrad": (lambda ps: optim.AdamW(ps, 0.1, amsgrad=True),
                      lambda p, g: adam(p, g, 0.1, decay=0.01, decoupled=True, amsgrad=True)),
    "amsgrad": (lambda ps: optim.AMSGrad(ps, 0.1, beta2=0.5), lambda p, g: adam(p, g, 0.1, beta2=0.5, amsgrad=True)),
    "adamax": (lambda ps: optim.Adamax(ps, 0.1), lambda p, g: adamax(p, g, 0.1)),
    "nadam": (lambda ps: optim.NAdam(ps, 0.1), lambda p, g: nadam(p, g, 0.1)),
    "radam": (lambda ps: optim.RAdam(ps, 0.1), lambda p, g: radam(p, g, 0.1)),
    "radam-known": (lambda ps: optim.RAdam(ps, 0.1, beta2=0.9), lambda p, g: radam(p, g, 0.1, beta2=0.9)),
    "rmsprop": (lambda ps: optim.RMSprop(ps, 0.1), lambda p, g: rmsprop(p, g, 0.1)),
    "rmsprop-momentum": (lambda ps: optim.RMSprop(ps, 0.1, 0.9, momentum=0.5, weight_decay=0.1),
                         lambda p, g: rmsprop(p, g, 0.1, 0.9, momentum=0.5, decay=0.1)),
    "rmsprop-centred": (lambda ps: optim.RMSprop(ps, 0.1, centred=True), lambda p, g: rmsprop(p, g, 0.1, centred=True)),
    "adadelta": (lambda ps: optim.Adadelta(ps), adadelta),
    "lamb": (lambda ps: optim.LAMB(ps, 0.1, weight_decay=0.2), lambda p, g: lamb(p, g, 0.1, 0.2)),
    "lars": (lambda ps: optim.LARS(ps, 0.5, weight_decay=0.2), lambda p, g: lars(p, g, 0.5, decay=0.2)),
    "lars-nesterov": (lambda ps: optim.LARS(ps, 0.5, trust=0.1, nesterov=True),
                      lambda p, g: lars(p, g, 0.5, trust=0.1, nesterov=True)),
    "lion": (lambda ps: optim.Lion(ps, 0.1, weight_decay=0.2), lambda p, g: lion(p, g, 0.1, decay=0.2)),
    "rprop": (lambda ps: optim.Rprop(ps, 0.1), lambda p, g: rprop(p, g, 0.1)),
    "adafactor": (lambda ps: optim.Adafactor(ps, 0.1), lambda p, g: adafactor(p, g, 0.1)),
    "adafactor-absolute": (lambda ps: optim.Adafactor(ps, 0.1, relative=False, weight_decay=0.1),
                           lambda p, g: adafactor(p, g, 0.1, 0.1, relative=False)),
    "asgd": (lambda ps: optim.ASGD(ps, 0.1, shrink=0.3), lambda p, g: asgd(p, g, 0.1, 0.3)),
}
"""By name: the minimiser of {name: parameter}, and the same in NumPy."""
