"""PyTorch's and optax' names of what trains, and what they are here."""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from typing import Any

ADVICE = {
    "Muon": "optim.SGD with momentum, or a rule of your own: class Mine(optim.Minimiser)",
    "Optimizer": "optim.Minimiser", "SparseAdam": "optim.Adam", "adam": "optim.Adam", "adamw": "optim.AdamW",
    "apply_updates": "minimiser.update(gradients)", "chain": "clipping= and schedules of a minimiser",
    "clip_by_global_norm": "clipping=optim.clipping.GlobalNorm(limit)", "ema": "optim.Average(parameters, decay)",
    "EMA": "optim.Average(parameters, decay)",
    "lr_scheduler": "optim.schedules, given in place of the learning rate", "sgd": "optim.SGD",
    "swa_utils": "optim.Average(parameters, decay)",
    "GradientTransformation": "class Mine(optim.Minimiser), whose rule says what becomes of a parameter",
    "MultiSteps": "optim.Accumulated(minimiser, every)", "adabelief": "optim.AdamW, or a rule of your own",
    "adadelta": "optim.Adadelta",
    "adafactor": "optim.Adafactor", "adagrad": "optim.Adagrad", "adamax": "optim.Adamax",
    "add_decayed_weights": "weight_decay= of a minimiser", "amsgrad": "optim.AMSGrad",
    "clip": "clipping=optim.clipping.Value(limit)",
    "global_norm": "optim.clipping.global_norm(gradients)",
    "lamb": "optim.LAMB", "lars": "optim.LARS", "lbfgs": "optim.LBFGS", "lion": "optim.Lion",
    "masked": "optim.Group, or requires_grad = False of the others",
    "multi_transform": "optim.Combined(minimiser, minimiser)", "nadam": "optim.NAdam",
    "noisy_sgd": "optim.SGD of gradients to which noise was added", "radam": "optim.RAdam", "rmsprop": "optim.RMSprop",
    "rprop": "optim.Rprop", "scale": "learning_rate= of a minimiser", "scale_by_adam": "optim.Adam",
    "yogi": "optim.Adam, or a rule of your own", "l2_loss": "nnc.mse_loss", "huber_loss": "nnc.huber_loss",
    "cosine_similarity": "nnc.cosine_similarity", "softmax_cross_entropy": "nnc.cross_entropy",
    "softmax_cross_entropy_with_integer_labels": "nnc.cross_entropy",
    "sigmoid_binary_cross_entropy": "nnc.binary_cross_entropy_with_logits",
}  # fmt: skip
"""What to write instead of a name of torch.optim or optax."""

SCHEDULES = {
    "ChainedScheduler": "schedules.Chain([...])", "ConstantLR": "schedules.Sequence, of two schedules.Constant",
    "CosineAnnealingLR": "schedules.Cosine(rate, steps, last)",
    "CosineAnnealingWarmRestarts": "schedules.CosineRestarts(rate, steps, factor, last)",
    "CyclicLR": "schedules.OneCycle, or a function of t", "ExponentialLR": "schedules.Exponential(rate, factor)",
    "LRScheduler": "a function of t, the number of updates made before, in place of the learning rate",
    "LambdaLR": "schedules.Scaled(rate, f), or a function of t in place of the learning rate",
    "LinearLR": "schedules.Linear(first, last, steps), or schedules.WarmUp(rate, steps)",
    "MultiStepLR": "schedules.MultiStep(rate, milestones, factor)",
    "MultiplicativeLR": "schedules.Scaled(rate, f)", "OneCycleLR": "schedules.OneCycle(highest, steps)",
    "PolynomialLR": "schedules.Polynomial(rate, steps, power)",
    "ReduceLROnPlateau": "schedules.ReduceOnPlateau(rate, factor, patience)",
    "SequentialLR": "schedules.Sequence(schedules, milestones)", "StepLR": "schedules.Step(rate, every, factor)",
    "cosine_decay_schedule": "schedules.Cosine(rate, steps)", "constant_schedule": "schedules.Constant(rate)",
    "exponential_decay": "schedules.ExponentialDecay(rate, decay)",
    "linear_schedule": "schedules.Linear(first, last, steps)",
    "warmup_cosine_decay_schedule": "schedules.WarmUp(schedules.Cosine(rate, steps), steps)",
    "cosine_onecycle_schedule": "schedules.OneCycle(highest, steps)",
    "join_schedules": "schedules.Sequence(schedules, milestones)",
    "linear_onecycle_schedule": "schedules.OneCycle, or a function of t",
    "piecewise_constant_schedule": "schedules.MultiStep(rate, milestones, factor)",
    "polynomial_schedule": "schedules.Polynomial(rate, steps, power)",
    "warmup_constant_schedule": "schedules.WarmUp(rate, steps)",
}  # fmt: skip
"""What to write instead of a schedule of PyTorch's or optax'."""

CLIPPING = {
    "clip_grad_norm_": "clipping.GlobalNorm(limit), as clipping= of a minimiser or of gradients by name",
    "clip_grad_value_": "clipping.Value(limit), as clipping= of a minimiser or of gradients by name",
}  # fmt: skip

OF_MINIMISERS = {
    "add_param_group": "optim.Group(...) of a new minimiser, or optim.Combined", "apply": "minimiser.update(gradients)",
    "init": "nothing: a minimiser makes its state itself", "lr": "minimiser.learning_rate",
    "param_groups": "minimiser.groups, and minimiser.learning_rate for all",
    "zero_grad": "module.zero_grad(); gradients of nn.value_and_grad are new each time",
}  # fmt: skip
"""What to write instead of an attribute of PyTorch's optimisers."""

SETTINGS = {"alpha": ("smoothing",), "betas": ("beta1", "beta2"), "centered": ("centred",), "eps": ("epsilon",),
            "history_size": ("memory",), "initial_accumulator_value": ("first_sum",), "lr": ("learning_rate",),
            "rho": ("smoothing",)}  # fmt: skip
"""Settings of minimisers by PyTorch's names, and what they are here."""

HOW = frozenset({"capturable", "foreach", "fused"})
"""Settings elsewhere that say how an update is computed, and change nothing about it."""

SETTING_ADVICE = {"differentiable": "w - rate * g in a function of the weights w", "maximize": "scale=-1",
                  "params": "parameters=", "lr_decay": "schedules.InverseTime(rate, decay) as learning_rate"}


def respelled_settings(known: Collection[str], given: Mapping[str, Any]) -> dict[str, Any]:
    """Settings by their names here: those by PyTorch's where the minimiser has what they mean, once."""
    found: dict[str, Any] = {}
    for name, x in given.items():
        if name in HOW and name not in known:
            continue
        ours = () if name in known else SETTINGS.get(name, ())
        free = bool(ours) and all(n in known and n not in given for n in ours)
        found |= dict(_spread(name, ours, x)) if free else {name: x}
    return found


def _spread(name: str, ours: tuple[str, ...], x: Any) -> Iterator[tuple[str, Any]]:
    """The settings that one of PyTorch's is: a pair for two of them."""
    if len(ours) == 1:
        yield ours[0], x
    elif isinstance(x, (tuple, list)) and len(x) == len(ours):
        yield from zip(ours, x, strict=True)
    else:
        yield name, x
