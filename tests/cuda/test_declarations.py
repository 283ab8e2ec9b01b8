"""The declarations that calls of NVIDIA's libraries are held to are those of its own headers, where these are installed
(`NNC_NVIDIA_HEADERS` names a folder with them)."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from tests.cuda import host_cufft, host_cusolver

KINDS = {
    "cusolverDnHandle_t": "handle", "cublasHandle_t": "handle", "cufftHandle": "plan", "cufftHandle *": "plan*",
    "cudaStream_t": "stream", "int": "int", "int *": "address", "signed char": "char", "void *": "address",
    "cublasFillMode_t": "int", "cublasOperation_t": "int", "cublasSideMode_t": "int", "cublasDiagType_t": "int",
    "cusolverEigMode_t": "int", "cufftType": "int", "long long int": "long", "long long int *": "long*",
    "size_t *": "size*"}
"""What C calls a kind; pointers to numbers are addresses."""
NAMES = ("cusolver", "cufft", "cublas")
PACKAGES = [f"nvidia-{name}{suffix}" for name in NAMES for suffix in ("-cu12", "")]


@cache
def header(name: str) -> str | None:
    """The text of a header that a package of NVIDIA's has brought, or that lies in the folder; None without."""
    folder = os.environ.get("NNC_NVIDIA_HEADERS")
    for path in Path(folder).rglob(name) if folder else ():
        return path.read_text(errors="replace")
    for package in PACKAGES:
        try:
            files = metadata.files(package) or []
        except metadata.PackageNotFoundError:
            continue
        for file in files:
            if file.name == name:
                return file.read_text()
    return None


def declared(name: str, file: str) -> list[str]:
    """The kinds of a function's parameters, as the header says."""
    text = header(file)
    if text is None:
        pytest.skip(f"{file} is not installed: `pip install nnc-cuda[cuda12x]` brings it")
    found = re.search(rf"\b{name}\(([^)]*)\)\s*;", text)
    assert found, f"{file} has no {name}"
    return [_kind(parameter) for parameter in found[1].split(",")]


def _kind(parameter: str) -> str:
    without_name = re.sub(r"(\w+)\s*$", "", parameter.strip().replace("const ", "").replace("*", " * "))
    words = re.sub(r"\s+", " ", without_name).strip()
    return KINDS.get(words, "address" if words.endswith("*") else words)


@pytest.mark.parametrize("routine", host_cusolver.DECLARED)
def test_cusolver(routine: str) -> None:
    wanted = host_cusolver.DECLARED[routine].replace("int*", "address").split()
    own, _, suffix = routine.partition("_")
    others = {found: name for name, found in host_cusolver.OF_COMPLEX.items()}
    for letter in "SDCZ":
        name = others.get(own, own) if letter in "CZ" else own
        assert declared(f"cusolverDn{letter}{name}{suffix and '_' + suffix}", "cusolverDn.h") == wanted


def test_cublas() -> None:
    for letter in "SDCZ":
        found = declared(f"cublas{letter}trsm_v2", "cublas_api.h")
        assert found == host_cusolver.TRSM.replace("number*", "address").split()
    assert declared("cublasSetStream_v2", "cublas_api.h") == ["handle", "stream"]


@pytest.mark.parametrize("name", host_cufft.DECLARED)
def test_cufft(name: str) -> None:
    assert declared(name, "cufft.h") == host_cufft.DECLARED[name].split()


@pytest.mark.parametrize(("file", "names"), [
    ("cufft.h", {"CUFFT_R2C": 0x2A, "CUFFT_C2R": 0x2C, "CUFFT_C2C": 0x29, "CUFFT_D2Z": 0x6A, "CUFFT_Z2D": 0x6C,
                 "CUFFT_Z2Z": 0x69, "CUFFT_FORWARD": -1, "CUFFT_INVERSE": 1}),
    ("cusolver_common.h", {"CUSOLVER_EIG_MODE_NOVECTOR": 0, "CUSOLVER_EIG_MODE_VECTOR": 1}),
    ("cublas_api.h", {"CUBLAS_OP_N": 0, "CUBLAS_SIDE_LEFT": 0, "CUBLAS_FILL_MODE_LOWER": 0, "CUBLAS_FILL_MODE_UPPER": 1,
                      "CUBLAS_DIAG_NON_UNIT": 0, "CUBLAS_DIAG_UNIT": 1})])
def test_numbers_behind_names(file: str, names: dict[str, int]) -> None:
    text = header(file)
    if text is None:
        pytest.skip(f"{file} is not installed")
    for name, number in names.items():
        found = re.search(rf"\b{name}\s*=?\s*(-?\w+)", text)
        assert found and int(found[1], 0) == number, name
