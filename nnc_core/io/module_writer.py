"""The description of a module for a file: classes, the arguments of their constructors, and arrays among them."""

from __future__ import annotations

from dataclasses import fields, is_dataclass
from inspect import signature
from math import isfinite
from typing import Any, TypeGuard

import numpy as np

from nnc_core.base.errors import Error, NotSupportedError
from nnc_core.io.checkpoint import Array
from nnc_core.io.graph_attributes import encode
from nnc_core.nn import Module, Network
from nnc_core.nn.construction import Lost
from nnc_core.nn.layers.checks import title
from nnc_core.nn.networks.topology import Node, Ref, Topology
from nnc_core.nn.registry import function_name, initialiser, own_name, registered_name
from nnc_core.nn.tree import entries, join, walk
from nnc_core.nn.weights.palettised import PalettisedWeight
from nnc_core.random.generator import Generator
from nnc_core.type import Dim, TensorSpec, admit_numpy
from nnc_core.values.tensor import Tensor
from nnc_core.values.tree import flatten

VERSION = 1


class ModuleWriter:
    """Describes modules, each once, inner ones before those that take them."""

    def __init__(self) -> None:
        self.modules: list[dict[str, Any]] = []
        self.arrays: dict[str, Array] = {}
        """Those among arguments."""
        self._numbers: dict[int, int] = {}
        self._generators: dict[int, int] = {}
        self._paths: dict[int, str] = {}
        self._alive: list[Any] = []

    def describe(self, root: Module) -> dict[str, Any]:
        self._paths = {id(place.module): place.path for place in walk(root)}
        for module in _inner_first(root):
            number = self.number(module)
        return {"version": VERSION, "modules": self.modules, "root": number, "shared": shared_places(root),
                "evaluation": [p.path for p in walk(root) if not p.module._training],  # type: ignore[attr-defined]
                "frozen": list(root.named_parameters(frozen=True)), "palettised": palettised_places(root)}

    def number(self, module: Module) -> int:
        """The number of a module, which is described now if it was not before."""
        if id(module) not in self._numbers:
            try:
                made = self._network(module) if is_plain_network(module) else self._constructed(module)
            except Error as error:
                error.locate(operator=self._name(module))
                raise
            self.modules.append(made)
            self._numbers[id(module)] = len(self.modules) - 1
            self._alive.append(module)
        return self._numbers[id(module)]

    def _name(self, module: Module) -> str:
        path = self._paths.get(id(module), "")
        return f"{path}: {title(module)}" if path else title(module)

    def _constructed(self, module: Module) -> dict[str, Any]:
        name = class_name(module)
        args, kwargs = module.constructor_arguments()
        positional = _positional(type(module), len(args))
        dropped = {n for n, x in [*zip(positional, args, strict=True), *kwargs.items()]
                   if _is_needless(n, x) and self._refused(x)}
        first = next((i for i, n in enumerate(positional) if n in dropped), len(args))
        named = dict(zip(positional[first:], args[first:], strict=True)) | kwargs
        return {**name,
                "args": [self._value(x, f"argument {n!r}") for n, x in zip(positional[:first], args, strict=False)],
                "kwargs": {n: self._value(x, f"argument {n!r}") for n, x in named.items() if n not in dropped}}

    def _refused(self, x: Any) -> bool:
        try:
            self._value(x, "")
        except NotSupportedError:
            return True
        return False

    # ---- networks
    def _network(self, module: Network) -> dict[str, Any]:
        topology: Topology = module.topology
        return {**class_name(module), "topology": {
            "entrances": [[e.name, encode(e.spec)] for e in topology.entrances],
            "inputs": self._value(topology.inputs, "the inputs"),
            "nodes": [self._node(n) for n in topology.nodes],
            "outputs": self._value(topology.outputs, "the outputs"),
            "parts": {name: self.number(part) for name, part in module.topology_parts().items()}}}

    def _node(self, node: Node) -> list[Any]:
        what = f"an argument of node {node.name!r}"
        return [node.name, node.part, self._value(node.args, what), self._value(dict(node.kwargs), what),
                self._value(node.result, what), [encode(s) for s in node.specs]]

    # ---- values
    def _value(self, x: Any, what: str) -> Any:
        if x is None or isinstance(x, (bool, int, str)):
            return x
        if isinstance(x, float) and not isinstance(x, np.generic) and isfinite(x):
            return x
        if isinstance(x, (tuple, list)) and type(x) in (tuple, list):
            return {type(x).__name__: [self._value(part, what) for part in x]}
        if isinstance(x, dict) and type(x) is dict:
            return {"dict": [[self._value(k, what), self._value(v, what)] for k, v in x.items()]}
        if isinstance(x, Module):
            return {"module": self.number(x)}
        if isinstance(x, Generator):
            self._alive.append(x)
            return {"generator": self._generators.setdefault(id(x), len(self._generators))}
        if isinstance(x, Ref):
            return {"ref": x.number}
        if isinstance(x, (Tensor, np.ndarray)):
            return self._array(x)
        if isinstance(x, (np.generic, np.dtype, float, TensorSpec, Dim)):
            return encode(x)
        return self._named(x, what)

    def _array(self, x: Any) -> dict[str, str]:
        name = f"argument/{len(self.arrays)}"
        self.arrays[name] = x.numpy() if isinstance(x, Tensor) else x
        return {"tensor" if isinstance(x, Tensor) else "array": name}

    def _named(self, x: Any, what: str) -> Any:
        """Describe a value that has a name: functions, initialisers, classes, what is registered, kinds of numbers."""
        own = getattr(x, "__name__", "")
        for kind, name in (("class", own_name(x) if isinstance(x, type) else None), ("function", function_name(x)),
                           ("registered", registered_name(x)), ("initialiser", own if initialiser(own) is x else None)):
            if name is not None:
                return {kind: name}
        record = own_name(type(x))
        if record is not None:
            names = [f.name for f in fields(x)] if is_dataclass(x) else getattr(x, "_fields", ())
            return {"record": record, "fields": {name: self._value(getattr(x, name), what) for name in names}}
        if isinstance(x, type) and issubclass(x, (bool, int, float, complex, np.generic)):
            return encode(np.dtype(admit_numpy(x)))
        shown = repr(x) if isinstance(x, Lost) else getattr(x, "__qualname__", type(x).__name__)
        raise NotSupportedError(f"{what} is {shown}, which a file cannot hold",
                                hint="decorate the function with @nn.register, use one of nnc's, or save_weights only")


def _inner_first(root: Module) -> list[Module]:
    """The modules among arguments of constructors, each after those among its own; the root last."""
    order: list[Module] = []
    seen: set[int] = set()
    waiting: list[tuple[Module, bool]] = [(root, False)]
    while waiting:
        module, is_done = waiting.pop()
        if is_done:
            order.append(module)
        elif id(module) not in seen:
            seen.add(id(module))
            given = module.topology_parts() if is_plain_network(module) else module.constructor_arguments()
            inner = [x for x in flatten(given, sort=False)[0] if isinstance(x, Module)]
            waiting += [(module, True), *[(x, False) for x in reversed(inner)]]
    return order


def class_name(module: Module) -> dict[str, str]:
    """The name by which a file knows the class; NotSupportedError if there is none."""
    cls = type(module)
    own = own_name(cls)
    if own is not None:
        return {"class": own}
    name = registered_name(cls)
    if name is None:
        raise NotSupportedError(f"the class {cls.__qualname__} is not registered, so that no file can name it",
                                hint="decorate it with @nn.register, or save_weights only")
    return {"registered": name}


def is_plain_network(module: Module) -> TypeGuard[Network]:
    """Tell whether the topology describes the module completely."""
    return isinstance(module, Network) and type(module).__init__ is Network.__init__


def _positional(cls: type[Module], count: int) -> list[str]:
    """The names of the first arguments; those of `*layers` have numbers."""
    found: list[str] = []
    for p in list(signature(cls.__init__).parameters.values())[1:]:
        if p.kind is p.VAR_POSITIONAL:
            break
        if p.kind in (p.POSITIONAL_ONLY, p.POSITIONAL_OR_KEYWORD):
            found.append(p.name)
    return [*found, *[str(i) for i in range(count - len(found))]][:count]


def _is_needless(name: str, x: Any) -> bool:
    """Tell whether an argument only made the first weights, which the file has."""
    return (name == "init" or name.endswith("_init")) and (callable(x) or isinstance(x, Lost))


def shared_places(root: Module) -> list[list[str]]:
    """[place, first place] of each module, parameter and buffer that is found once more."""
    first: dict[int, str] = {id(root): ""}
    again: list[list[str]] = []
    for place in walk(root):
        for name, x in entries(place.module):
            path = join(place.path, name)
            known = first.setdefault(id(x), path)
            if known != path:
                again.append([path, known])
    return again


def palettised_places(root: Module) -> list[Any]:
    """[place, bits, block size, spec, dtype of the palette] of each weight that is palettised."""
    return [encode((place.path, x.bits, x.block_size, x.spec, x.palette.spec.dtype)) for place in walk(root)
            if isinstance(x := place.module, PalettisedWeight)]


def plain_attributes(module: Module) -> dict[str, Any]:
    """Settings: attributes that are numbers, texts, None and tuples of these."""
    return {name: x for name, x in vars(module).items() if not name.startswith("_") and _is_plain(x)}


def _is_plain(x: Any) -> bool:
    return x is None or isinstance(x, (bool, int, float, str)) or (isinstance(x, tuple) and all(map(_is_plain, x)))


