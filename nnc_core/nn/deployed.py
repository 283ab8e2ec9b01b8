"""Networks for inference alone: their weights are constants of compiled code, packed once."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from typing import Any, NamedTuple

import numpy as np

from nnc_core.base.cache import LRU
from nnc_core.base.config import config
from nnc_core.base.errors import OperandError
from nnc_core.functions.casts import astype
from nnc_core.functions.creation import asarray
from nnc_core.nn.inference import stack_beneath
from nnc_core.nn.module import Module
from nnc_core.recording.export import export
from nnc_core.symbols.symbolic import var_arr
from nnc_core.values.arguments import located
from nnc_core.values.modes import deferred, evaluating, no_grad, tracing
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure, flatten, unflatten
from nnc_core.values.value import Value

KEPT = 16
"""Compiled calls of one network, by the shapes of their inputs."""


class Compiled(NamedTuple):
    """A network compiled for inputs of some shapes."""

    run: Any
    """A compiled graph, in stages where sizes depend on data."""
    outputs: Structure


class Deployed:
    """A network called for inference: see `deploy`."""

    def __init__(self, network: Module) -> None:
        self.network = network
        self._weights = _values(network)
        self._known: LRU[Hashable, Compiled] = LRU(KEPT)

    def __repr__(self) -> str:
        return f"<{type(self.network).__name__} deployed, compiled {len(self._known)} times>"

    @located
    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The network's result, by compiled code; tensors, NumPy's arrays and trees of these come in."""
        compiled, given = self._compiled(args, kwargs)
        found = compiled.run(**{f"x{i}": x for i, x in enumerate(given) if isinstance(x, Tensor)})
        return unflatten(compiled.outputs, iter(found.values()))

    def explain(self, *args: Any, **kwargs: Any) -> str:
        """The commands of such a call with their code, memory and lines, as text."""
        return str(self._compiled(args, kwargs)[0].run.explain())

    def _compiled(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[Compiled, list[Any]]:
        """The code for such a call, and what it is called with."""
        leaves, structure = flatten((args, kwargs), sort=False)
        given = [asarray(x) if isinstance(x, np.ndarray) else x for x in leaves]
        kinds = tuple([(x.spec, x.device.id) if isinstance(x, Tensor) else (type(x), x) for x in given])
        key = (config.of_traces, structure, kinds)
        wrong = next((x for x in given if not isinstance(x, (Tensor, Hashable))), None)
        if wrong is not None:
            raise OperandError(f"{type(wrong).__name__} {wrong!r} cannot be told from others", hint="give tensors, and "
                               "settings that are hashable")
        return self._known.find(key, lambda: self._compile(structure, given)), given

    def _compile(self, structure: Structure, given: Sequence[Any]) -> Compiled:
        symbols = {i: var_arr(f"x{i}", x.spec.shape, x.spec.dtype, x.device.id)
                   for i, x in enumerate(given) if isinstance(x, Tensor)}
        args, kwargs = unflatten(structure, iter([symbols.get(i, x) for i, x in enumerate(given)]))
        with tracing(None), evaluating():
            self._check_unchanged()
            with no_grad(), deferred():
                leaves, outputs = flatten(self.network(*args, **kwargs))
                recorded = {f"y{i}": _recorded(y) for i, y in enumerate(leaves)}
            graph = export({f"x{i}": x for i, x in symbols.items()}, recorded, capture="constant", on_unused="ignore",
                           name=type(self.network).__name__)
        return Compiled(graph.compile(stack_beneath(self.network).device.spec.id), outputs)

    def _check_unchanged(self) -> None:
        """Code for other shapes would have other weights."""
        now = _values(self.network)
        written = next((name for name in now if now[name] is not self._weights.get(name)), None)
        if written is not None:
            raise OperandError(f"{written!r} was written since the network was deployed, and these shapes come for the"
                               " first time", hint="nn.deploy(network) again")


def _recorded(result: Any) -> Tensor:
    """A result with a history: what is a weight, or an input, is copied."""
    if not isinstance(result, Tensor):
        raise OperandError(f"the network gives {result!r} among its results", hint="give tensors alone")
    return astype(result, result.dtype, copy=True)


def _values(network: Module) -> dict[str, Value]:
    """The values of parameters and buffers now; while somebody holds them, whatever writes puts other arrays there."""
    with no_grad():
        return {name: cell.read()._value for name, cell in network.cells().items()}


def deploy(network: Module) -> Deployed:
    """The network for inference alone: called like the network, and as fast as its weights' being constants allows.

    It gives what the network gives in evaluation with the weights that it has now.  They are constants of the compiled
    code, packed once for the device's kernels, and what hangs on them alone is computed once; `nnc.jit` of a network
    does both at each call, since weights may change.  Those that are written later are not seen, and inputs
    of new shapes refused: `deploy` again then.
    Code is made for each combination of shapes, and the last 16 are kept; each holds weights of its own.
    """
    if not isinstance(network, Module):
        raise OperandError(f"{type(network).__name__} is no module", hint="give an nn.Module; nnc.jit is for functions")
    return Deployed(network)
