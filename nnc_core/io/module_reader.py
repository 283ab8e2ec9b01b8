"""Modules made again from what a file says of them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from nnc_core.base.config import config
from nnc_core.base.dtype import DType
from nnc_core.base.errors import Error, FileFormatError, StateError
from nnc_core.base.fields import RESTORE, Test, check_fields, is_count, is_list, is_object
from nnc_core.functions.creation import asarray
from nnc_core.io.checkpoint import Array
from nnc_core.io.graph_attributes import decode
from nnc_core.io.module_writer import VERSION
from nnc_core.io.onnx import model_reader
from nnc_core.io.onnx.names import ONNX_MODULE
from nnc_core.nn import Module, Network
from nnc_core.nn.layers.function import public_functions
from nnc_core.nn.networks.topology import Entrance, Node, Ref, Topology
from nnc_core.nn.parameter import Parameter
from nnc_core.nn.registry import initialiser, own_class, registered
from nnc_core.nn.tree import walk
from nnc_core.nn.weights.freezing import chosen
from nnc_core.nn.weights.palettised import PalettisedWeight, replace_parameters
from nnc_core.random.generator import Generator, default_generator
from nnc_core.type import TensorSpec
from nnc_core.values.modes import deferred

_FIELDS: Mapping[str, Test] = {"modules": is_list, "root": is_count, "shared": is_list, "evaluation": is_list,
                              "frozen": is_list, "palettised": is_list}
_TOPOLOGY: Mapping[str, Test] = {"entrances": is_list, "nodes": is_list, "parts": is_object}
_CALL: Mapping[str, Test] = {"args": is_list, "kwargs": is_object}


class ModuleReader:
    """Calls constructors in the order of the description, on the current device."""

    def __init__(self, description: Mapping[str, Any], arrays: Mapping[str, Array]) -> None:
        self._description, self._arrays = description, arrays
        self._modules: list[Module] = []
        self._generators: dict[int, Generator] = {}

    def module(self) -> Module:
        """The module with first weights; the default generator is as it was before."""
        check_fields(self._description, {"version": is_count}, "the description", FileFormatError)
        version = self._description["version"]
        if not 1 <= version <= VERSION:
            raise FileFormatError(f"its version is {version}, this nnc reads up to {VERSION}",
                                  hint="use a later version of nnc" if version else RESTORE)
        check_fields(self._description, _FIELDS, "the description", FileFormatError)
        before = default_generator().state
        try:
            for made in self._description["modules"]:
                self._modules.append(self._made(made))
        finally:
            default_generator().state = before
        root = self._module(self._description["root"])
        for place, first in self._description["shared"]:
            share(root, place, first)
        for weight in map(decode, self._description["palettised"]):
            _palettise(root, *weight)
        for path in self._description["evaluation"]:
            _at(root, path)._training = False
        if self._description["frozen"]:
            for parameter in chosen(_named(root, self._description["frozen"]), ()):
                parameter.frozen = True
        return root

    def _made(self, data: Mapping[str, Any]) -> Module:
        cls = self._class(data)
        if "topology" in data:
            return self._network(cls, data["topology"])
        check_fields(data, _CALL, f"the module {cls.__name__}", FileFormatError)
        args = [self._value(x) for x in data["args"]]
        kwargs = {name: self._value(x) for name, x in data["kwargs"].items()}
        try:
            return _without_weights(lambda: cls(*args, **kwargs))
        except Exception as error:
            raise StateError(f"{cls.__name__} cannot be made with the arguments in the file: {error}",
                             hint="it was saved by another version of the class") from error

    def _class(self, data: Mapping[str, Any]) -> type[Module]:
        known = _own_class(data["class"]) if "class" in data else _registered(data["registered"])
        if not isinstance(known, type) or not issubclass(known, Module):
            raise FileFormatError(f"{data.get('class', data.get('registered'))!r} is no class of modules")
        return known

    def _module(self, number: Any) -> Module:
        if type(number) is not int or not 0 <= number < len(self._modules):
            raise FileFormatError(f"module {number!r} is not described before it is used")
        return self._modules[number]

    # ---- networks
    def _network(self, cls: type[Module], data: Mapping[str, Any]) -> Network:
        if not issubclass(cls, Network):
            raise FileFormatError(f"{cls.__name__} is no network")
        check_fields(data, _TOPOLOGY, f"the network {cls.__name__}", FileFormatError)
        nodes = tuple([Node(_text(name), _text(part), self._value(args), self._value(kwargs), self._value(result),
                            tuple([decode(s) for s in specs]))
                       for name, part, args, kwargs, result, specs in data["nodes"]])
        entrances = tuple([Entrance(_text(name), decode(spec)) for name, spec in data["entrances"]])
        topology = Topology(entrances, self._value(data["inputs"]), nodes, self._value(data["outputs"]))
        return cls.between(topology, {name: self._module(k) for name, k in data["parts"].items()})

    # ---- values
    def _value(self, data: Any) -> Any:
        if not isinstance(data, dict):
            return data
        if len(data) == 1:
            ((kind, content),) = data.items()
            if kind in _READ:
                return _READ[kind](self, content)
            return decode(data)
        return _own_class(data["record"])(**{name: self._value(x) for name, x in data["fields"].items()})

    def _dict(self, pairs: list[Any]) -> dict[Any, Any]:
        return {self._value(k): self._value(v) for k, v in pairs}

    def _generator(self, number: int) -> Generator:
        return self._generators.setdefault(number, Generator(0))

    def _array(self, name: str) -> Array:
        return self._arrays[name]


_READ: Mapping[str, Callable[[ModuleReader, Any], Any]] = {
    "tuple": lambda r, parts: tuple([r._value(x) for x in parts]),
    "list": lambda r, parts: [r._value(x) for x in parts],
    "dict": ModuleReader._dict,
    "module": ModuleReader._module,
    "generator": ModuleReader._generator,
    "ref": lambda r, number: Ref(number),
    "tensor": lambda r, name: asarray(r._array(name)),
    "array": ModuleReader._array,
    "class": lambda r, name: _own_class(name),
    "function": lambda r, name: _function(name),
    "registered": lambda r, name: _registered(name),
    "initialiser": lambda r, name: _initialiser(name),
}


def _without_weights(make: Callable[[], Module]) -> Module:
    """A module whose first weights are not computed: those of the file take their place, if their shapes are these."""
    with deferred(), config.using(implicit_compute="allow"):
        return make()


def _text(x: Any) -> str:
    if not isinstance(x, str):
        raise FileFormatError(f"{x!r} is no name")
    return x


def _own(what: str, name: str, found: Any) -> Any:
    """A class, function or initialiser of nnc's that was looked up by its name in a file."""
    if found is None:
        raise FileFormatError(f"nnc has no {what} {name!r}", hint="use a later version of nnc")
    return found


def _own_class(name: str) -> Any:
    return _own("class", name, own_class(name))


def _function(name: str) -> Any:
    return _own("function", name, public_functions().get(name))


def _registered(name: str) -> Any:
    if name == ONNX_MODULE:
        model_reader()  # which registers it
    found = registered(name)
    if found is None:
        raise StateError(f"nothing is registered as {name!r}",
                         hint="import the module that defines it with @nn.register, then load")
    return found


def _initialiser(name: str) -> Any:
    return _own("initialiser", name, initialiser(name))


# ---- places in a tree of modules
def _at(root: Module, path: str) -> Module:
    for place in walk(root):
        if place.path == path:
            return place.module  # type: ignore[return-value]
    raise FileFormatError(f"{path!r} is no part of what is described")


def _named(root: Module, names: list[str]) -> Any:
    known = root.named_parameters(frozen=None)
    for name in names:
        if name not in known:
            raise FileFormatError(f"{name!r} is no parameter of what is described")
    return {name: known[name] for name in names}


def _palettise(root: Module, path: str, bits: int, block_size: int, spec: TensorSpec, dtype: DType) -> None:
    """Codes in the place of a parameter, unless a constructor put some there."""
    held = _get(*_owner(root, path)) if path else root
    if isinstance(held, PalettisedWeight):
        return
    if not isinstance(held, Parameter):
        raise FileFormatError(f"{path!r} is no parameter of what is described")
    replace_parameters(root, {held: PalettisedWeight(spec.static_shape, bits, block_size, spec.dtype, dtype)})


def share(root: Module, place: str, first: str) -> None:
    """Put what is at the first place at the other too."""
    owner, name = _owner(root, place)
    wanted = root if not first else _get(*_owner(root, first))
    if _get(owner, name) is not wanted:
        _set(owner, name, wanted)


def _owner(root: Module, path: str) -> tuple[Module, str]:
    """The module in which the last name of a path is an attribute, or an item of a tuple."""
    found, rest = root, path
    while True:
        inner = next((m for m in walk(found) if m.depth == 1 and rest.startswith(f"{m.name}.")), None)
        if inner is None:
            return found, rest
        found, rest = inner.module, rest[len(inner.name) + 1 :]  # type: ignore[assignment]


def _get(owner: Module, name: str) -> Any:
    attribute, *items = name.split(".")
    found = getattr(owner, attribute, None)
    for item in items:
        found = found[int(item)] if isinstance(found, tuple) else None
    return found


def _set(owner: Module, name: str, x: Any) -> None:
    attribute, *items = name.split(".")
    try:
        setattr(owner, attribute, _with(getattr(owner, attribute, None), items, x))
    except (Error, TypeError, IndexError, ValueError) as error:
        raise FileFormatError(f"{name!r} of {type(owner).__name__} cannot be shared") from error


def _with(old: Any, items: list[str], x: Any) -> Any:
    if not items:
        return x
    index = int(items[0])
    return (*old[:index], _with(old[index], items[1:], x), *old[index + 1 :])
