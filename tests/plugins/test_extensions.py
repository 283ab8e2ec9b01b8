"""What plugins add besides devices: library code for operators of any device, and rewrites."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import nnc_core as nnc
from nnc_core import stacks
from nnc_core.base.errors import FallbackWarning, PluginError
from nnc_core.builtin import StrictDevice
from nnc_core.device import Device, Registry
from nnc_core.extensions import BackendRegistry, Pipeline
from nnc_core.optimiser import REWRITES
from nnc_core.optimiser.rewrite import TAGS
from nnc_plugins import Manager, PluginWarning, hookimpl
from nnc_plugins.doctor import probe
from tests.plugins.fixtures.distributions import install, run_with
from tests.plugins.fixtures.fake_backend import Loud


@pytest.fixture(autouse=True)
def plugins(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """A process without installed plugins, whose devices and rewrites go with the test."""
    monkeypatch.setattr(stacks, "_manager", Manager(only=()))
    monkeypatch.setattr(stacks, "registry", Registry())
    monkeypatch.setattr(stacks, "_stacks", {})
    stacks.registry.add("strict:0", StrictDevice)
    before = dict(REWRITES)
    yield
    REWRITES.clear()
    REWRITES.update(before)


def plugin(**hooks: Callable[..., Any]) -> SimpleNamespace:
    return SimpleNamespace(**{name: hookimpl(hook) for name, hook in hooks.items()})


def register(**hooks: Callable[..., Any]) -> Any:
    return stacks.register_plugin(plugin(**hooks), "added")


def x_on(device: Any = "strict:0", dtype: str = "float32") -> nnc.Tensor:
    return nnc.asarray(np.array([-1.5, 2.5]), dtype=dtype, device=device)


def add_loud(registry: BackendRegistry) -> None:
    registry.add_backend("strict", "sign", Loud)


@pytest.mark.parametrize("run", [nnc.sign, lambda x: nnc.jit(lambda x: nnc.sign(x))(x)], ids=["eager", "compiled"])
@pytest.mark.parametrize("opened", [True, False])
def test_a_plugin_adds_code_for_an_operator_of_a_device_that_is_not_its_own(run: Any, opened: bool) -> None:
    if opened:
        assert run(x_on()).tolist() == [-1, 1]
    assert register(nnc_register=add_loud).state == "ok"
    assert run(x_on()).tolist() == [77, 77]
    assert run(x_on(dtype="int32")).tolist() == [-1, 1]  # which the added code refuses


class EagerDevice(StrictDevice):
    """Has an eager kernel for sign, and for abs."""

    def __init__(self) -> None:
        super().__init__()
        self.eager = {"sign": lambda x: x, "abs": lambda x: x}


def test_added_code_goes_before_eager_kernels_too() -> None:
    stacks.registry.add("strict:1", EagerDevice)
    x = x_on("strict:1")
    for _ in range(2):
        assert nnc.sign(x).tolist() == nnc.abs(x).tolist() == [-1.5, 2.5]
    register(nnc_register=add_loud)
    for _ in range(2):
        assert nnc.sign(x).tolist() == [77, 77] and nnc.abs(x).tolist() == [-1.5, 2.5]


def test_code_that_cannot_be_made_is_left_out_with_a_warning() -> None:
    def broken(device: Device) -> Any:
        raise RuntimeError("no library")

    def add(registry: BackendRegistry) -> None:
        registry.add_backend("strict", "sign", broken)
        registry.add_backend("strict", "abs", lambda device: "no backend")  # type: ignore[arg-type, return-value]

    register(nnc_register=add)
    with pytest.warns(FallbackWarning) as caught:
        assert nnc.sign(nnc.abs(x_on())).tolist() == [1, 1]
    said = [str(warning.message) for warning in caught]
    assert "plugin added for sign on strict:0 is left out: RuntimeError: no library" in said[0]
    assert "for abs on strict:0 is left out: TypeError: gave str, expected a CommandBackend" in said[1]


@pytest.mark.parametrize("tag", sorted(TAGS))
def test_a_plugin_adds_rewrites(tag: str) -> None:
    asked = []

    def passes(pipeline: Pipeline) -> None:
        @pipeline.rewrite("sign-of-abs", "sign", tag=tag)
        def sign_of_abs(F: Any, node: Any) -> Any:
            asked.append(node)
            return F.abs(node.inputs[0])

    register(nnc_passes=passes)
    assert nnc.sign(x_on()).tolist() == [-1, 1] and not asked
    assert nnc.jit(lambda x: nnc.sign(x))(x_on()).tolist() == [1.5, 2.5]
    assert REWRITES["added:sign-of-abs"].tags == {tag}
    with nnc.config.using(deterministic=True):
        assert nnc.jit(lambda x: nnc.sign(x) + 0)(x_on()).tolist() == [1.5, 2.5]


@pytest.mark.parametrize(("give", "said"), [
    (lambda F, node: 1 / 0, "rewrite added:wrong failed: ZeroDivisionError"),
    (lambda F, node: F.sum(node.inputs[0], axis=(0,)), r"rewrite added:wrong gives float32\[\] for float32\[2\]"),
    (lambda F, node: 3, "rewrite added:wrong gives int for"),
])
def test_rewrites_that_go_wrong_name_their_plugin(give: Any, said: str) -> None:
    register(nnc_passes=lambda pipeline: pipeline.rewrite("wrong", "sign")(give) and None)
    with pytest.raises(PluginError, match=f"{said}(?s:.*)NNC_PLUGINS_BLOCK=added"):
        nnc.jit(lambda x: nnc.sign(x))(x_on())


@pytest.mark.parametrize(("hooks", "said"), [
    ({"nnc_register": lambda registry: registry.add_backend("strict", "sing", Loud)}, "no operator 'sing'"),
    ({"nnc_register": lambda registry: registry.add_backend("strict", "sign", "loud")}, "the backend of 'sign'"),
    ({"nnc_passes": lambda pipeline: pipeline.rewrite("a", "sing")}, "no operator 'sing'"),
    ({"nnc_passes": lambda pipeline: pipeline.rewrite("a", "sign", tag="quick")}, "the tag 'quick'"),
    ({"nnc_passes": lambda pipeline: [pipeline.rewrite("a", "sign")(len) for _ in "ab"]}, "two rewrites 'added:a'"),
])
def test_mistakes_in_hooks_are_told_and_nothing_of_them_counts(hooks: dict[str, Any], said: str) -> None:
    before = set(REWRITES)
    hook, f = next(iter(hooks.items()))

    def after_something(given: Any) -> None:
        if hook == "nnc_register":
            add_loud(given)
        else:
            given.rewrite("fine", "sign")(lambda F, node: F.abs(node.inputs[0]))
        f(given)

    first = "registry" if hook == "nnc_register" else "pipeline"
    with pytest.warns(PluginWarning, match=said):
        record = register(**{hook: eval(f"lambda {first}: f({first})", {"f": after_something})})
    assert said in record.remarks and set(REWRITES) == before
    assert nnc.jit(nnc.sign)(x_on()).tolist() == [-1, 1]
    stacks.register_plugin(plugin(nnc_register=add_loud), "next")
    assert nnc.sign(x_on()).tolist() == [77, 77]


def test_installed_plugins_extend_core_and_are_given_its_settings(tmp_path: Path) -> None:
    folder = install(tmp_path, "extends")
    install(tmp_path / "helper", "backend")
    code = """
import nnc_core as nnc
nnc.config.trace_limit = 5
with nnc.use_device("strict:0"):
    x = nnc.asarray([-1.5, 2.5], dtype="float32")
    print(nnc.sign(x).tolist(), nnc.jit(lambda x: nnc.sign(x) + 1)(x).tolist())
    print(nnc.jit(lambda x: nnc.floor(nnc.ceil(x)))(x).tolist())
nnc.devices()  # asks all plugins, also those that name no kinds
import fake_extends
print(fake_extends.SEEN == nnc.config.as_dict(), fake_extends.SEEN["trace_limit"])
"""
    (folder / "fake_backend.py").write_text((tmp_path / "helper" / "fake_backend.py").read_text())
    assert run_with([folder], code).splitlines() == ["[77.0, 77.0] [78.0, 78.0]", "[-1.0, 3.0]", "True 5"]


def test_the_doctor_asks_these_hooks_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    install(tmp_path, "extends")  # without the module that its code is in
    monkeypatch.syspath_prepend(str(tmp_path))
    found = probe("extends")
    assert found.state == "probe failed" and "nnc_register: ModuleNotFoundError" in found.detail


def test_without_hooks_of_the_kind_nothing_happens() -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        assert register(nnc_devices=lambda: []).state == "no device"
