"""Adam and its family: running means of gradients and of their squares, freed of their bias towards zero.

The corrections 1 - beta**step are kept as running means of 1, which loses no digits as the power in float32 does, one
pair for each group.  They go into the learning rate and epsilon, which are single numbers, so that all that is left for
each parameter is two running means and one command.  epsilon is raised to the smallest normal number of the
parameter's dtype.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar, Unpack

from nnc_core.functions.elementwise import abs as abs_
from nnc_core.functions.elementwise import maximum, sqrt, where
from nnc_core.optim.minimisers.adaptive import towards
from nnc_core.optim.minimisers.minimiser import Common, Minimiser, Option, Parameters, Schedule
from nnc_core.optim.minimisers.parameter_update import GroupUpdate, ParameterUpdate, Rate, moved
from nnc_core.optim.settings import FLAG, FRACTION, NON_NEGATIVE, Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Means(Minimiser):
    """Running means `first` of g and `second` of g²; a subclass says what it makes of them."""

    settings: ClassVar[Settings] = {**Minimiser.settings, "beta1": FRACTION, "beta2": FRACTION,
                                    "epsilon": NON_NEGATIVE}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0, **settings: Any) -> None:
        super().__init__(parameters, learning_rate, beta1=beta1, beta2=beta2, epsilon=epsilon,
                         weight_decay=weight_decay, **settings)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("first", "second")

    def shared_for(self, option: Option) -> Mapping[str, float]:
        return {"correction.first": 0.0, "correction.second": 0.0}

    def advance(self, now: GroupUpdate) -> None:
        for name, beta in (("first", now.beta1), ("second", now.beta2)):
            now.shared[f"correction.{name}"] = towards(now.shared[f"correction.{name}"], 1.0, beta)

    def means(self, update: ParameterUpdate) -> tuple[Tensor, Tensor]:
        """The next running means, which become state."""
        update["first"] = m = towards(update["first"], update.g, update.beta1)
        update["second"] = v = towards(update["second"], update.g * update.g, update.beta2)
        return m, v


class Adam(Means):
    """p - rate * m / (sqrt(v) + epsilon), with running means m of g and v of g² freed of their bias (Kingma, Ba 2015).

    With `amsgrad` v is the largest that there has been (Reddi, Kale, Kumar 2018).  `weight_decay` adds that multiple
    of p to its gradient.
    """

    settings: ClassVar[Settings] = {**Means.settings, "amsgrad": FLAG}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = False,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay, amsgrad=amsgrad, **common)

    def slots_for(self, option: Option, p: Cell) -> tuple[str, ...]:
        return ("first", "second", *(["largest"] * option("amsgrad")))

    def rule(self, update: ParameterUpdate) -> Tensor:
        m, v = self.means(update)
        if update.amsgrad:
            update["largest"] = v = maximum(update["largest"], v)
        p = decayed(update) if self.decoupled else update.p
        rate, floor = corrected(update)
        return p - m * rate / (sqrt(v) + floor)


class AdamW(Adam):
    """Adam with decoupled weight decay: p is multiplied by 1 - rate * weight_decay (Loshchilov, Hutter 2019)."""

    decoupled: ClassVar[bool] = True

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.01, amsgrad: bool = False,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay, amsgrad, **common)


class AMSGrad(Adam):
    """Adam with the largest running mean of g² that there has been (Reddi, Kale, Kumar 2018)."""

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0, amsgrad: bool = True,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay, amsgrad, **common)


class Adamax(Means):
    """Adam with the largest |g|, forgotten at the rate beta2, in place of the root of v (Kingma, Ba 2015)."""

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.002, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay, **common)

    def rule(self, update: ParameterUpdate) -> Tensor:
        update["first"] = m = towards(update["first"], update.g, update.beta1)
        update["second"] = u = maximum(update["second"] * update.beta2, abs_(update.g) + update.floor)
        rate = update.fit(update.group_update.learning_rate / update.shared("correction.first"))
        new: Tensor = update.p - m * rate / u
        return new


class NAdam(Means):
    """Adam with Nesterov's momentum, beta1 growing as beta1 * (1 - 0.96**(step * momentum_decay) / 2) (Dozat 2016)."""

    settings: ClassVar[Settings] = {**Means.settings, "momentum_decay": NON_NEGATIVE}

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.002, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0,
                 momentum_decay: float = 0.004, **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay,
                         momentum_decay=momentum_decay, **common)

    def shared_for(self, option: Option) -> Mapping[str, float]:
        return {"correction.product": 1.0, "correction.second": 0.0}

    def advance(self, now: GroupUpdate) -> None:
        now.shared["correction.second"] = towards(now.shared["correction.second"], 1.0, now.beta2)
        now.shared["correction.product"] = now.shared["correction.product"] * self._momentum(now, 1)

    def _momentum(self, now: Any, ahead: int) -> Tensor:
        power = 0.96 ** ((now.step + ahead) * now.momentum_decay)
        momentum: Tensor = now.beta1 * (1 - 0.5 * power)
        return momentum

    def rule(self, update: ParameterUpdate) -> Tensor:
        m, v = self.means(update)
        now, next_ = self._momentum(update, 1), self._momentum(update, 2)
        product, root = update.shared("correction.product"), sqrt(update.shared("correction.second"))
        of_g = update.fit((1 - now) / (1 - product))
        of_m = update.fit(next_ / (1 - product * next_))
        rate, floor = update.fit(update.group_update.learning_rate * root), update.fit_floor(update.floor * root)
        return update.p - (update.g * of_g + m * of_m) * rate / (sqrt(v) + floor)


class RAdam(Means):
    """Adam that descends along m alone until v is known well enough, and then as far as that is (Liu et al. 2020)."""

    def __init__(self, parameters: Parameters, learning_rate: float | Schedule = 0.001, beta1: float = 0.9,
                 beta2: float = 0.999, epsilon: float = 1e-8, weight_decay: float = 0.0,
                 **common: Unpack[Common]) -> None:
        super().__init__(parameters, learning_rate, beta1, beta2, epsilon, weight_decay, **common)

    def rule(self, update: ParameterUpdate) -> Tensor:
        m, v = self.means(update)
        c1, c2, t = update.shared("correction.first"), update.shared("correction.second"), update.step + 1
        last = 2 / (1 - update.beta2) - 1
        length = last - 2 * t * (1 - c2) / c2
        known = length > 5
        held = where(known, length, 6.0)  # a root that is a number in either case
        factor = sqrt((held - 4) * (held - 2) * last / ((last - 4) * (last - 2) * held)) * sqrt(c2)
        rate = update.group_update.learning_rate / c1
        adapted = update.fit(rate * factor) / (sqrt(v) + update.fit_floor(update.floor * sqrt(c2)))
        return moved(update.p, m, where(known, adapted, update.fit(rate)))


def corrected(update: ParameterUpdate) -> tuple[Rate, Rate]:
    """Learning rate and epsilon that make rate * m / (sqrt(v) + epsilon) what it is without bias."""
    found: tuple[Rate, Rate] = update.once_for_dtype("corrected", lambda: _corrected(update))
    return found


def _corrected(update: ParameterUpdate) -> tuple[Rate, Rate]:
    root = sqrt(update.shared("correction.second"))
    rate = update.group_update.learning_rate * root / update.shared("correction.first")
    return update.fit(rate), update.fit_floor(update.floor * root)


def decayed(update: ParameterUpdate) -> Tensor:
    """The parameter after decoupled weight decay."""
    if not update.decay:
        return update.p
    kept: Tensor = update.p * update.fit(1 - update.group_update.learning_rate * update.decay)
    return kept
