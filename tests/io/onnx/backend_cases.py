"""The cases that come with the package onnx: models with inputs and the outputs that are expected of them."""

from __future__ import annotations

import warnings
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import onnx
from onnx import numpy_helper
from onnx.backend.test.loader import load_model_tests

KINDS = ("node", "simple", "pytorch-converted", "pytorch-operator")
LOW_BITS = {"BFLOAT16", "FLOAT8E4M3FN", "FLOAT8E4M3FNUZ", "FLOAT8E5M2", "FLOAT8E5M2FNUZ", "FLOAT8E8M0", "FLOAT4E2M1",
            "INT4", "UINT4", "INT2", "UINT2"}
FURTHER = {"DOUBLE", "INT8", "INT16", "UINT8", "UINT16", "UINT32", "UINT64"}


class Case(NamedTuple):
    name: str
    stratum: str
    model: bytes
    data: Sequence[tuple[list[Any], list[Any]]]
    rtol: float
    atol: float


@cache
def all_cases() -> list[Case]:
    """Every case, by name."""
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # what computes the expected values overflows on purpose
        found = [case for kind in KINDS for case in load_model_tests(kind=kind)]
        return sorted((_case(case) for case in found), key=lambda case: case.name)


def _case(case: Any) -> Case:
    model = case.model if case.model is not None else onnx.load(Path(case.model_dir, "model.onnx"))
    sets = case.data_sets if case.data_sets is not None else list(_stored(Path(case.model_dir), model))
    data = [([value_of(x) for x in given], [value_of(x) for x in wanted]) for given, wanted in sets]
    return Case(case.name, stratum_of(model), model.SerializeToString(), data, max(case.rtol, 1e-3),
                max(case.atol, 1e-7))


def _stored(folder: Path, model: onnx.ModelProto) -> Iterator[tuple[list[Any], list[Any]]]:
    for part in sorted(folder.glob("test_data_set_*")):
        count = len(list(part.glob("input_*")))
        yield (_messages(part, "input", model.graph.input[:count]), _messages(part, "output", model.graph.output))


def _messages(folder: Path, side: str, declared: Any) -> list[Any]:
    kinds = {"tensor_type": onnx.TensorProto, "sequence_type": onnx.SequenceProto, "optional_type": onnx.OptionalProto}
    made = []
    for i, info in enumerate(declared):
        message = kinds[info.type.WhichOneof("value")]()
        message.ParseFromString((folder / f"{side}_{i}.pb").read_bytes())
        made.append(message)
    return made


def value_of(message: Any) -> Any:
    """A message as an array, a list of such or None; arrays as they are."""
    if isinstance(message, onnx.TensorProto):
        return numpy_helper.to_array(message)
    if isinstance(message, onnx.SequenceProto):
        return numpy_helper.to_list(message)
    return numpy_helper.to_optional(message) if isinstance(message, onnx.OptionalProto) else message


def stratum_of(model: onnx.ModelProto) -> str:
    """What a case is about: the rarest of its dtypes, or control flow."""
    kinds, operators, domains = _contents(model.graph)
    if domains - {"", "ai.onnx"}:
        return "other domains"
    if kinds & {"sequence_type", "optional_type"}:
        return "sequences"
    if "STRING" in kinds:
        return "texts"
    if kinds & LOW_BITS:
        return "low bits"
    if operators & {"If", "Loop", "Scan"}:
        return "control flow"
    if "FLOAT16" in kinds:
        return "float16"
    return "further dtypes" if kinds & FURTHER else "plain"


def _contents(graph: onnx.GraphProto) -> tuple[set[str], set[str], set[str]]:
    """Kinds of values and names of their dtypes, names of operators, and domains; sub-graphs included."""
    name = onnx.TensorProto.DataType.Name
    kinds = {name(x.data_type) for x in graph.initializer}
    for value in (*graph.input, *graph.output):
        kind = value.type.WhichOneof("value")
        kinds.add(name(value.type.tensor_type.elem_type) if kind == "tensor_type" else str(kind))
    operators, domains = {n.op_type for n in graph.node}, {n.domain for n in graph.node}
    for attribute in (a for n in graph.node for a in n.attribute):
        if attribute.name in ("to", "dtype", "output_dtype"):
            kinds.add(name(attribute.i))
        if attribute.HasField("g"):
            for all_found, found in zip((kinds, operators, domains), _contents(attribute.g), strict=True):
                all_found |= found
    return kinds, operators, domains


def check_same(found: Any, wanted: Any, rtol: float, atol: float) -> None:
    """Raise AssertionError unless both are the same: kinds, dtypes, shapes, and values within the bounds."""
    if wanted is None or isinstance(wanted, list):
        assert (found is None) if wanted is None else len(found) == len(wanted)
        for one, other in zip(found or (), wanted or (), strict=True):
            check_same(one, other, rtol, atol)
        return
    found, wanted = np.asarray(found), np.asarray(wanted)
    assert found.shape == wanted.shape, f"shape {found.shape}, not {wanted.shape}"
    if wanted.dtype.kind in "OSU":
        texts = [x.decode() if isinstance(x, bytes) else str(x) for x in wanted.flat]
        assert [str(x) for x in found.flat] == texts
        return
    assert found.dtype == wanted.dtype, f"dtype {found.dtype}, not {wanted.dtype}"
    if wanted.dtype.name == "bfloat16":
        rtol = max(rtol, 2.0**-6)  # two units in the last place: expected values are rounded at each step
    if wanted.dtype == np.float32 and wanted.size:
        finite = np.abs(wanted[np.isfinite(wanted)])
        atol = max(atol, 4 * float(np.finfo(np.float32).eps) * float(finite.max(initial=0)))  # of sums that cancel
    if wanted.dtype.kind in "fV":
        with np.errstate(all="ignore"):
            np.testing.assert_allclose(found.astype(np.float64), wanted.astype(np.float64), rtol=rtol, atol=atol)
    else:
        np.testing.assert_array_equal(found, wanted)
