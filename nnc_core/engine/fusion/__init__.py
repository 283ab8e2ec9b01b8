"""Fusion: the only place where one command comes to stand for several nodes."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import TYPE_CHECKING

from nnc_core.base.config import config
from nnc_core.device import CODEGEN, REPRODUCIBLE
from nnc_core.engine.fusion.grouping import Grouping
from nnc_core.engine.fusion.offers import accepted_offers
from nnc_core.engine.fusion.templates import match
from nnc_core.engine.fusion.writing import Programs
from nnc_core.engine.groups import NodeGroup
from nnc_core.operator.fused import FUSED
from nnc_core.symbol import Node

if TYPE_CHECKING:
    from nnc_core.engine.decide import Decider

__all__ = ["fuse"]


def fuse(nodes: Sequence[Node], outputs: Iterable[Node], decider: Decider) -> list[NodeGroup]:
    """A group for each command to be, inputs first.

    Devices that compile loop nests have whatever pays written into one, under `config.deterministic` those whose
    compilers round each operation as it stands, but for functions of a library of the driver's; others have the
    programs that their library code has loops for.  On all of them library code that takes more than its own
    operator is offered what is around it, before anything else.
    """
    device = decider.device
    if not config.fusion:
        return match(nodes, outputs, (), (), {})
    programs = Programs(decider)
    offers = accepted_offers(nodes, outputs, decider, programs)
    exact = REPRODUCIBLE in device.spec.features or not config.deterministic
    if CODEGEN in device.spec.features and exact:
        return Grouping(nodes, outputs, decider, programs, offers).groups()
    return match(nodes, outputs, device.all_backends(FUSED.name), decider.refused_programs, offers)
