"""Networks with classifiers in between, which help the first layers to learn."""

from __future__ import annotations

from abc import abstractmethod
from typing import ClassVar

from nnc_core.functions.classification import cross_entropy
from nnc_core.nn import Module
from nnc_core.values.tensor import Tensor


class AuxiliaryNetwork(Module):
    """`forward` gives the logits; `all_logits` those of the auxiliary classifiers as well."""

    auxiliary_weight: ClassVar[float]
    """The weight of each auxiliary classifier's loss."""

    @abstractmethod
    def all_logits(self, x: Tensor) -> tuple[Tensor, ...]:
        """The logits (batch, classes), then those of the auxiliary classifiers, if there are any."""

    def forward(self, x: Tensor) -> Tensor:
        return self.all_logits(x)[0]

    def loss(self, x: Tensor, labels: Tensor) -> Tensor:
        """The cross-entropy of all classifiers, the auxiliary ones weighted."""
        main, *others = [cross_entropy(logits, labels) for logits in self.all_logits(x)]
        for other in others:
            main = main + self.auxiliary_weight * other
        return main
