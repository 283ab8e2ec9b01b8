"""Several minimisers as one."""

from __future__ import annotations

from collections.abc import Mapping
from typing import ClassVar

from nnc_core.base.errors import NotSupportedError, OperandError
from nnc_core.optim.minimisers.minimiser import Loss, Minimiser
from nnc_core.optim.settings import Settings
from nnc_core.values.cell import Cell
from nnc_core.values.tensor import Tensor


class Combined(Minimiser):
    """Each part of the parameters by a minimiser of its own: `Combined(SGD(some, 0.1), AdamW(others))`.

    `update` takes the gradients of all; settings are those of the parts, which have a clipping each.  The state of
    part i is called "i.step" and so on.  (Settings alone may differ in `Group`s of one minimiser.)
    """

    settings: ClassVar[Settings] = {}

    def __init__(self, *minimisers: Minimiser) -> None:
        self.minimisers = minimisers
        self.parameters = {name: p for m in minimisers for name, p in m.parameters.items()}
        count = sum(len(m.parameters) for m in minimisers)
        if len(self.parameters) < count or len(set(self.parameters.values())) < count:
            raise OperandError("a parameter, or a name, belongs to two of the minimisers", operator="Combined",
                               hint="give each other names of network.named_parameters()")
        if not minimisers or any(getattr(m, "needs_loss", False) for m in minimisers):
            raise NotSupportedError("minimisers that evaluate the function take all its weights, or there is none",
                                    operator="Combined", hint="combine those that gradients are enough for")
        self.step = minimisers[0].step
        self.groups, self.slots = (), {}

    def update(self, gradients: Mapping[str, Tensor], loss: Loss | None = None) -> None:
        """One update of every part."""
        self._check(gradients)
        for m in self.minimisers:
            m.update({name: gradients[name] for name in m.active()})

    def cells(self) -> dict[str, Cell]:
        """The state of the parts, by their numbers."""
        return {f"{i}.{name}": cell for i, m in enumerate(self.minimisers) for name, cell in m.cells().items()}

    def numbers(self) -> dict[str, float]:
        return {f"{i}.{name}": x for i, m in enumerate(self.minimisers) for name, x in m.numbers().items()}

    def take_numbers(self, saved: Mapping[str, float]) -> None:
        for i, m in enumerate(self.minimisers):
            mark = f"{i}."
            m.take_numbers({name.removeprefix(mark): x for name, x in saved.items() if name.startswith(mark)})

    def configuration(self) -> dict[str, str]:
        parts = {f"{i}.{name}": x for i, m in enumerate(self.minimisers) for name, x in m.configuration().items()}
        return {"class": "Combined", **parts}

    def __repr__(self) -> str:
        return f"Combined({', '.join(map(repr, self.minimisers))})"
