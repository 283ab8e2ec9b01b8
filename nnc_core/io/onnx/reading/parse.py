"""From the messages of a file to subgraphs: every operator is looked up, everything missing is said at once."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping
from inspect import Parameter
from types import MappingProxyType
from typing import Any

import onnx

from nnc_core.base.errors import DTypeError, Error, FileFormatError, NotSupportedError, ShapeError
from nnc_core.io.onnx.names import OWN_DOMAIN
from nnc_core.io.onnx.reading import operators as _registers  # noqa: F401 (registers all operators)
from nnc_core.io.onnx.reading.attributes import array_of, dense, value_of
from nnc_core.io.onnx.reading.composed import CALL, composed, defaults, is_plain, plain_function
from nnc_core.io.onnx.reading.constant_nodes import STANDARD, constants_of, is_constant
from nnc_core.io.onnx.reading.derived import with_parts
from nnc_core.io.onnx.reading.graph import OnnxGraph, OnnxNode, ValueInfo, free_names, last_readers, reads_of
from nnc_core.io.onnx.reading.inputs import check
from nnc_core.io.onnx.reading.lanes import Host
from nnc_core.io.onnx.reading.registry import OnnxOperator, find
from nnc_core.io.onnx.reading.run import PYTHON_ERRORS
from nnc_core.io.onnx.reading.types import declared

Attributes = Mapping[str, onnx.AttributeProto]
Missing = Counter[str]
NOTHING: Mapping[str, Host] = MappingProxyType({})


class Parser:
    """Parses the graphs of one model: knows its versions and functions, and collects what nnc does not have."""

    def __init__(self, model: onnx.ModelProto, folder: str = "") -> None:
        self.folder = folder
        self.versions = _versions(model.opset_import)
        _check_version(self.versions.get("", 1))
        self.functions = {(f.domain, f.name, getattr(f, "overload", "")): f for f in model.functions}
        self.missing: Missing = Counter()
        self._within: tuple[tuple[str, str, str], ...] = ()  # the functions that are being written out

    def graph(self, graph: onnx.GraphProto, held: Mapping[str, Host]) -> OnnxGraph:
        """The graph parsed, `held` in place of initialisers that are empty in the message.  Raises FileFormatError,
        and `check` afterwards what is missing."""
        try:
            return self._whole(graph, held)
        except Error:
            raise
        except (*PYTHON_ERRORS, RecursionError) as error:  # what the package onnx meets in damaged data
            raise FileFormatError(f"the model is damaged: {type(error).__name__}: {error}") from error

    def _whole(self, graph: onnx.GraphProto, held: Mapping[str, Host]) -> OnnxGraph:
        initialisers = self._initialisers(graph, held)
        steps = self._steps(graph.node, self.versions, {})
        made = self._made(graph, initialisers, steps)
        if made.free and not self.missing:
            reader = next((s.where for s in steps if not reads_of(s).keys().isdisjoint(made.free)), "an output")
            raise FileFormatError(f"nothing in the model makes {min(made.free)!r}, which {reader} reads")
        return made

    def check(self) -> None:
        """Raise NotSupportedError that names every operator that is missing, with how often it occurs."""
        if self.missing:
            listed = "\n  ".join(f"{what} ({count} times)" if count > 1 else what
                                 for what, count in self.missing.items())
            raise NotSupportedError(f"{len(self.missing)} operators of this model are not there:\n  {listed}",
                                    hint="export the model with other operators, or as functions of the model")

    def _initialisers(self, graph: onnx.GraphProto, held: Mapping[str, Host] = NOTHING) -> dict[str, Host]:
        tensors = [*((x.name, x) for x in graph.initializer), *constants_of(graph.node)]
        found = {name: held[name] if name in held else array_of(x, self.folder) for name, x in tensors}
        found |= {x.values.name: dense(x) for x in graph.sparse_initializer}
        if "" in found:
            raise FileFormatError(f"an initialiser of {graph.name!r} has no name")
        return found

    def _steps(self, nodes: Iterable[onnx.NodeProto], versions: Mapping[str, int],
               given: Attributes) -> tuple[OnnxNode, ...]:
        found = (self._step(node, versions, given) for node in nodes if not is_constant(node))
        return with_parts(step for step in found if step is not None)

    def _step(self, node: onnx.NodeProto, versions: Mapping[str, int], given: Attributes) -> OnnxNode | None:
        domain = "" if node.domain in STANDARD else node.domain
        where = f"{node.op_type} node {(node.name or ', '.join(node.output))!r}"
        attributes = dict(_attribute(a, given) for a in node.attribute
                          if not a.ref_attr_name or a.ref_attr_name in given)
        function = self.functions.get((node.domain, node.op_type, getattr(node, "overload", "")))
        known = domain == OWN_DOMAIN and find(domain, node.op_type, versions.get(domain, 1)) is not None
        if function is not None and not known:
            return self._call(node, function, attributes, where)
        version = versions.get(domain)
        if version is None:
            raise FileFormatError(f"{where} is of the domain {domain or 'ai.onnx'!r}, of which the model imports no "
                                  "version")
        operator = find(domain, node.op_type, version)
        if operator is None:
            schema = _schema(node.op_type, domain, version)
            if schema is not None and is_plain(schema):
                return self._call(node, plain_function(schema, version), defaults(schema) | attributes, where)
            operator = None if schema is None else composed(schema, version, self.body)
        if operator is None:
            self.missing[f"{domain + '.' if domain else ''}{node.op_type}, version {version}, first in {where}"] += 1
            return None
        parsed = self._parsed(attributes, operator, versions, given, where)
        _check_inputs(operator, node, where)
        return OnnxNode(operator, version, tuple(node.input), tuple(node.output), parsed, where)

    def _parsed(self, attributes: Attributes, operator: OnnxOperator, versions: Mapping[str, int],
                given: Attributes, where: str) -> dict[str, Any]:
        """The attributes as keyword arguments of the operator's function."""
        values: dict[str, Any] = {}
        for name, attribute in attributes.items():
            if name not in operator.attributes and "attributes" not in operator.attributes:
                raise FileFormatError(f"{where}: {operator.name} has no attribute {name!r} since version "
                                      f"{operator.since}; it has {', '.join(operator.attributes) or 'none'}")
            value = value_of(attribute)
            values[name] = self._inner(value, versions, given) if isinstance(value, onnx.GraphProto) else value
        absent = [k for k, v in operator.attributes.items() if v is Parameter.empty and k not in values]
        if absent:
            raise FileFormatError(f"{where}: {operator.name} needs the attribute {absent[0]!r}")
        return values if "attributes" not in operator.attributes else {"attributes": attributes}

    def _inner(self, graph: onnx.GraphProto, versions: Mapping[str, int], given: Attributes) -> OnnxGraph:
        return self._made(graph, self._initialisers(graph), self._steps(graph.node, versions, given))

    def _made(self, graph: onnx.GraphProto, initialisers: Mapping[str, Host],
              steps: tuple[OnnxNode, ...]) -> OnnxGraph:
        between = {x.name: x.dtype for x in map(declared, graph.value_info) if x.dtype is not None}
        return _checked(graph.name or "graph", tuple(map(declared, graph.input)), tuple(map(declared, graph.output)),
                        initialisers, steps, between)

    # ---- functions
    def _call(self, node: onnx.NodeProto, function: onnx.FunctionProto, given: Attributes, where: str) -> OnnxNode:
        """A call of a function of the model: its body with the node's attributes in it."""
        key = (function.domain, function.name, getattr(function, "overload", ""))
        if key in self._within:
            raise FileFormatError(f"{where}: the function {function.name!r} calls itself")
        self._within += (key,)
        defaults = {a.name: a for a in function.attribute_proto}
        body = self.body(function, defaults | dict(given))
        self._within = self._within[:-1]
        return OnnxNode(CALL, 1, tuple(node.input), tuple(node.output), {"body": body}, where)

    def body(self, function: onnx.FunctionProto, given: Attributes) -> OnnxGraph:
        """The body of a function for these attributes."""
        steps = self._steps(function.node, self.versions | _versions(function.opset_import), given)
        names = [tuple(ValueInfo(name, None, None, "") for name in side) for side in (function.input, function.output)]
        constants = {name: array_of(x) for name, x in constants_of(function.node)}
        return _checked(function.name, names[0], names[1], constants, steps, {})


def _schema(name: str, domain: str, version: int) -> Any:
    """The schema of an operator that ONNX itself defines by others, for those that nnc has none of its own for."""
    if not onnx.defs.has(name, version, domain):
        return None
    schema: Any = onnx.defs.get_schema(name, version, domain)
    return schema if schema.has_function or schema.has_context_dependent_function else None


def _checked(name: str, inputs: tuple[ValueInfo, ...], outputs: tuple[ValueInfo, ...],
             initialisers: Mapping[str, Host], steps: tuple[OnnxNode, ...], dtypes: Mapping[str, Any]) -> OnnxGraph:
    wanted = tuple(x.name for x in outputs)
    _check_names(name, inputs, initialisers, steps)
    _check_defaults(inputs, initialisers)
    return OnnxGraph(name, inputs, outputs, initialisers, steps,
                     last_readers(steps, {*wanted, *initialisers}), free_names(inputs, initialisers, steps, wanted),
                     dtypes)


def _check_names(name: str, inputs: tuple[ValueInfo, ...], initialisers: Mapping[str, Host],
                 steps: tuple[OnnxNode, ...]) -> None:
    """Raise FileFormatError for a name that is given twice, or a step that reads what only comes later."""
    known = Counter(x.name for x in inputs) | Counter(initialisers.keys())
    if "" in known:
        raise FileFormatError(f"an input of the graph {name!r} has no name")
    made = Counter(output for step in steps for output in step.outputs if output)
    twice = next((x for x, n in (known + made).items() if n > 1), None)
    if twice is not None:
        raise FileFormatError(f"two values of the graph {name!r} are called {twice!r}")
    later = set(made)
    for step in steps:
        wrong = next((x for x in step.inputs if x in later), None)
        if wrong is not None:
            raise FileFormatError(f"{step.where} reads {wrong!r}, which is made only by it or after it",
                                  hint="the nodes of a graph must be in the order in which they run, without circles")
        later -= set(step.outputs)


def _check_defaults(inputs: tuple[ValueInfo, ...], initialisers: Mapping[str, Host]) -> None:
    """Raise FileFormatError for an initialiser that is not what the input of its name is declared to be."""
    for info in inputs:
        array = initialisers.get(info.name)
        if array is None:
            continue
        try:
            check(info, array.dtype, array.shape)
        except (DTypeError, ShapeError) as error:
            raise FileFormatError(f"the initialiser {info.name!r} contradicts its declaration: {error.message}"
                                  ) from error


def _check_inputs(operator: OnnxOperator, node: onnx.NodeProto, where: str) -> None:
    given = sum(1 for x in node.input if x)
    if given < operator.needed or any(not x for x in node.input[:operator.needed]):
        raise FileFormatError(f"{where}: {operator.name} needs {operator.needed} inputs, this has {given}")
    if operator.variadic is None and len(node.input) > len(operator.lanes):
        raise FileFormatError(f"{where}: {operator.name} takes {len(operator.lanes)} inputs since version "
                              f"{operator.since}, this has {len(node.input)}")


def _attribute(attribute: onnx.AttributeProto, given: Attributes) -> tuple[str, onnx.AttributeProto]:
    """An attribute under its name; one that refers to an attribute of the function around it is that one."""
    return attribute.name, given[attribute.ref_attr_name] if attribute.ref_attr_name else attribute


def _check_version(version: int) -> None:
    newest = onnx.defs.onnx_opset_version()
    if not 1 <= version <= newest:
        raise FileFormatError(f"the model is of version {version} of ONNX' operators; those up to {newest} are known",
                              hint="pip install --upgrade onnx, or convert the model to an earlier version")


def _versions(imports: Iterable[onnx.OperatorSetIdProto]) -> dict[str, int]:
    return {"" if x.domain in STANDARD else x.domain: x.version for x in imports}
