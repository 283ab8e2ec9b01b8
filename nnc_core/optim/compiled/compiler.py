"""The neural compiler: a network and what is to be done with it as one static graph.

`compile_training` has everything in it: forward, loss, regularisation, backward, clipping, gradient method, learning
rate, momentum and update.  Weights, running statistics, random keys, the number of the step and all that the minimiser
keeps are inputs and outputs in pairs, updated in place.  `compile_gradients` ends with the gradients, `compile_model`
with the prediction.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.algodiff.gradients import value_and_grad
from nnc_core.base.errors import ShapeError
from nnc_core.functions.creation import zeros
from nnc_core.graph import SymbolicGraph
from nnc_core.optim.compiled.relabel import relabelled
from nnc_core.optim.minimisers.minimiser import Minimiser
from nnc_core.optim.owl.loss import Loss
from nnc_core.optim.owl.params import Params
from nnc_core.optim.runs.objective import Objective, TrainableNetwork, loss_of, regularised
from nnc_core.optim.runs.rows import call, uploaded
from nnc_core.optim.runs.training import make_descent
from nnc_core.random.generator import default_generator
from nnc_core.recording.compiled import CompiledGraph
from nnc_core.tracing.compilation import Compilation
from nnc_core.tracing.jit import Jitted, jit
from nnc_core.type import TensorSpec, is_static
from nnc_core.values.arguments import constructor, located
from nnc_core.values.cell import Cell
from nnc_core.values.modes import evaluating, no_grad
from nnc_core.values.state import HostArray, save_state
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import Structure, flatten, leaf_names, tree_map

_RANDOM = "random"


class NetworkGraph:
    """A use of a network as one static graph, compiled for inputs of some shapes; it is called like a function.

    Should what it was made from change (an attribute of the network, a setting of the minimiser), then the next call,
    and what is asked of it, are of a graph made anew; inputs of other shapes are compiled for besides.
    """

    @constructor
    def __init__(self, step: Jitted, arguments: Mapping[str, Any], results: Callable[[Structure], list[str]],
                 cells: Callable[[], dict[str, Cell]]) -> None:
        """`results` names what the step gives, `cells` gives what it may read and write by name."""
        self._step, self._results, self._cells = step, results, cells
        self._arguments = {name: _specimen(x, self._device) for name, x in arguments.items()}
        self._named: tuple[Compilation, SymbolicGraph] | None = None
        self._found()

    def __call__(self, *arguments: Any) -> Any:
        """One call, with tensors or host arrays."""
        return self._step(*[uploaded(x, self._device) for x in arguments])

    @property
    def _device(self) -> Any:
        return next((cell.device for name, cell in self._cells().items() if name != _RANDOM), None)

    def _found(self) -> Compilation:
        return self._step.compiled_for(tuple(self._arguments.values()), {})

    @property
    def graph(self) -> SymbolicGraph:
        """The graph as it was written, for printing, pictures, files and other devices.

        Inputs have the names of the arguments and of the cells ("network.0.weight", "minimiser.step"); the next values
        of cells are outputs "new.network.0.weight", each in an iopair.  A tensor that the code reads from outside is a
        constant of it.
        """
        found = self._found()
        if self._named is None or self._named[0] is not found:
            self._named = found, self._relabelled(found)
        return self._named[1]

    @property
    def run(self) -> CompiledGraph:
        """The compiled graph: optimised, planned, bound to the device; its names are not those of `graph`."""
        return self._found().run

    @property
    def iopairs(self) -> tuple[tuple[str, str], ...]:
        """(output, input) of what is carried from call to call."""
        return self.graph.iopairs

    @property
    def memory_plan(self) -> Any:
        """Peak, bound and timeline of the memory of one call."""
        return self.run.memory_plan

    def explain(self) -> str:
        """Each command with its backend, as text."""
        return self.run.explain()

    def state(self) -> dict[str, HostArray]:
        """The values of the inputs that are cells: with a file of the graph, all that is needed to go on elsewhere."""
        names = self._cell_names(self._found())
        return save_state({names[k]: cell for k, cell in self._found().traced.cells})

    def _cell_names(self, found: Compilation) -> dict[str, str]:
        """Each cell has the name by which its owner knows it."""
        known = {cell: name for name, cell in reversed(self._cells().items())}
        names: dict[str, str] = {}
        for k, cell in found.traced.cells:
            name = known.get(cell, f"other.{cell.name or k}")
            names[k] = name if name not in names.values() else f"{name}.{k}"
        return names

    def _relabelled(self, found: Compilation) -> SymbolicGraph:
        traced = found.traced
        cells = self._cell_names(found)
        labels = [label for name, x in self._arguments.items() for label in leaf_names(flatten(x)[1], name)]
        inputs = {f"arg{i}": label for i, label in enumerate(labels)} | cells
        outputs = dict(zip(traced.outputs, self._results(traced.structure), strict=True))
        owner = {cell: k for k, cell in traced.cells}
        outputs |= {k: f"new.{cells[owner[cell]]}" for k, cell in traced.writes}
        constants = {k: t._value for k, t in traced.outside}
        return relabelled(traced.graph, traced.stack, inputs, outputs, constants)

    def __str__(self) -> str:
        return str(self.graph)

    def __repr__(self) -> str:
        nodes, _ = self.graph.complexity
        return f"<{self.graph.name}: {nodes} nodes, {len(self.iopairs)} iopairs>"


class TrainingGraph(NetworkGraph):
    """The training step of a network: `step(x, y)` trains on a batch and gives its loss before."""

    @constructor
    def __init__(self, network: TrainableNetwork, minimiser: Minimiser, objective: Objective, x: Any, y: Any) -> None:
        self.network, self.minimiser = network, minimiser
        descend = make_descent(objective, minimiser, eager=True)

        def training(x: Any, y: Any) -> Any:
            return descend(x, y)

        super().__init__(jit(training), {"x": x, "y": y}, lambda structure: ["loss"],
                         lambda: _cells_of(network, minimiser))

    def step(self, x: Any, y: Any) -> Tensor:
        """Forward, backward and update by a batch; its loss before."""
        loss: Tensor = self(x, y)
        return loss


@located
def compile_training(network: TrainableNetwork, params: Params, x: Any, y: Any, *,
                     minimiser: Minimiser | None = None) -> TrainingGraph:
    """One training step of a network under a configuration, as `train` makes it, for batches like x and y.

    x and y are arrays or `TensorSpec`s, whose values do not matter, or structures of such; a tuple x is the inputs of
    a network that has several.  `minimiser` is one that has trained the network already; otherwise params makes one.
    """
    made = params.minimiser(network.named_parameters()) if minimiser is None else minimiser
    return TrainingGraph(network, made, regularised(loss_of(network, params.loss), params), x, y)


@located
def compile_gradients(network: TrainableNetwork, loss: Loss, x: Any, y: Any, *, mean: bool = False) -> NetworkGraph:
    """Forward, loss and backward: a call on (x, y) gives (loss, {name: gradient}).

    `loss` is a function of (targets, prediction); with `mean` it is divided by the rows of the batch.
    """
    objective = loss_of(network, loss, mean=mean)

    def gradients(x: Any, y: Any) -> Any:
        weights = {name: p.read() for name, p in network.named_parameters().items()}
        return value_and_grad(lambda weights: objective(weights, x, y))(weights)

    def named(structure: Structure) -> list[str]:
        return ["loss", *[f"gradient.{name}" for name in structure.parts[1].keys]]

    return NetworkGraph(jit(gradients), {"x": x, "y": y}, named, lambda: _cells_of(network))


@located
def compile_model(network: TrainableNetwork, x: Any) -> NetworkGraph:
    """Inference, as in evaluation whatever the network is set to: a call on x gives the prediction.

    The graph has no dropout in it, reads running statistics, and draws no random numbers unless the network itself
    does so in evaluation.
    """

    def inference(x: Any) -> Any:
        with evaluating(), no_grad():
            return call(network, x)

    return NetworkGraph(jit(inference), {"x": x}, lambda structure: list(leaf_names(structure, "prediction")),
                        lambda: _cells_of(network))


def _cells_of(network: TrainableNetwork, minimiser: Minimiser | None = None) -> dict[str, Cell]:
    found = {f"network.{name}": cell for name, cell in network.cells().items()}
    if minimiser is not None:
        found |= {f"network.{name}": cell for name, cell in minimiser.parameters.items() if cell not in found.values()}
        found |= {f"minimiser.{name}": cell for name, cell in minimiser.cells().items()}
    return found | {_RANDOM: default_generator().key}


def _specimen(x: Any, device: Any) -> Any:
    """Tensors of the shapes and dtypes of x, on a device."""
    def leaf(x: Any) -> Any:
        if not isinstance(x, TensorSpec):
            return x
        if not is_static(x.shape):
            raise ShapeError(f"{x} has sizes without a number",
                             hint="compile for one size; others are compiled when they come")
        return zeros(x.shape, dtype=x.dtype, device=device)

    return uploaded(tree_map(leaf, x) if not isinstance(x, list) else x, device)
