"""docs/nn.md: what Owl's neurons and NNC's models are here."""

from __future__ import annotations

import re
from functools import reduce
from pathlib import Path

import pytest

import nnc_core as nnc
from nnc_core import nn
from nnc_core.nn.layers import (
    activation,
    arithmetic,
    convolution,
    dropout,
    linear,
    merging,
    normalisation,
    parts,
    pooling,
    resizing,
    shapes,
)

PAGE = Path(__file__).parents[2] / "docs" / "nn.md"
_NEURONS = """
    Input Linear LinearNoBias Embedding LSTM GRU Recurrent Conv1D Conv2D Conv3D DilatedConv1D DilatedConv2D
    DilatedConv3D TransposeConv1D TransposeConv2D TransposeConv3D FullyConnected MaxPool1D MaxPool2D AvgPool1D
    AvgPool2D GlobalMaxPool1D GlobalMaxPool2D GlobalAvgPool1D GlobalAvgPool2D UpSampling2D Padding2D Dropout Reshape
    Flatten Slice Lambda LambdaArray Activation GaussianNoise GaussianDropout AlphaDropout Normalisation Add Mul Dot Max
    Average Concatenate
"""
NEURONS = tuple(_NEURONS.split())
STUBS = ("UpSampling1D", "UpSampling3D", "Padding1D", "Padding3D", "Masking")
MODELS = {
    "MA07": "sum", "MA08": "concat", "MA09": "chunk", "MA10": "convolution", "MA11": "convolution_transpose",
    "MA12": "dense", "MA13": "batch_norm", "MA14": "relu", "MA15": "sigmoid", "MA16": "tanh", "MA17": "swish",
    "MA18": "gelu", "MA19": "leaky_relu", "MA20": "softmax", "MA21": "max_pool", "MA22": "average_pool",
    "MA23": "reshape", "MA24": "pad", "MA25": "identity", "MA26": "permute", "MA27": "extract", "MA28": "flatten",
    "MA29": "layer_norm", "MA30": "group_norm", "MA31": "rmsnorm", "MA32": "add", "MA33": "mul", "MA34": "scalar_mul",
    "MA35": "div", "MA36": "sqrt", "MA37": "cmul", "MA38": "transpose", "MA39": "matmul", "MA40": "dropout",
    "MA41": "masked_fill", "MA42": "index_select", "MA43": "embedding", "MA44": "upsample", "MA45": "reduce_sum",
    "MA46": "reduce_mean", "MA47": "reduce_max", "MA48": "reduce_min", "MA49": "reduce_norm2", "MA50": "argmax",
    "MA51": "argmin", "MA52": "min", "MA53": "max", "MA54": "lstm", "MA55": "datatype_conversion", "MA56": "clamp",
    "MA57": "parameter", "MA58": "scalar", "MA59": "variable", "MA60": "move", "MA61": "contiguous",
    "MA62": "scaled_dot_product_attention", "MA63": "debug",
}  # fmt: skip


@pytest.fixture(scope="module")
def rows() -> list[list[str]]:
    """Module, Owl, NNC, PyTorch."""
    lines = [line for line in PAGE.read_text().splitlines() if line.startswith("| ") and "| Owl |" not in line]
    return [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]


def test_every_name_exists(rows: list[list[str]]) -> None:
    assert all(len(row) == 4 for row in rows)
    for row in rows:
        names = re.findall(r"`(nnc?\.[\w.]+)`", row[0])
        assert names, row
        for name in names:
            root, *path = name.split(".")
            reduce(getattr, path, nn if root == "nn" else nnc)


def test_every_neuron_of_owls_has_a_row(rows: list[list[str]]) -> None:
    found = [name.strip() for row in rows for name in row[1].split(",") if name.strip()]
    assert len(NEURONS) == 44
    assert sorted(found) == sorted([*NEURONS, *[f"{name} (stub)" for name in STUBS]])


def test_every_model_of_nncs_has_a_row(rows: list[list[str]]) -> None:
    found = dict(re.findall(r"(MA\d\d) (\w+)", " ".join(row[2] for row in rows)))
    assert found == MODELS
    assert len(MODELS) == 57


def test_every_layer_without_time_has_a_row(rows: list[list[str]]) -> None:
    listed = {name for row in rows for name in re.findall(r"`nn\.(\w+)", row[0])}
    families = (activation, arithmetic, convolution, dropout, linear, merging, normalisation, parts, pooling, resizing,
                shapes)
    assert {name for family in families for name in family.__all__} <= listed
