"""Gradients with NaN or infinity: what an update makes of them.

"propagate" (the default, which costs nothing) computes with them as with all numbers, so that the weights and the next
loss show them.  "skip" leaves weights, state and the number of the step as they are, with a NonfiniteWarning.
"error" leaves them likewise and raises: ExecutionError, as for all that a function of the host raises within a graph.
Both look at all elements and ask the host only where something is wrong.
"""

from __future__ import annotations

import warnings
from collections.abc import Callable, Mapping
from functools import reduce
from typing import Any

from nnc_core.base.errors import NonfiniteError, NonfiniteWarning
from nnc_core.base.line import users_frame
from nnc_core.callbacks.callback import callback
from nnc_core.control.constructs import cond
from nnc_core.functions.elementwise import logical_and
from nnc_core.functions.predicates import isfinite
from nnc_core.functions.reduction import all as all_
from nnc_core.values.tensor import Tensor

POLICIES = ("propagate", "skip", "error")
NAMED = 3
"""Parameters that a message names."""


def guard_update(policy: str, minimiser: str, gradients: Mapping[str, Tensor], step: Tensor,
                 update: Callable[[Mapping[str, Tensor]], None]) -> None:
    """Update by the gradients if all are finite, else do what the policy says."""
    flags = {name: all_(isfinite(g)) for name, g in gradients.items()}

    def refuse(flags: Mapping[str, Any], step: Any) -> None:
        bad = [name for name, flag in flags.items() if not flag]
        more = f" and {len(bad) - NAMED} more" if len(bad) > NAMED else ""
        text = f"{minimiser}: update {int(step) + 1} got gradients that are not finite, " \
               f"of {', '.join(map(repr, bad[:NAMED]))}{more}; nothing was updated"
        if policy == "error":
            raise NonfiniteError(text, hint='config.check_nan finds the operator; nonfinite="skip" goes on')
        warnings.warn(text, NonfiniteWarning, stacklevel=users_frame())

    def bad(_: Any, flags: Any, step: Any) -> tuple[()]:
        callback(refuse, None, flags, step)
        return ()

    def fine(gradients: Any, *_: Any) -> tuple[()]:
        update(gradients)
        return ()

    # what branches use is handed to them, so that it is computed in them
    cond(reduce(logical_and, flags.values()), fine, bad, dict(gradients), flags, step)
