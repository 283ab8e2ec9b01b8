"""Names of PyTorch's layers, optimisers, schedules and their members: one error with what to write here."""

from __future__ import annotations

import copy
import pickle
import re
from types import ModuleType
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import nn, optim
from nnc_core.nn import spellings as of_nn
from nnc_core.optim import spellings as of_optim
from nnc_core.spellings.tables import ADVICE, OF_TENSORS
from tests.tensors.faults import fails


class Net(nn.Module):
    def __init__(self) -> None:
        self.body = nn.Sequential(nn.Linear(2, 3), nn.ReLU())
        self.heads = (nn.Linear(3, 1), nn.Linear(3, 2))
        self.again = self.body

    def forward(self, x: nnc.Tensor) -> nnc.Tensor:
        return self.heads[1](self.body(x))


NET = Net()
TABLES: dict[str, tuple[Any, dict[str, str]]] = {
    "nnc": (nnc, ADVICE), "tensors": (nnc.ones((2, 2)), OF_TENSORS), "nn": (nn, of_nn.ADVICE),
    "modules": (NET, of_nn.OF_MODULES), "parameters": (NET.heads[0].weight, of_nn.OF_PARAMETERS),
    "initialise": (nn.initialise, of_nn.INITIALISERS), "optim": (optim, of_optim.ADVICE),
    "schedules": (optim.schedules, of_optim.SCHEDULES), "clipping": (optim.clipping, of_optim.CLIPPING),
    "minimisers": (optim.Adam(NET.named_parameters()), of_optim.OF_MINIMISERS),
}  # fmt: skip
SPACES: dict[str, Any] = {"nnc": nnc, "nn": nn, "optim": optim, "schedules": optim.schedules, "module": NET,
                          "x": nnc.ones(2),
                          "clipping": optim.clipping, "minimiser": TABLES["minimisers"][0],
                          "parameter": NET.heads[0].weight}  # fmt: skip


@pytest.mark.parametrize("table", TABLES)
def test_no_advice_for_a_name_that_is_there(table: str) -> None:
    of, advice = TABLES[table]
    known = dir(of) if isinstance(of, ModuleType) else dir(type(of))
    assert [name for name in advice if name in known and not isinstance(getattr(of, name), ModuleType)] == []


@pytest.mark.parametrize("table", TABLES)
def test_advice_names_what_there_is(table: str) -> None:
    _, advice = TABLES[table]
    named = [path for text in advice.values() for path in re.findall(r"\b[a-z]+(?:\.\w+)+(?=[^\w.]|$)", text)]
    assert [path for path in named if not is_there(path)] == []


def is_there(path: str) -> bool:
    """Tell whether a dotted name leads to something; what begins elsewhere, or is any name, is not asked about."""
    space, *members = path.split(".")
    found = SPACES.get(space)
    for member in members if found is not None and members != ["name"] else ():
        if not hasattr(found, member):
            return False
        found = getattr(found, member)
    return True


@pytest.mark.parametrize(("of", "name", "said"), [
    (nn, "CrossEntropyLoss", "nnc.cross_entropy"), (nn, "BatchNorm2d", "1 - PyTorch's"), (nn, "functional", "nnc.relu"),
    (nn, "ReflectionPad2d", "nn.Padding2d(width, 'reflect')"), (nn.initialise, "xavier_uniform_", "glorot_uniform"),
    (NET, "apply", "module.modules()"), (NET, "cuda", 'module.to("cuda:0")'),
    (NET.heads[0].weight, "data", "parameter.write"),
    (NET.heads[0].weight, "exp", "nnc.exp(x, ...)"), (optim, "lr_scheduler", "optim.schedules"),
    (optim.schedules, "CosineAnnealingLR", "schedules.Cosine(rate, steps"),
    (optim, "CosineAnnealingLR", "schedules.Cosine(rate, steps"), (optim, "MultiSteps", "optim.Accumulated"),
    (nnc.data, "default_collate", "numpy.stack"), (optim.clipping, "clip_grad_norm_", "GlobalNorm"),
    (TABLES["minimisers"][0], "zero_grad", "module.zero_grad()"), (nnc.data, "DataLoader", "data.DataOrder"),
    (nnc.random, "normal", "nnc.Generator(seed).normal"), (nnc, "det", "nnc.linalg.det"),
    (nnc, "relu_", "x = nnc.relu(x, ...)"),
    (nnc.ones(2), "relu_", "x[...] = nnc.relu(x, ...)"), (nnc.ones(2), "lerp", "a + weight * (b - a)"),
    (nnc.ones(2), "norm", "nnc.linalg.norm(x)"), (NET, "nothing", ""), (nn, "Nothing", ""), (optim, "nothing", ""),
])  # fmt: skip
def test_a_name_of_pytorch_is_answered(of: Any, name: str, said: str) -> None:
    with fails(AttributeError, f"no attribute '{name}'", said, line=False):
        getattr(of, name)
    assert not hasattr(of, name)


def test_copies_and_pickles_need_no_attribute_that_is_not_there() -> None:
    for again in (copy.deepcopy(NET), pickle.loads(pickle.dumps(NET))):
        assert (again(nnc.ones((1, 2))) == NET(nnc.ones((1, 2)))).all()
    minimiser = optim.Adam(NET.named_parameters())
    assert copy.deepcopy(minimiser).beta1 == pickle.loads(pickle.dumps(minimiser)).beta1 == 0.9


def test_an_attribute_that_comes_later_is_seen_by_compiled_code() -> None:
    class Scaled(nn.Module):
        def forward(self, x: nnc.Tensor) -> nnc.Tensor:
            return x * self.scale if hasattr(self, "scale") else x

    module = Scaled()
    compiled = nnc.jit(module)
    assert compiled(nnc.ones(2)).tolist() == [1, 1]
    module.scale = 3.0
    assert compiled(nnc.ones(2)).tolist() == [3, 3]


# ---- parts
def test_modules_are_walked_by_name() -> None:
    named = NET.named_modules()
    assert list(named) == ["", "body", "body.0", "body.1", "heads.0", "heads.1"]
    assert named[""] is NET and NET.modules() == list(named.values())
    assert list(NET.named_children()) == ["body", "heads.0", "heads.1", "again"]
    assert NET.children() == [NET.body, *NET.heads]


def test_layers_are_replaced_by_a_walk() -> None:
    class Low(nn.Module):
        def __init__(self, layer: nn.Linear) -> None:
            self.layer = layer.freeze()
            self.a = nn.Parameter(nnc.ones((layer.in_features, 1)))

        def forward(self, x: nnc.Tensor) -> nnc.Tensor:
            return self.layer(x) + x @ self.a

    net = nn.Sequential(nn.Linear(2, 3), nn.Sequential(nn.Linear(3, 3), nn.ReLU()))
    for part in net.modules():
        for name, child in part.named_children().items():
            if isinstance(child, nn.Linear) and not isinstance(part, Low):
                setattr(part, name, Low(child))
    assert list(net.named_parameters()) == ["0.a", "1.0.a"]
    assert net(nnc.ones((1, 2))).shape == (1, 3)


def test_state_that_fits_in_part_is_taken_over() -> None:
    old, new = nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 4)), nn.Sequential(nn.Linear(2, 3), nn.Linear(3, 5))
    state = {name: x for name, x in old.state_dict().items() if not name.startswith("1.")} | {"2.weight": np.ones(1)}
    with fails(ValueError, "missing 1.bias, 1.weight", "unexpected 2.weight", line=False):
        new.load_state_dict(state)
    left = new.load_state_dict(state, strict=False)
    assert left.missing == ("1.weight", "1.bias") and left.unexpected == ("2.weight",)
    assert (new[0].weight.numpy() == old[0].weight.numpy()).all()
    assert old.load_state_dict(old.state_dict()) == ((), ())
    with fails(TypeError, "nn.from_pytorch_state(module, arrays) loads by itself", line=False):
        old.load_state_dict(left)  # type: ignore[arg-type]


# ---- minimisers
def test_a_list_of_a_modules_parameters_has_their_names() -> None:
    parameters = NET.parameters()
    names = list(NET.named_parameters())
    minimiser = optim.SGD(parameters, 0.5)
    assert list(minimiser.parameters) == list(optim.Average(parameters).parameters) == names
    assert list(minimiser.parameters.values()) == parameters and isinstance(parameters, list)
    net = copy.deepcopy(NET)
    step = optim.make_step(nn.value_and_grad(net, lambda x: nnc.sum(net(x))), optim.SGD(net.parameters(), lr=0.5))
    step(nnc.ones((1, 2)))
    assert net.heads[1].bias.tolist() == (NET.heads[1].bias - 0.5).tolist()
    assert list(optim.SGD(parameters[1:], 0.5).parameters) == [str(i) for i in range(len(names) - 1)]
    assert list(optim.SGD(list(reversed(parameters)), 0.5).parameters) == [str(i) for i in range(len(names))]


def test_gradients_by_names_for_parameters_by_number_say_what_to_write() -> None:
    minimiser = optim.SGD([*NET.body.parameters(), *NET.heads[0].parameters()], 0.5)
    gradients = {name: p.read() for name, p in NET.named_parameters().items()}
    with fails(ValueError, "missing 0, 1, 2, 3", "module.named_parameters()", line=False):
        minimiser.update(gradients)


def test_settings_by_pytorchs_names() -> None:
    parameters = NET.named_parameters()
    adam = optim.AdamW(NET.parameters(), lr=0.1, betas=(0.5, 0.75), eps=1e-4, weight_decay=0.2)  # type: ignore[call-arg]
    assert (adam.learning_rate, adam.beta1, adam.beta2, adam.epsilon, adam.weight_decay) == (0.1, 0.5, 0.75, 1e-4, 0.2)
    rms = optim.RMSprop(parameters, lr=0.1, alpha=0.5, centered=True)  # type: ignore[call-arg]
    assert (rms.learning_rate, rms.smoothing, rms.centred) == (0.1, 0.5, True)
    assert optim.AdamW(parameters, fused=True, foreach=None).beta1 == 0.9  # type: ignore[call-arg]
    with fails(TypeError, "'maximize' is no setting", "scale=-1", line=False):
        optim.SGD(parameters, 0.1, maximize=True)  # type: ignore[call-arg]
    assert optim.SGD(parameters, lr=0.5).learning_rate == 0.5  # type: ignore[call-arg]
    assert optim.Adadelta(parameters, rho=0.5).smoothing == 0.5  # type: ignore[call-arg]
    groups = optim.SGD([optim.Group(NET.body.parameters(), lr=0.1), optim.Group(NET.heads[0].parameters())], 0.2).groups
    assert groups[0]["learning_rate"] == 0.1


@pytest.mark.parametrize("given", [{"lr": 0.1, "learning_rate": 0.1}, {"betas": 0.9}, {"betas": (0.9,)},
                                   {"alpha": 0.9}])
def test_settings_that_are_not_taken(given: dict[str, Any]) -> None:
    with fails(TypeError, "is no setting", "settings are learning_rate", line=False):
        optim.Adam(NET.named_parameters(), **given)


def test_a_minimiser_does_not_step_by_itself() -> None:
    minimiser = optim.Adam(NET.named_parameters())
    with fails(TypeError, "the count of its updates", "minimiser.update(gradients)", "test_spellings.py"):
        minimiser.step()
    assert int(minimiser.step) == 0


def test_one_number_clips_to_both_sides() -> None:
    gradients = {"w": nnc.asarray([-2.0, -0.25, 0.0, 3.0])}
    assert optim.clipping.Value(0.5)(gradients)["w"].tolist() == [-0.5, -0.25, 0, 0.5]
    assert optim.clipping.Value()(gradients)["w"].tolist() == [-1, -0.25, 0, 1]
    assert optim.clipping.Value(0.0, 1.0)(gradients)["w"].tolist() == [0, 0, 0, 1]
    assert optim.clipping.Value(0.5) == optim.clipping.Value(-0.5, 0.5)
    with fails(ValueError, "should be a number below", line=False):
        optim.clipping.Value(0.0)
