"""Functional networks: modules called on handles, with any number of inputs and outputs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from nnc_core.base.errors import DTypeError, OperandError, ShapeError, StateError
from nnc_core.nn.construction import Construction
from nnc_core.nn.module import Module
from nnc_core.nn.networks.network_text import network_dot, network_table
from nnc_core.nn.networks.topology import Entrance, Node, Ref, Topology, described, map_tree
from nnc_core.type import Dim, Dims, TensorSpec
from nnc_core.type.watching import watching
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten

Names = str | Sequence[str] | Mapping[str, str]


class NodeInfo(NamedTuple):
    """A node of a network: its name, its module (None for an input), what it takes by name, what it gives."""

    name: str
    module: Module | None
    inputs: tuple[str, ...]
    specs: tuple[TensorSpec, ...]


class Network(Module):
    """The modules between handles, as one module.

        x = nn.Input((28, 28, 1))
        y = nn.Conv2d(1, 8, 3)(x)
        y = nn.Linear(8, 10)(nn.GlobalAvgPool2d()(y)).named("scores")
        net = nn.Network(x, y)

    inputs and outputs are a handle, or a sequence or dict of handles; the network is called with as many tensors, by
    position or by the names of the inputs, and gives its outputs in the same arrangement.  Modules are attributes
    named by their kind and number ("conv2d", "linear_1"), or by `named`; one that is called twice is there once, its
    second node is called "linear@2".  An input may be any handle: the network begins there.

    Raises UnconnectedError if outputs need an input that is not given, or do not need one that is.
    """

    def __init__(self, inputs: Any, outputs: Any) -> None:
        self._set(*described(inputs, outputs, type(self)))

    def _set(self, topology: Topology, parts: Mapping[str, Module]) -> None:
        if type(self).__init__ is Network.__init__:
            self.__dict__["_construction"] = Construction((), {})  # not the handles
        self.topology = topology
        for name, module in parts.items():
            setattr(self, name, module)

    @classmethod
    def between(cls, topology: Topology, parts: Mapping[str, Module]) -> Network:
        """A network of these modules."""
        made = cls.__new__(cls)
        made._set(topology, parts)
        return made

    def part(self, name: str) -> Module:
        """The module of that name."""
        found = self.__dict__.get(name)
        if not isinstance(found, Module):
            raise StateError(f"the network's part {name!r} is {type(found).__name__}, not a module")
        return found

    def topology_parts(self) -> dict[str, Module]:
        """The modules of the nodes by name."""
        return {n.part: self.part(n.part) for n in self.topology.nodes}

    # ---- calls
    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The outputs for these inputs."""
        values = dict(enumerate(self._inputs(args, kwargs)))

        def value(x: Any) -> Any:
            return values[x.number] if isinstance(x, Ref) else x

        for node, done in zip(self.topology.nodes, self.topology.last_uses, strict=True):
            result = self.part(node.part)(*map_tree(value, node.args), **map_tree(value, dict(node.kwargs)))
            leaves, structure = flatten(result)
            if structure != node.structure:
                raise StateError(f"node {node.name!r} gives {structure}, it gave {node.structure} when the network was "
                                 "made", hint="make a new network after changing what its modules give")
            values.update(zip(node.gives, leaves, strict=True))
            for number in done:
                values.pop(number, None)
        return map_tree(value, self.topology.outputs)

    def _inputs(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> list[Tensor]:
        """The tensors in the order of the inputs, checked."""
        names = [e.name for e in self.topology.entrances]
        given = self._by_name(args, kwargs, names)
        if set(given) != set(names):
            missing, strange = [n for n in names if n not in given], [n for n in given if n not in names]
            said = [f"without {', '.join(missing)}"] * bool(missing) + [f"with {', '.join(strange)}"] * bool(strange)
            raise OperandError(f"the network is called {' and '.join(said)}", operator=type(self).__name__,
                               hint=f"its inputs are {', '.join(names)}")
        sizes: dict[str, Any] = {}
        for entrance in self.topology.entrances:
            _check_input(entrance, given[entrance.name], sizes)
        return [given[name] for name in names]

    def _by_name(self, args: tuple[Any, ...], kwargs: Mapping[str, Any], names: Sequence[str]) -> dict[str, Any]:
        tree, only = self.topology.inputs, args[0] if len(args) == 1 and not kwargs else None
        if isinstance(only, dict):
            arranged = isinstance(tree, dict) and only.keys() == tree.keys()
            args, kwargs = (tuple([only[key] for key in tree]), {}) if arranged else ((), only)
        elif isinstance(only, (list, tuple)):
            args = tuple(only)
        if len(args) > len(names):
            raise OperandError(f"the network takes {len(names)} inputs, not {len(args)}", operator=type(self).__name__,
                               hint=f"its inputs are {', '.join(names)}")
        return dict(zip(names, args, strict=False)) | dict(kwargs)

    # ---- what is inside
    @property
    def input_shapes(self) -> dict[str, Dims]:
        """The shapes of the inputs by name."""
        return {e.name: e.spec.shape for e in self.topology.entrances}

    @property
    def input_shape(self) -> Dims:
        """The shape of the only input."""
        if len(self.topology.entrances) != 1:
            raise StateError(f"the network has {len(self.topology.entrances)} inputs", hint="network.input_shapes")
        return self.topology.entrances[0].spec.shape

    @property
    def roots(self) -> list[NodeInfo]:
        """The inputs."""
        return [self.get_node(e.name) for e in self.topology.entrances]

    @property
    def nodes(self) -> list[NodeInfo]:
        """Inputs and modules called, in the order in which they run."""
        return self.roots + [self._info(n) for n in self.topology.nodes]

    @property
    def output_names(self) -> list[str]:
        """The names of the outputs."""
        return [self.topology.name_of(x.number) for x in flatten(self.topology.outputs, sort=False)[0]]

    @property
    def output_shapes(self) -> dict[str, Dims]:
        """The shapes of the outputs by name."""
        return {name: self.topology.tensors[self.topology.number_of(name)][1].shape for name in self.output_names}

    def get_node(self, name: str) -> NodeInfo:
        """The node of that name."""
        for e in self.topology.entrances:
            if e.name == name:
                return NodeInfo(name, None, (), (e.spec,))
        for n in self.topology.nodes:
            if n.name == name:
                return self._info(n)
        known = [e.name for e in self.topology.entrances] + [n.name for n in self.topology.nodes]
        raise OperandError(f"the network has no node {name!r}", hint=f"there are {', '.join(known)}")

    def _info(self, node: Node) -> NodeInfo:
        return NodeInfo(node.name, self.part(node.part), tuple([self.topology.name_of(n) for n in node.takes]),
                        node.specs)

    def subnetwork(self, outputs: Names, inputs: Names | None = None) -> Network:
        """The part that computes these nodes, given by name: it shares the modules, and so the weights.

        `outputs` is a name, or a sequence or dict of names, and what is called gives tensors arranged so; a node with
        several results is named with the number, "lstm:0".  `inputs` may be any nodes; without them they are those
        inputs of the network that the outputs need.
        """
        wanted = self._refs(outputs)
        topology = self.topology
        if inputs is None:
            needed = _needed(topology, wanted)
            first: Any = tuple([Ref(i) for i in range(len(topology.entrances)) if i in needed])
            first = first[0] if len(first) == 1 else first
        else:
            first = self._refs(inputs)
        part = topology.between(first, wanted)
        return Network.between(part, {n.part: self.part(n.part) for n in part.nodes})

    def _refs(self, names: Names) -> Any:
        arranged = names if isinstance(names, (str, dict)) else tuple(names)
        return map_tree(lambda name: Ref(self.topology.number_of(name)), arranged)

    # ---- text
    def __str__(self) -> str:
        """The nodes as a table."""
        return network_table(self.nodes, self.output_names)

    def summary(self, *inputs: Any) -> str:
        """A table of modules, their parameters and what they give; for the network's own inputs if none are given."""
        own = [e.spec for e in self.topology.entrances]
        return super().summary(*(inputs or own))

    def to_dot(self) -> str:
        """A picture in Graphviz's language: nodes with what they give."""
        return network_dot(self.nodes, self.output_names)


def _needed(topology: Topology, wanted: Any) -> set[int]:
    found = {x.number for x in flatten(wanted)[0]}
    for node in reversed(topology.nodes):
        if found & set(node.gives):
            found |= set(node.takes)
    return found


def _check_input(entrance: Entrance, x: Any, sizes: dict[str, Any]) -> None:
    if not isinstance(x, Tensor):
        raise OperandError(f"input {entrance.name!r} is {type(x).__name__}, not a tensor", hint="nnc.asarray")
    spec = entrance.spec
    fits = x.ndim == len(spec.shape) and all(_fits(w, d, sizes) for w, d in zip(spec.shape, x.shape, strict=True))
    if not fits:
        known = "".join(f", with {name} = {size}" for name, size in sizes.items())
        raise ShapeError(f"input {entrance.name!r} is {x.spec}, expected {spec}{known}", operator="Network")
    if x.dtype != spec.dtype:
        raise DTypeError(f"input {entrance.name!r} is {x.spec}, expected {spec}", operator="Network",
                         hint=f"cast it with astype, or make it with nn.Input(..., dtype={str(x.dtype)!r})")


def _fits(wanted: Any, found: Any, sizes: dict[str, Any]) -> bool:
    """Tell whether a size is the wanted one; those with a name are noted, and agree wherever they stand."""
    if isinstance(found, Dim) and watching.get() is None:
        return True  # nobody knows
    if isinstance(wanted, Dim):
        return bool(sizes.setdefault(str(wanted), found) == found)
    return bool(found == wanted)
