"""What the namespace tells about dtypes, devices and itself."""

from __future__ import annotations

from typing import Any

import ml_dtypes
import numpy as np
import pytest

import nnc_core as nnc
from nnc_core.base import dtype as dt
from tests.tensors.faults import fails


@pytest.mark.parametrize("dtype", dt.FLOATS, ids=str)
def test_limits_of_floats(dtype: np.dtype) -> None:
    found, wanted = nnc.finfo(dtype), ml_dtypes.finfo(dtype)
    assert found.dtype == dtype and found.bits == wanted.bits == 8 * dtype.itemsize
    for name in ("eps", "max", "min", "smallest_normal", "smallest_subnormal"):
        value = getattr(found, name)
        assert type(value) is float and value == float(getattr(wanted, name))
    assert nnc.finfo(nnc.ones(2, dtype=dtype, device="cpu:0")) == nnc.finfo(dtype.name) == found


def test_limits_of_complex_numbers_are_those_of_their_parts() -> None:
    assert nnc.finfo("complex64") == nnc.finfo("float32") and nnc.finfo(nnc.complex128).bits == 64


@pytest.mark.parametrize("dtype", dt.INTEGERS, ids=str)
def test_limits_of_integers(dtype: np.dtype) -> None:
    found, wanted = nnc.iinfo(dtype), np.iinfo(dtype)
    assert (found.dtype, found.bits, found.max, found.min) == (dtype, wanted.bits, wanted.max, wanted.min)
    assert nnc.iinfo(nnc.ones(1, dtype=dtype)) == found


def test_result_type() -> None:
    cases: list[tuple[tuple[Any, ...], str]] = [
        (("int8", "int16"), "int16"), (("uint8", "int8"), "int16"), (("float32", "float64"), "float64"),
        (("bfloat16", "float16"), "float32"), (("int64", "float32"), "float32"), (("bool", "int8"), "int8"),
        (("complex64", "float64"), "complex128"), ((nnc.ones(2), "int8"), "float32"), ((nnc.ones(2), 1), "float32"),
        (("int8", 2.5), "float32"), (("float64", 1), "float64"), (("float16", 2.5), "float16"), ((1, 2.5), "float32"),
        ((True, 3), "int64"), (("int8", True), "int8"), (("float64", 1j), "complex128"), ((np.float64(1),), "float64"),
        ((np.ones(1, np.int8), 7), "int8"), (("uint8",), "uint8"), ((2.5, "float64", 1), "float64"),
    ]
    for given, wanted in cases:
        assert nnc.result_type(*given) == np.dtype(wanted), given
    with fails(TypeError, "no arrays and no dtypes", line=False):
        nnc.result_type()
    with fails(TypeError, "uint64 and int8 have no common integer dtype", line=False):
        nnc.result_type("uint64", "int8")


def test_result_type_is_what_operators_give() -> None:
    numbers = [*dt.NUMBERS]
    for a in numbers:
        for b in numbers:
            try:
                wanted = (nnc.ones(1, dtype=a) + nnc.ones(1, dtype=b)).dtype
            except TypeError:
                with pytest.raises(TypeError):
                    nnc.result_type(a, b)
                continue
            assert nnc.result_type(a, b) == wanted
            assert nnc.can_cast(a, wanted) and nnc.can_cast(b, wanted)


def test_can_cast() -> None:
    assert nnc.can_cast("int8", "int16") and nnc.can_cast("float32", "complex128") and nnc.can_cast("bool", "uint8")
    assert nnc.can_cast("bfloat16", "float32") and nnc.can_cast("int64", "float32")
    assert not nnc.can_cast("int16", "int8") and not nnc.can_cast("float64", "complex64")
    assert not nnc.can_cast("uint64", "int64") and not nnc.can_cast("float32", "int64")
    assert nnc.can_cast(nnc.ones(1), "float64") and not nnc.can_cast(nnc.ones(1), "float16")
    with fails(TypeError, "1.5 is no dtype and no array", line=False):
        nnc.can_cast(1.5, "float32")


def test_isdtype() -> None:
    kinds = {
        "bool": ["bool"], "signed integer": ["int8", "int16", "int32", "int64"],
        "unsigned integer": ["uint8", "uint16", "uint32", "uint64"],
        "real floating": ["bfloat16", "float16", "float32", "float64"], "complex floating": ["complex64", "complex128"],
    }
    kinds["integral"] = kinds["signed integer"] + kinds["unsigned integer"]
    kinds["numeric"] = kinds["integral"] + kinds["real floating"] + kinds["complex floating"]
    for kind, members in kinds.items():
        assert sorted(members) == sorted(d for d in dt.DTYPES if nnc.isdtype(d, kind)), kind
    assert nnc.isdtype("int8", ("real floating", "signed integer")) and not nnc.isdtype("bool", ("integral",))
    assert nnc.isdtype(nnc.float32, nnc.float32) and not nnc.isdtype(nnc.float32, nnc.float64)
    with fails(ValueError, "'float32' is no kind of dtypes", line=False):
        nnc.isdtype(nnc.float32, "float32")


@pytest.mark.parametrize(("code", "said"), [
    (lambda: nnc.finfo("int8"), "int8 is no floating-point dtype"), (lambda: nnc.iinfo("float32"), "no integer dtype"),
    (lambda: nnc.iinfo(nnc.bool), "bool is no integer dtype"), (lambda: nnc.finfo(3.0), "3.0 is no dtype"),
    (lambda: nnc.finfo("float12"), "float12"),
])  # fmt: skip
def test_errors(code: Any, said: str) -> None:
    with fails(TypeError, said, line=False):
        code()


# ---- the Array API's inspection
def test_the_namespace_tells_of_its_devices(device: str) -> None:
    info = nnc.ones(1).__array_namespace__().__array_namespace_info__()
    assert info.default_device().id == device and device in {d.id for d in info.devices()}
    for spec in info.devices():
        if spec.kind != "null":
            assert nnc.ones(1, device=spec).device == spec


def test_the_namespace_tells_of_its_dtypes() -> None:
    info = nnc.__array_namespace_info__()
    assert info.default_dtypes() == {"real floating": nnc.ones(1).dtype, "complex floating": nnc.complex64,
                                     "integral": nnc.arange(2).dtype, "indexing": nnc.argmax(nnc.ones(2)).dtype}
    with nnc.config.using(default_float="float64"):
        assert info.default_dtypes(device="cpu:0")["complex floating"] == nnc.complex128
    every = info.dtypes()
    assert {"bool", "int8", "uint64", "float32", "float64"} <= every.keys() and "bfloat16" not in every
    assert all(getattr(nnc, name) == d for name, d in every.items())
    assert set(info.dtypes(kind="signed integer")) == {"int8", "int16", "int32", "int64"}
    assert set(info.dtypes(kind=("bool", "real floating"))) == {"bool", "float32", "float64"}
    assert "float64" not in info.dtypes(device="strict-nofloat64:0")


def test_the_namespace_tells_what_it_can_do() -> None:
    able = nnc.__array_namespace_info__().capabilities()
    assert able["boolean indexing"] is True and able["data-dependent shapes"] is True
    most = able["max dimensions"]
    assert nnc.ones((1,) * most).ndim == most
