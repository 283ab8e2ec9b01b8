"""The declarations that calls of NVIDIA's libraries are held to are those of its own headers, where these are installed
(`NNC_NVIDIA_HEADERS` names a folder with them)."""

from __future__ import annotations

import os
import re
from functools import cache
from importlib import metadata
from pathlib import Path

import pytest

from nnc_core.base.dtype import bfloat16, float16, float32, float64
from nnc_cuda.dnn import attention_graphs, cudnn, descriptors, graphs, operations
from tests.cuda import host_cublas, host_cudnn, host_cufft, host_cusolver

KINDS = {
    "cusolverDnHandle_t": "handle", "cublasHandle_t": "handle", "cufftHandle": "plan", "cufftHandle *": "plan*",
    "cudaStream_t": "stream", "int": "int", "int *": "address", "signed char": "char", "void *": "address",
    "cublasFillMode_t": "int", "cublasOperation_t": "int", "cublasSideMode_t": "int", "cublasDiagType_t": "int",
    "cusolverEigMode_t": "int", "cufftType": "int", "long long int": "long", "long long int *": "long*",
    "size_t *": "size*", "cudnnHandle_t": "handle", "cudnnHandle_t *": "handle*", "cudnnBackendDescriptor_t": "handle",
    "cudnnBackendDescriptor_t *": "handle*", "cudnnBackendDescriptorType_t": "int",
    "cudnnBackendAttributeName_t": "int", "cudnnBackendAttributeType_t": "int", "int64_t": "long",
    "int64_t *": "long*", "syevjInfo_t": "settings", "gesvdjInfo_t": "settings", "cusolverDnParams_t": "settings",
    "syevjInfo_t *": "settings*", "gesvdjInfo_t *": "settings*", "cusolverDnParams_t *": "settings*",
    "cudaDataType": "int", "size_t": "size"}
"""What C calls a kind; pointers to numbers are addresses."""
NAMES = ("cusolver", "cufft", "cublas", "cudnn")
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
    found = re.search(rf"\b{name}\(([^)]*)\)\s*;", re.sub(r"/\*.*?\*/", "", text, flags=re.DOTALL))
    assert found, f"{file} has no {name}"
    return [_kind(parameter) for parameter in found[1].split(",")]


def _kind(parameter: str) -> str:
    without_name = re.sub(r"(\w+)\s*$", "", parameter.strip().replace("const ", "").replace("*", " * "))
    words = re.sub(r"\bconst\b|\s+", " ", without_name).strip()
    words = re.sub(r"\s+", " ", words)
    if parameter.strip().endswith("[]"):
        return "address"
    return KINDS.get(words, "address" if words.endswith("*") else words)


@pytest.mark.parametrize("routine", host_cusolver.DECLARED)
def test_cusolver(routine: str) -> None:
    wanted = host_cusolver.DECLARED[routine].replace("int*", "address").split()
    own, _, suffix = routine.partition("_")
    own, many, _ = own.partition("Batched")
    others = {found: name for name, found in host_cusolver.OF_COMPLEX.items()}
    for letter in "SDCZ":
        name = others.get(own, own) if letter in "CZ" else own
        assert declared(f"cusolverDn{letter}{name}{many}{suffix and '_' + suffix}", "cusolverDn.h") == wanted


@pytest.mark.parametrize("name", host_cusolver.GENERAL)
def test_cusolver_of_any_dtype(name: str) -> None:
    assert declared(name, "cusolverDn.h") == host_cusolver.GENERAL[name].replace("buffer", "address").split()


@pytest.mark.parametrize("routine", host_cublas.OF_BLAS)
def test_cublas(routine: str) -> None:
    wanted = host_cublas.OF_BLAS[routine].replace("number*", "address").replace("int*", "address").split()
    for letter in "SDCZ":
        assert declared(f"cublas{letter}{routine}", "cublas_api.h") == wanted
    assert declared("cublasSetStream_v2", "cublas_api.h") == ["handle", "stream"]


@pytest.mark.parametrize("name", host_cufft.DECLARED)
def test_cufft(name: str) -> None:
    assert declared(name, "cufft.h") == host_cufft.DECLARED[name].split()


@pytest.mark.parametrize("name", host_cudnn.DECLARED)
def test_cudnn(name: str) -> None:
    """Elements of attributes are in arrays at an address."""
    assert declared(name, "cudnn_graph.h") == host_cudnn.DECLARED[name].replace("array", "address").split()


CUDNN = {
    **{f"CUDNN_DATA_{name}": operations.TYPES[dtype] for name, dtype in {
        "FLOAT": float32, "DOUBLE": float64, "HALF": float16, "BFLOAT16": bfloat16}.items()},
    **{f"CUDNN_TYPE_{name}": kind.number for name, kind in {
        "HANDLE": descriptors.HANDLE, "DATA_TYPE": descriptors.DATA_TYPE, "BOOLEAN": descriptors.BOOLEAN,
        "INT64": descriptors.INT64, "FLOAT": descriptors.FLOAT, "DOUBLE": descriptors.DOUBLE,
        "VOID_PTR": descriptors.POINTER, "CONVOLUTION_MODE": descriptors.CONVOLUTION_MODE,
        "HEUR_MODE": descriptors.HEURISTICS_MODE, "NUMERICAL_NOTE": descriptors.NUMERICAL_NOTE,
        "POINTWISE_MODE": descriptors.POINTWISE_MODE,
        "REDUCTION_OPERATOR_TYPE": descriptors.REDUCTION_OPERATOR,
        "BACKEND_DESCRIPTOR": descriptors.DESCRIPTOR}.items()},
    **{f"CUDNN_BACKEND_{name}_DESCRIPTOR": number for name, number in {
        "POINTWISE": operations.POINTWISE, "CONVOLUTION": graphs.CONVOLUTION, "TENSOR": operations.TENSOR,
        "OPERATION_POINTWISE": operations.POINTWISE_STEP, "OPERATION_SDPA_FWD": attention_graphs.ATTENTION_STEP,
        "OPERATION_SDPA_BWD": attention_graphs.GRADIENTS_STEP,
        "OPERATION_CONVOLUTION_FORWARD": graphs.OPERATIONS["conv"][0], "ENGINE": cudnn.ENGINE,
        "OPERATION_CONVOLUTION_BACKWARD_DATA": graphs.OPERATIONS["conv_input_gradient"][0],
        "OPERATION_CONVOLUTION_BACKWARD_FILTER": graphs.OPERATIONS["conv_kernel_gradient"][0],
        "ENGINECFG": cudnn.CONFIGURATION, "ENGINEHEUR": cudnn.HEURISTICS, "EXECUTION_PLAN": cudnn.PLAN,
        "OPERATIONGRAPH": operations.GRAPH, "MATMUL": operations.PRODUCT, "OPERATION_MATMUL": operations.PRODUCT_STEP,
        "REDUCTION": operations.REDUCTION, "OPERATION_REDUCTION": operations.REDUCTION_STEP,
        "OPERATION_RESHAPE": operations.RESHAPE_STEP,
        "OPERATION_DIAGONAL_BAND_MASK": operations.BAND_STEP, "VARIANT_PACK": cudnn.PACK}.items()},
    **{f"CUDNN_ATTR_{name}": number for name, number in {
        "TENSOR_UNIQUE_ID": operations.UNIQUE_ID, "TENSOR_DATA_TYPE": operations.ELEMENTS,
        "TENSOR_BYTE_ALIGNMENT": operations.ALIGNMENT, "TENSOR_DIMENSIONS": operations.DIMENSIONS,
        "TENSOR_STRIDES": operations.STRIDES, "TENSOR_IS_VIRTUAL": operations.VIRTUAL,
        "TENSOR_IS_BY_VALUE": operations.BY_VALUE,
        "CONVOLUTION_COMP_TYPE": graphs.COMPUTED_IN, "CONVOLUTION_CONV_MODE": graphs.MODE,
        "CONVOLUTION_SPATIAL_DIMS": graphs.AXES, "CONVOLUTION_DILATIONS": graphs.DILATIONS,
        "CONVOLUTION_FILTER_STRIDES": graphs.FILTER_STRIDES, "CONVOLUTION_PRE_PADDINGS": graphs.BEFORE,
        "CONVOLUTION_POST_PADDINGS": graphs.AFTER, "POINTWISE_MODE": operations.POINTWISE_MODE_OF,
        "POINTWISE_MATH_PREC": operations.POINTWISE_IN, "POINTWISE_RELU_LOWER_CLIP": operations.RELU_FROM,
        "OPERATION_POINTWISE_PW_DESCRIPTOR": operations.STEP_OF, "OPERATION_POINTWISE_XDESC": operations.STEP_X,
        "OPERATION_POINTWISE_BDESC": operations.STEP_B, "OPERATION_POINTWISE_YDESC": operations.STEP_Y,
        "MATMUL_COMP_TYPE": operations.PRODUCT_IN, "OPERATION_MATMUL_ADESC": operations.PRODUCT_A,
        "OPERATION_MATMUL_BDESC": operations.PRODUCT_B, "OPERATION_MATMUL_CDESC": operations.PRODUCT_C,
        "OPERATION_MATMUL_DESC": operations.PRODUCT_OF, "REDUCTION_OPERATOR": operations.REDUCTION_BY,
        "REDUCTION_COMP_TYPE": operations.REDUCTION_IN, "OPERATION_REDUCTION_XDESC": operations.REDUCED,
        "OPERATION_REDUCTION_YDESC": operations.REDUCED_TO, "OPERATION_REDUCTION_DESC": operations.REDUCTION_OF,
        "OPERATION_RESHAPE_XDESC": operations.RESHAPED, "OPERATION_RESHAPE_YDESC": operations.RESHAPED_TO,
        "OPERATION_SDPA_FWD_SCALEDESC": attention_graphs.SCALE,
        "OPERATION_SDPA_BWD_SCALEDESC": attention_graphs.BACK_SCALE,
        "OPERATION_DIAGONAL_BAND_MASK_XDESC": operations.BAND_OF,
        "OPERATION_DIAGONAL_BAND_MASK_YDESC": operations.BAND_Y,
        "OPERATION_DIAGONAL_BAND_MASK_BDESC": operations.BAND_ELSE,
        "OPERATION_DIAGONAL_BAND_MASK_COMPARISON_MODE": operations.BAND_KEEPS,
        "OPERATIONGRAPH_HANDLE": cudnn.GRAPH_HANDLE, "OPERATIONGRAPH_OPS": operations.GRAPH_OPERATIONS,
        "ENGINEHEUR_MODE": cudnn.HEURISTICS_MODE_OF, "ENGINEHEUR_OPERATION_GRAPH": cudnn.HEURISTICS_GRAPH,
        "ENGINEHEUR_RESULTS": cudnn.HEURISTICS_RESULTS, "ENGINECFG_ENGINE": cudnn.CONFIGURATION_ENGINE,
        "ENGINE_NUMERICAL_NOTE": cudnn.ENGINE_NOTES, "EXECUTION_PLAN_HANDLE": cudnn.PLAN_HANDLE,
        "EXECUTION_PLAN_ENGINE_CONFIG": cudnn.PLAN_CONFIGURATION, "VARIANT_PACK_UNIQUE_IDS": cudnn.PACK_NUMBERS,
        "EXECUTION_PLAN_WORKSPACE_SIZE": cudnn.PLAN_WORKSPACE, "VARIANT_PACK_DATA_POINTERS": cudnn.PACK_POINTERS,
        "VARIANT_PACK_WORKSPACE": cudnn.PACK_WORKSPACE}.items()},
    **{f"CUDNN_ATTR_OPERATION_SDPA_{way}{name}": number for way, names, numbers in (
        ("FWD_", ("Q", "K", "V", "O", "STATS"), attention_graphs.AHEAD),
        ("BWD_", ("Q", "K", "V", "DOD", "STATS", "O", "DQ", "DK", "DV"), attention_graphs.BACK))
       for name, number in zip([f"{one}DESC" for one in names], numbers, strict=True)},
    **{f"CUDNN_ATTR_OPERATION_SDPA_{way}_SUBGRAPH{name}": number for way, numbers in (
        ("FWD", attention_graphs.INNER), ("BWD", attention_graphs.INNER_BACK))
       for name, number in zip(("", "_INPUT_UID", "_OUTPUT_UID"), numbers, strict=True)},
    **{f"CUDNN_ATTR_OPERATION_CONVOLUTION_{way}_{name}": number for way, operator, names in (
        ("FORWARD", "conv", ("ALPHA", "BETA", "CONV_DESC", "Y", "W", "X")),
        ("BWD_DATA", "conv_input_gradient", ("ALPHA", "BETA", "CONV_DESC", "DY", "W", "DX")),
        ("BWD_FILTER", "conv_kernel_gradient", ("ALPHA", "BETA", "CONV_DESC", "DY", "DW", "X")))
       for name, number in zip(names, graphs.OPERATIONS[operator][1], strict=True)},
    **{f"CUDNN_NUMERICAL_NOTE_{name}": number for name, number in {
        "TENSOR_CORE": cudnn.TENSOR_CORE, "DOWN_CONVERT_INPUTS": cudnn.DOWN_CONVERTED, "FFT": cudnn.BY_FOURIER,
        "REDUCED_PRECISION_REDUCTION": cudnn.SUMS_OF_HALVES, "NONDETERMINISTIC": cudnn.UNORDERED}.items()},
    **{f"CUDNN_NUMERICAL_NOTE_WINOGRAD{name}": number for name, number in zip(
        ("", "_TILE_4x4", "_TILE_6x6", "_TILE_13x13"), cudnn.WINOGRAD, strict=True)},
    "CUDNN_HEUR_MODE_A": cudnn.BEST, "CUDNN_HEUR_MODE_FALLBACK": cudnn.FALLBACK,
    "CUDNN_REDUCE_TENSOR_ADD": operations.BY_SUM, "CUDNN_POINTWISE_MUL": operations.MULTIPLY,
    "CUDNN_POINTWISE_SUB": operations.SUBTRACT, "CUDNN_POINTWISE_EXP": operations.EXPONENTIAL,
    "CUDNN_POINTWISE_ADD": operations.ADD, "CUDNN_POINTWISE_RELU_FWD": operations.RELU,
    "CUDNN_POINTWISE_CMP_GE": operations.AT_LEAST, "CUDNN_CROSS_CORRELATION": graphs.CROSS_CORRELATION,
    "CUDNN_STATUS_INTERNAL_ERROR_HOST_ALLOCATION_FAILED": cudnn.NO_MEMORY[0],
    "CUDNN_STATUS_INTERNAL_ERROR_DEVICE_ALLOCATION_FAILED": cudnn.NO_MEMORY[1]}


@pytest.mark.parametrize(("file", "names"), [
    ("cudnn_graph.h", CUDNN),
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
        found = re.search(rf"\b{name}(?:\s+CUDNN_DEPRECATED_ENUM)?\s*=?\s*(-?\d\w*)", text)
        assert found and int(found[1], 0) == number, name
