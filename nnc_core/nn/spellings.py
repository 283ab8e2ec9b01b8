"""PyTorch's names of layers, losses and what modules do, answered with those that are here."""

from __future__ import annotations

SIZED = ("1d", "2d", "3d")


def _each(name: str, advice: str) -> dict[str, str]:
    """One advice for the layers of one, two and three spatial dimensions, with their digit for N."""
    return {name + size: advice.replace("Nd", size) for size in SIZED}


LAYERS = {
    **_each("BatchNorm", "nn.BatchNorm(channels), whose momentum is the share of the old value: 1 - PyTorch's"),
    **_each("InstanceNorm", "nn.InstanceNorm(channels)"), **_each("Dropout", "nn.SpatialDropout(rate)"),
    **_each("ConstantPad", "nn.PaddingNd(width, value=value)"), **_each("ZeroPad", "nn.PaddingNd(width)"),
    **_each("ReflectionPad", "nn.PaddingNd(width, 'reflect')"), **_each("CircularPad", "nn.PaddingNd(width, 'wrap')"),
    **_each("ReplicationPad", "nn.PaddingNd(width, 'edge')"),
    **_each("LazyConv", "nn.ConvNd, which is told its channels"),
    "SyncBatchNorm": "nn.BatchNorm(channels)", "LazyLinear": "nn.Linear, which is told its features",
    "Bilinear": "nnc.einsum('bi,oij,bj->bo', x, weight, y)", "ChannelShuffle": "nn.Lambda, of reshape and swapaxes",
    "CosineSimilarity": "nnc.cosine_similarity(x, y)", "EmbeddingBag": "nnc.embedding_bag", "Fold": "nnc.fold",
    "Unfold": "nnc.unfold", "Hardshrink": "nn.HardShrink", "Hardsigmoid": "nn.HardSigmoid",
    "Hardswish": "nn.HardSwish", "Hardtanh": "nn.HardTanh", "Softshrink": "nn.SoftShrink",
    "Tanhshrink": "nn.TanhShrink", "Softmax2d": "nn.Softmax(axis=-1)", "MultiheadAttention": "nn.MultiHeadAttention",
    "CrossMapLRN2d": "nn.LocalResponseNorm", "FeatureAlphaDropout": "nn.AlphaDropout",
    "PairwiseDistance": "nnc.pairwise_distance(x, y)", "PixelShuffle": "nn.DepthToSpace(block, 'CRD')",
    "PixelUnshuffle": "nn.SpaceToDepth(block, 'CRD')", "Upsample": "nn.UpSampling2d(scale, method)",
    "UpsamplingBilinear2d": "nn.UpSampling2d(scale, 'linear', align_corners=True)",
    "UpsamplingNearest2d": "nn.UpSampling2d(scale)", "Transformer": "nn.TransformerEncoder and nn.TransformerDecoder",
    "ParameterList": "a tuple of nn.Parameter", "ParameterDict": "attributes that are nn.Parameter",
    "Buffer": "nnc.Cell(tensor) as an attribute", "DataParallel": "one device for each process",
    "SpectralNorm": "nnc.spectral_norm of a weight", "WeightNorm": "nnc.weight_norm of a weight",
    "Dense": "nn.Linear(in_features, out_features)", "Conv": "nn.Conv2d",
    "ConvTranspose": "nn.ConvTranspose2d", "Embed": "nn.Embedding",
}  # fmt: skip

LOSSES = {
    "BCELoss": "binary_cross_entropy", "BCEWithLogitsLoss": "binary_cross_entropy_with_logits", "CTCLoss": "ctc_loss",
    "CosineEmbeddingLoss": "cosine_embedding_loss", "CrossEntropyLoss": "cross_entropy",
    "GaussianNLLLoss": "gaussian_nll_loss", "HingeEmbeddingLoss": "hinge_embedding_loss", "HuberLoss": "huber_loss",
    "KLDivLoss": "kl_div", "L1Loss": "l1_loss", "MSELoss": "mse_loss", "MarginRankingLoss": "margin_ranking_loss",
    "NLLLoss": "nll_loss", "PoissonNLLLoss": "poisson_nll_loss", "SmoothL1Loss": "smooth_l1_loss",
    "TripletMarginLoss": "triplet_margin_loss",
}  # fmt: skip
"""Losses are functions here."""

ADVICE = {
    **LAYERS, **{name: f"the function nnc.{ours}" for name, ours in LOSSES.items()},
    "functional": "nnc's own functions: nnc.relu, nnc.cross_entropy", "init": "nn.initialise, or init= of a layer",
    "initializers": "nn.initialise, or init= of a layer", "parallel": "one device for each process",
    "utils": "clipping= of a minimiser, nnc.weight_norm, nnc.spectral_norm, or lengths= of nn.LSTM",
}  # fmt: skip
"""What to write instead of a name of torch.nn."""

OF_MODULES = {
    "add_module": "setattr(module, name, part)", "apply": "for part in module.modules(): ...",
    "bfloat16": "module.to(nnc.bfloat16)", "compile": "module.hybridize(), or nnc.jit(module)",
    "cpu": 'module.to("cpu:0")', "cuda": 'module.to("cuda:0")', "double": "module.to(nnc.float64)",
    "extra_repr": "module.describe()", "float": "module.to(nnc.float32)", "get_buffer": "module.cells()[name]",
    "get_parameter": "module.named_parameters()[name]", "get_submodule": "module.named_modules()[name]",
    "half": "module.to(nnc.float16)", "init": "the constructor, which makes the weights",
    "register_backward_hook": "nnc.custom_vjp, or register_hook of a tensor",
    "register_buffer": "module.name = nnc.Cell(tensor)",
    "register_full_backward_hook": "nnc.custom_vjp, or register_hook of a tensor",
    "register_module": "setattr(module, name, part)", "register_parameter": "module.name = nn.Parameter(tensor)",
    "set_submodule": "setattr(module, name, part)", "trainable_variables": "module.parameters()",
    "type": "module.to(dtype)", "share_memory": "nnc.io.save_weights",
}  # fmt: skip
"""What to write instead of an attribute of PyTorch's modules."""

INITIALISERS = {
    **{name + end: f"nn.initialise.{ours}, as init= of a layer"
       for end in ("", "_") for name, ours in {
           "xavier_uniform": "glorot_uniform", "xavier_normal": "glorot_normal", "kaiming_uniform": "he_uniform",
           "kaiming_normal": "he_normal", "trunc_normal": "TruncatedNormal(deviation)", "orthogonal": "Orthogonal()",
           "constant": "Constant(value)"}.items()},
    "normal_": "nn.initialise.Gaussian(mean, deviation), as init= of a layer", "zeros_": "nn.initialise.zeros",
    "ones_": "nn.initialise.ones", "uniform_": "nn.initialise.Uniform(low, high), as init= of a layer",
    "eye_": "parameter.write(nnc.eye(n))", "calculate_gain": "nn.initialise.Orthogonal(gain)",
}  # fmt: skip
"""What to write instead of a name of torch.nn.init."""

OF_PARAMETERS = {
    "copy_": "parameter.write(tensor)", "data": "parameter.read(), and parameter.write(tensor)",
    "fill_": "parameter.write(nnc.full_like(parameter, value))", "requires_grad_": "parameter.requires_grad = True",
    "normal_": "parameter.write(nnc.Generator().normal(parameter.shape))",
    "uniform_": "parameter.write(nnc.Generator().uniform(parameter.shape))", "value": "parameter.read()",
    "zero_": "parameter.write(nnc.zeros_like(parameter))",
}  # fmt: skip
"""What to write instead of an attribute of PyTorch's parameters."""

_MASK = "mask=, true where a query may look at a key: ~{name} if it is boolean, as it is if its numbers are added"
_KEYS = "true where there is a key: ~{name}"
_RESULT = ("query", "leave it out: the result is a tensor; nnc.attention_weights gives the weights")

OF_CALLS: dict[str, tuple[str, str]] = {
    **{name: ("mask", _MASK.format(name=name)) for name in ("attn_mask", "src_mask", "tgt_mask")},
    **{name: ("key_mask", f"key_mask=, {_KEYS.format(name=name)}")
       for name in ("key_padding_mask", "src_key_padding_mask", "tgt_key_padding_mask")},
    "memory_key_padding_mask": ("memory_key_mask", f"memory_key_mask=, {_KEYS.format(name='memory_key_padding_mask')}"),
    "is_causal": ("causal", "causal="), "tgt_is_causal": ("causal", "causal=, which is True unless said otherwise"),
    "memory_is_causal": ("memory_mask", "memory_mask=nnc.tril(nnc.ones((queries, keys), dtype=bool))"),
    "need_weights": _RESULT, "average_attn_weights": _RESULT,
    **{name: ("x", "x, the first argument") for name in ("input", "src", "tgt")},
    "hx": ("state", "state="), "output_size": ("size", "size="),
}  # fmt: skip
"""Arguments with which modules are called in PyTorch: what takes their place here, and what to write."""
