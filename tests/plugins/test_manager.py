"""The manager: every plugin for itself, and every failure told once."""

from __future__ import annotations

import os
import subprocess
import sys
import warnings
from collections.abc import Callable, Iterable, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest

from nnc_plugins import API, DeviceOffer, Manager, PluginWarning, hookimpl, hookspecs
from tests.plugins.fixtures.distributions import ROOT, run_with


def plugin(**hooks: Callable[..., Any]) -> SimpleNamespace:
    """An object with the hooks given, marked as implementations."""
    return SimpleNamespace(**{name: hookimpl(function) for name, function in hooks.items()})


def offering(*ids: str, opener: Callable[[], Any] = object) -> SimpleNamespace:
    return plugin(nnc_devices=lambda options: [DeviceOffer(id, opener) for id in ids])


def raising(error: BaseException) -> Callable[..., Any]:
    def hook() -> Any:
        raise error

    return hook


class Registry:
    def __init__(self) -> None:
        self.openers: dict[str, Callable[[], Any]] = {}
        self.texts: dict[str, tuple[str, ...]] = {}

    def add(self, id: str, open: Callable[[], Any], testing: bool, texts: Sequence[str]) -> None:
        assert id not in self.openers
        self.texts[id] = tuple(texts)
        self.openers[id] = open


# --- registered by the program ---


def test_offers_come_in_the_order_of_registration_and_are_not_opened() -> None:
    opened: list[str] = []
    manager = Manager()
    manager.register(offering("b:0", "b:1", opener=lambda: opened.append("b")), "b")
    manager.register(offering("a:0"), "a")
    assert list(manager.offers()) == ["b:0", "b:1", "a:0"]
    assert list(map(str, manager.records)) == ["b (registered by the program): ok, b:0, b:1",
                                               "a (registered by the program): ok, a:0"]
    assert opened == []


def test_a_plugin_without_devices_is_no_failure() -> None:
    manager = Manager()
    manager.register(offering(), "none")
    manager.register(plugin(nnc_passes=lambda pipeline: None), "passes")
    assert manager.offers() == {}
    assert [(r.state, r.detail) for r in manager.records] == [("no device", ""), ("ok", "adds no devices")]


@pytest.mark.parametrize("error", [OSError("driver\nbroken"), SystemExit(3), BaseException("panic")])
def test_a_raising_hook_leaves_the_other_plugins_alone(error: BaseException) -> None:
    manager = Manager()
    bad = manager.register(plugin(nnc_devices=raising(error)), "bad")
    manager.register(offering("good:0"), "good")
    with pytest.warns(PluginWarning, match="plugin bad .*probe failed, nnc_devices: ") as caught:
        assert list(manager.offers()) == ["good:0"]
    assert len(caught) == 1
    assert bad.state == "probe failed"
    assert bad.error is error
    assert bad.detail == f"nnc_devices: {type(error).__name__}: {str(error).replace(chr(10), ' ')}"


def test_an_interrupt_of_the_user_is_not_swallowed() -> None:
    manager = Manager()
    record = manager.register(plugin(nnc_devices=raising(KeyboardInterrupt())), "slow")
    with pytest.raises(KeyboardInterrupt):
        manager.offers()
    assert record.state == "loaded"


def test_a_generator_that_raises_halfway_offers_nothing() -> None:
    def nnc_devices() -> Iterable[DeviceOffer]:
        yield DeviceOffer("half:0", object)
        raise RuntimeError("second device")

    manager = Manager()
    record = manager.register(plugin(nnc_devices=nnc_devices), "half")
    with pytest.warns(PluginWarning):
        assert manager.offers() == {}
    assert (record.state, record.detail) == ("probe failed", "nnc_devices: RuntimeError: second device")


@pytest.mark.parametrize(("result", "complaint"), [
    (None, "NoneType"),
    (["cpu:0"], "expected nnc_plugins.DeviceOffer"),
    ([DeviceOffer("cpu", object)], "expected kind and number"),
    ([DeviceOffer("CPU:0\n", object)], "expected kind and number"),
    ([DeviceOffer("cpu:0", "cpu")], "expected a function"),
    ([DeviceOffer("cpu:0", object, uid=5)], "`uid` is int, expected a text"),
])  # fmt: skip
def test_what_is_no_offer_is_the_fault_of_its_plugin(result: Any, complaint: str) -> None:
    manager = Manager()
    record = manager.register(plugin(nnc_devices=lambda: result), "odd")
    with pytest.warns(PluginWarning, match=complaint):
        assert manager.offers() == {}
    assert record.state == "probe failed"


def test_failures_are_told_once_and_listed_once() -> None:
    calls: list[int] = []
    manager = Manager()
    manager.register(plugin(nnc_devices=lambda: calls.append(1)), "bad")
    with pytest.warns(PluginWarning):
        manager.offers()
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        manager.offers()
    assert calls == [1]


def test_where_warnings_are_errors_each_is_raised_once_and_devices_are_there_afterwards() -> None:
    manager = Manager()
    for name in ("bad", "worse"):
        manager.register(plugin(nnc_devices=raising(OSError())), name)
    manager.register(offering("good:0"), "good")
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        for name in ("bad", "worse"):
            with pytest.raises(PluginWarning, match=f"plugin {name} "):
                manager.offers()
        assert list(manager.offers()) == ["good:0"]


def test_the_first_offer_of_an_id_keeps_it() -> None:
    manager = Manager()
    manager.register(offering("x:0"), "first")
    second = manager.register(offering("x:0", "x:1", "x:1"), "second")
    with pytest.warns(PluginWarning) as caught:
        offers = manager.offers()
    assert list(offers) == ["x:0", "x:1"]
    assert offers["x:0"] is manager.records[0].offers[0]
    assert (second.state, second.detail) == ("ok", "x:1")
    assert second.notes == ["device 'x:0' is already offered by plugin 'first', ignored",
                            "device 'x:1' is offered twice, the second is ignored"]
    assert [str(w.message).partition(": ")[2] for w in caught] == second.notes


def test_the_first_plugin_of_a_name_keeps_it() -> None:
    manager = Manager()
    manager.register(offering("x:0"), "name")
    second = manager.register(offering("x:1"), "name")
    with pytest.warns(PluginWarning, match="blocked, the name 'name' is taken"):
        assert list(manager.offers()) == ["x:0"]
    assert second.state == "blocked"


def test_a_name_is_free_again_after_a_failed_import() -> None:
    manager = Manager()
    assert manager.register(object(), "name").state == "incompatible"
    assert manager.register(offering("x:0"), "name").state == "loaded"


@pytest.mark.parametrize(("api", "state"), [((1, 0), "loaded"), ((API[0], API[1] + 1), "incompatible"),
                                            ((2, 0), "incompatible"), ((0, 9), "incompatible")])
def test_the_api_that_a_plugin_needs(api: tuple[int, int], state: str) -> None:
    record = Manager().register(plugin(nnc_plugin_info=lambda: {"name": "p", "api": api}), "p")
    assert record.state == state
    assert record.info["name"] == "p"


@pytest.mark.parametrize("info", [None, {}, {"api": "one"}, {"api": (1, "0")}])
def test_a_plugin_that_cannot_say_who_it_is(info: Any) -> None:
    record = Manager().register(plugin(nnc_plugin_info=lambda: info), "p")
    assert record.state == "probe failed"
    assert record.detail.startswith("nnc_plugin_info: ")


def test_hooks_that_this_api_does_not_have() -> None:
    manager = Manager()
    unknown = manager.register(plugin(nnc_teleport=lambda: None), "unknown")
    optional = SimpleNamespace(nnc_teleport=hookimpl(optionalhook=True)(lambda: None))
    argument = manager.register(plugin(nnc_devices=lambda options, colour: []), "argument")
    assert unknown.state == "loaded"
    assert "implements 'nnc_teleport', which plugin API 1.0 does not have: it is never called" in unknown.remarks
    with pytest.warns(PluginWarning) as caught:
        manager.offers()
    assert "plugin unknown (registered by the program): implements 'nnc_teleport'" in str(caught[0].message)
    assert unknown.state == "ok"
    assert manager.register(optional, "optional").state == "loaded"
    assert argument.state == "import failed"
    assert "colour" in argument.detail


def test_hook_wrappers_are_refused() -> None:
    @hookimpl(wrapper=True)
    def nnc_devices() -> Any:
        return (yield)

    record = Manager().register(SimpleNamespace(nnc_devices=nnc_devices), "wrapper")
    assert record.state == "incompatible"
    assert "wrapper" in record.detail


def test_implementations_take_any_of_the_arguments_by_keyword() -> None:
    seen: dict[str, Any] = {}

    def keyword_only(*, options: Any) -> list[Any]:
        seen["keyword only"] = options["deterministic"]
        return []

    def with_default(options: Any = None) -> list[Any]:
        seen["default"] = options["deterministic"]
        return []

    manager = Manager({"deterministic": True})
    manager.register(plugin(nnc_devices=keyword_only), "keyword only")
    manager.register(plugin(nnc_devices=with_default), "default")
    manager.register(plugin(nnc_devices=lambda: []), "none")
    manager.offers()
    assert [r.state for r in manager.records] == ["no device"] * 3
    assert seen == {"keyword only": True, "default": True}
    with pytest.raises(TypeError):
        manager.options["deterministic"] = False  # type: ignore[index]


def test_a_plugin_may_ask_for_devices_while_it_lists_its_own() -> None:
    manager = Manager()
    manager.register(offering("a:0"), "a")
    seen: list[list[str]] = []
    manager.register(plugin(nnc_devices=lambda: seen.append(list(manager.offers())) or []), "curious")
    assert list(manager.offers()) == ["a:0"]
    assert seen == [["a:0"]]


def test_fill_adds_each_device_once_and_late_ones_later() -> None:
    manager, registry, other = Manager(), Registry(), Registry()
    device = SimpleNamespace(spec=SimpleNamespace(id="a:0"))
    manager.register(offering("a:0", "a:1", opener=lambda: device), "a")
    manager.fill(registry)
    manager.register(offering("b:0"), "b")
    manager.fill(registry)
    manager.fill(other)
    assert list(registry.openers) == list(other.openers) == ["a:0", "a:1", "b:0"]
    assert registry.openers["a:0"]() is device


def test_the_parts_of_a_stable_name_are_what_a_device_is_found_by() -> None:
    manager, registry = Manager(), Registry()
    offers = [DeviceOffer("a:0", object, "An A", uid="a:acme/driver/model"), DeviceOffer("a:1", object, "Another")]
    manager.register(plugin(nnc_devices=lambda: offers), "a")
    manager.fill(registry)
    assert registry.texts == {"a:0": ("a:acme", "driver", "model", "An A"), "a:1": ("Another",)}


def of_kinds(*kinds: str, ids: Iterable[str], asked: list[str]) -> SimpleNamespace:
    """A plugin that names the kinds of its devices, and notes when it is asked for these."""
    def devices() -> list[DeviceOffer]:
        asked.append(kinds[0])
        return [DeviceOffer(id, object) for id in ids]

    return plugin(nnc_plugin_info=lambda: {"name": kinds[0], "api": API, "kinds": kinds}, nnc_devices=devices)


def test_a_plugin_is_asked_only_for_devices_of_its_kinds() -> None:
    manager, registry = Manager(), Registry()
    asked: list[str] = []
    slow = manager.register(of_kinds("slow", ids=["slow:0"], asked=asked), "slow")
    manager.register(of_kinds("quick", "both", ids=["both:0", "quick:0"], asked=asked), "quick")
    manager.register(offering("any:0"), "any")
    manager.fill(registry, "quick")
    assert (asked, list(registry.openers), slow.state) == (["quick"], ["both:0", "quick:0"], "loaded")
    manager.fill(registry, "any")
    assert list(registry.openers) == ["both:0", "quick:0", "any:0"]  # it names no kinds and is called so
    manager.fill(registry)
    manager.fill(registry)
    assert (asked, list(registry.openers), slow.state) == (
        ["quick", "slow"], ["both:0", "quick:0", "any:0", "slow:0"], "ok")


def test_a_device_of_a_kind_that_the_plugin_does_not_name_is_ignored() -> None:
    manager = Manager()
    record = manager.register(of_kinds("slow", ids=["slow:0", "other:0"], asked=[]), "slow")
    with pytest.warns(PluginWarning, match="'other:0' is of no kind that the plugin names"):
        assert list(manager.offers()) == ["slow:0"]
    assert record.state == "ok"


def test_an_error_while_opening_names_the_plugin() -> None:
    manager, registry = Manager(), Registry()
    manager.register(offering("a:0", opener=raising(MemoryError("full"))), "a")
    manager.fill(registry)
    with pytest.raises(MemoryError, match="full") as caught:
        registry.openers["a:0"]()
    assert caught.value.__notes__ == ["a:0 is offered by plugin a (registered by the program)"]


def test_collectors_of_hooks_that_return_are_given_once_and_others_are_isolated() -> None:
    manager = Manager()
    error = RuntimeError("no")

    def half(pipeline: list[str]) -> None:
        pipeline.append("half")
        raise error

    bad = manager.register(plugin(nnc_passes=half, nnc_devices=lambda: []), "bad")
    good = manager.register(plugin(nnc_passes=lambda pipeline: pipeline.append("whole")), "good")
    manager.register(offering(), "other")
    with pytest.warns(PluginWarning, match="nnc_passes: RuntimeError: no"):
        assert manager.collect("nnc_passes", "pipeline", lambda record: list[str]()) == [(good, ["whole"])]
    assert bad.usable
    assert (bad.notes, bad.error) == (["nnc_passes: RuntimeError: no"], error)
    late = manager.register(plugin(nnc_passes=lambda: None), "late")
    assert manager.collect("nnc_passes", "pipeline", lambda record: list[str]()) == [(late, [])]


def test_a_plugin_whose_registration_fails_offers_nothing_any_more() -> None:
    manager = Manager()
    half = offering("half:0")
    half.nnc_register = hookimpl(raising(RuntimeError("no kernels")))
    record = manager.register(half, "half")
    assert list(manager.offers()) == ["half:0"]
    with pytest.warns(PluginWarning, match="no kernels"):
        manager.collect("nnc_register", "registry", lambda record: object())
    assert record.state == "probe failed"
    assert manager.offers() == {}


def test_every_hook_says_what_to_return() -> None:
    hooks = {name: f for name, f in vars(hookspecs).items() if name.startswith("nnc_")}
    assert list(hooks) == ["nnc_plugin_info", "nnc_devices", "nnc_register", "nnc_passes", "nnc_transfer",
                           "nnc_diagnose"]
    for function in hooks.values():
        assert "return" in function.__doc__.lower()


# --- the package itself ---


def test_nnc_plugins_imports_nothing_of_core() -> None:
    code = ("import sys, nnc_plugins.doctor, nnc_plugins.examination, nnc_plugins.pytest_options; "
            "print([m for m in sys.modules if m.partition('.')[0] in ('nnc_core', 'numpy', 'pytest')])")
    assert run_with([], code) == "[]\n"


def test_pytest_knows_the_options_of_the_kit(tmp_path: Path) -> None:
    environment = {**os.environ, "PYTHONPATH": str(ROOT), "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"}
    result = subprocess.run([sys.executable, "-m", "pytest", "-p", "nnc_plugins.pytest_options", "--help"],
                            cwd=tmp_path, env=environment, capture_output=True, text=True, check=True)
    assert "--nnc-device=ID" in result.stdout
    assert "--nnc-xfails=FILE" in result.stdout and "--nnc-one-dtype-in=N" in result.stdout
