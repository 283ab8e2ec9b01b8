"""The graph of a network's nodes: plain data, which names modules and holds none."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any

from nnc_core.base.errors import AttributeValueError, OperandError, UnconnectedError
from nnc_core.nn.module import Module
from nnc_core.nn.networks.handle import Call, Handle
from nnc_core.type import TensorSpec
from nnc_core.values.tree import Structure, flatten, unflatten

UNUSED = -1
"""The number of what a node gives and the network is given instead."""


@dataclass(frozen=True)
class Ref:
    """A tensor of the network, by number: inputs first, then what each node gives."""

    number: int


@dataclass(frozen=True)
class Entrance:
    """An input."""

    name: str
    spec: TensorSpec


@dataclass(frozen=True)
class Node:
    """A module called: `args` and `kwargs` hold a Ref for each tensor, `result` one for each that it gives."""

    name: str
    part: str
    """The attribute of the network that is the module."""
    args: tuple[Any, ...]
    kwargs: Mapping[str, Any]
    result: Any
    specs: tuple[TensorSpec, ...]

    @cached_property
    def takes(self) -> tuple[int, ...]:
        return refs((self.args, dict(self.kwargs)))

    @cached_property
    def gives(self) -> tuple[int, ...]:
        return refs(self.result)

    @cached_property
    def structure(self) -> Structure:
        return flatten(self.result)[1]


@dataclass(frozen=True)
class Topology:
    """Inputs, nodes in an order in which they can run, and which tensors are the outputs."""

    entrances: tuple[Entrance, ...]
    inputs: Any
    """The inputs as they are arranged, a Ref for each."""
    nodes: tuple[Node, ...]
    outputs: Any

    @cached_property
    def last_uses(self) -> tuple[tuple[int, ...], ...]:
        """For each node the tensors that nothing needs after it."""
        wanted, found = set(refs(self.outputs)), []
        for node in reversed(self.nodes):
            found.append(tuple(sorted({*node.takes, *node.gives} - wanted)))
            wanted |= {*node.takes, *node.gives}
        return tuple(reversed(found))

    @cached_property
    def tensors(self) -> Mapping[int, tuple[str, TensorSpec]]:
        """The name and the spec of each tensor: its node, with ":0", ":1" ... where that gives several."""
        found = {i: (e.name, e.spec) for i, e in enumerate(self.entrances)}
        for node in self.nodes:
            several = len(node.gives) > 1
            for i, number in enumerate(node.gives):
                found[number] = f"{node.name}:{i}" if several else node.name, node.specs[i]
        found.pop(UNUSED, None)
        return found

    def name_of(self, number: int) -> str:
        """The name of a tensor."""
        return self.tensors[number][0]

    def number_of(self, name: str) -> int:
        """The tensor of that name."""
        for number, (known, _) in self.tensors.items():
            if known == name:
                return number
        raise OperandError(f"no node {name!r} gives one tensor",
                           hint=f"there are {', '.join(known for known, _ in self.tensors.values())}")

    def between(self, inputs: Any, outputs: Any) -> Topology:
        """The part that computes these outputs from these inputs, trees of Refs; UnconnectedError if it does not."""
        first, wanted = refs(inputs), set(refs(outputs))
        kept: list[Node] = []
        for node in reversed(self.nodes):
            if wanted & set(node.gives) - set(first):
                kept.append(node)
                wanted |= set(node.takes)
        kept.reverse()
        missing = sorted(wanted - {number for node in kept for number in node.gives} - set(first))
        if missing:
            raise UnconnectedError(f"the outputs need {', '.join(repr(self.name_of(n)) for n in missing)}, which is no "
                                   "input", hint="give it as an input of the network")
        check_used([self.name_of(n) for n in first if n not in wanted])
        numbers = numbered(first, [n for node in kept for n in node.gives])
        entrances = tuple([Entrance(self.name_of(n).replace(":", "_"), self.tensors[n][1]) for n in first])

        def ref(x: Any) -> Any:
            return Ref(numbers[x.number]) if isinstance(x, Ref) else x

        def result(x: Any) -> Any:
            return Ref(UNUSED) if x.number in first or x.number == UNUSED else ref(x)

        return Topology(entrances, map_tree(ref, inputs), tuple([
            Node(n.name, n.part, map_tree(ref, n.args), map_tree(ref, dict(n.kwargs)), map_tree(result, n.result),
                 n.specs) for n in kept]), map_tree(ref, outputs))


def refs(tree: Any) -> tuple[int, ...]:
    """The numbers in a tree."""
    return tuple([x.number for x in flatten(tree)[0] if isinstance(x, Ref)])


def map_tree(f: Callable[[Any], Any], tree: Any) -> Any:
    """f of each leaf, the order of dicts kept."""
    leaves, structure = flatten(tree, sort=False)
    return unflatten(structure, iter([f(x) for x in leaves]))


def numbered(first: Sequence[Any], others: Sequence[Any]) -> dict[Any, int]:
    """Numbers from 0 on, each thing once."""
    return {x: i for i, x in enumerate(dict.fromkeys([*first, *others]))}


def check_used(unused: Sequence[str]) -> None:
    if unused:
        raise UnconnectedError(f"no output depends on the input {', '.join(map(repr, unused))}",
                               hint="leave it out, or use it")


# ---- from handles
def described(inputs: Any, outputs: Any, owner: type[Module]) -> tuple[Topology, dict[str, Module]]:
    """The network between handles, and its modules by the names that they will have as attributes of the owner."""
    first, last = _handles(inputs, "inputs"), _handles(outputs, "outputs")
    if len(set(first)) < len(first):
        raise OperandError("a handle is there twice among the inputs of a network")
    calls = _calls_between(first, last)
    check_used([str(h) for h in first if h not in last and all(h not in c.inputs() for c in calls)])
    numbers = numbered(first, [h for c in calls for h in c.outputs])
    inside = set(calls)
    chosen = [None if h.call in inside else h.call.name for h in first]
    names = _Names(chosen + [c.name for c in calls], owner)
    entrances = tuple([Entrance(names.of(name, "input"), h.spec) for name, h in zip(chosen, first, strict=True)])
    parts: dict[str, Module] = {}
    nodes = tuple([_node(call, numbers, set(first), names, parts) for call in calls])

    def ref(x: Any) -> Any:
        return Ref(numbers[x])

    return Topology(entrances, map_tree(ref, inputs), nodes, map_tree(ref, outputs)), parts


def _handles(tree: Any, what: str) -> list[Handle]:
    found = flatten(tree, sort=False)[0]
    strange = [x for x in found if not isinstance(x, Handle)]
    if strange or not found:
        said = f"a {type(strange[0]).__name__}" if strange else "nothing"
        raise OperandError(f"the {what} of a network are handles, not {said}",
                           hint="nn.Input(shape) is one, and so is what a module gives that is called on one")
    return found


def _calls_between(first: Sequence[Handle], last: Sequence[Handle]) -> list[Call]:
    found: dict[int, Call] = {}
    waiting, known = list(last), set(first)
    while waiting:
        handle = waiting.pop()
        if handle in known or handle.call.number in found:
            continue
        if handle.call.module is None:
            raise UnconnectedError(f"the outputs need {handle!r}, which is no input of the network",
                                   hint="add it to the inputs")
        found[handle.call.number] = handle.call
        waiting += handle.call.inputs()
    return [found[number] for number in sorted(found)]


class _Names:
    """Names for nodes, each once: those that users gave, and others from the kinds of modules."""

    def __init__(self, given: Sequence[str | None], owner: type[Module]) -> None:
        self.owner = owner
        chosen = [name for name in given if name is not None]
        for name in chosen:
            if chosen.count(name) > 1:
                raise AttributeValueError(f"two nodes are called {name!r}", hint="handle.named(...) with another name")
            if self._is_reserved(name):
                raise AttributeValueError(f"a node is called {name!r}, as something that every network has",
                                          hint="handle.named(...) with another name")
        self.taken = set(chosen)

    def _is_reserved(self, name: str) -> bool:
        return hasattr(self.owner, name) or name in ("topology", "_construction")

    def of(self, given: str | None, kind: str) -> str:
        """The given name, or the next that is free of a kind: "linear", "linear_1", ..."""
        if given is not None:
            return given
        name = next(n for n in _numbered(kind) if n not in self.taken and not self._is_reserved(n))
        self.taken.add(name)
        return name


def _numbered(kind: str) -> Iterator[str]:
    yield kind
    number = 1
    while True:
        yield f"{kind}_{number}"
        number += 1


def _node(call: Call, numbers: Mapping[Handle, int], given: set[Handle], names: _Names,
          parts: dict[str, Module]) -> Node:
    """A module that is there already keeps its name; its node is the next "@" of it."""
    assert call.module is not None
    known = next((name for name, module in parts.items() if module is call.module), None)
    if known is None:
        name = part = names.of(call.name, kind_of(call.module))
        parts[name] = call.module
    else:
        part = known
        name = call.name or _again(known, names)

    def ref(x: Any) -> Any:
        return Ref(numbers[x]) if isinstance(x, Handle) else x

    def result(x: Any) -> Any:
        return Ref(UNUSED) if x in given else ref(x)

    return Node(name, part, map_tree(ref, call.args), map_tree(ref, call.kwargs), map_tree(result, call.result),
                tuple([h.spec for h in call.outputs]))


def _again(part: str, names: _Names) -> str:
    number = 2
    while f"{part}@{number}" in names.taken:
        number += 1
    names.taken.add(f"{part}@{number}")
    return f"{part}@{number}"


def kind_of(module: Module) -> str:
    """The name for nodes of this module: "conv2d"; a function is called by its own."""
    name = module.__dict__.get("name") if type(module).__name__ == "Function" else None
    return name if isinstance(name, str) else type(module).__name__.lower().lstrip("_") or "module"
