"""The hooks of plugins, found by pluggy and called one plugin at a time.

pluggy's own call loop stops at the first plugin that raises: here the caller sees to each plugin by itself.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterator, Mapping
from typing import Any

import pluggy

from nnc_plugins import hookspecs
from nnc_plugins.hookspecs import API, PROJECT


class IncompatiblePlugin(Exception):  # noqa: N818 - it never reaches a caller: it ends in the plugin's record
    """A plugin whose hooks are not those of this API."""


class Hooks:
    """The hooks of the plugins that are registered, by the plugins' names."""

    def __init__(self) -> None:
        self._plugins = pluggy.PluginManager(PROJECT)
        self._plugins.add_hookspecs(hookspecs)

    def __contains__(self, name: str) -> bool:
        return self._plugins.has_plugin(name)

    def register(self, plugin: object, name: str) -> None:
        """Take in the functions of a plugin that are marked with hookimpl."""
        self._plugins.register(plugin, name)

    def forget(self, name: str) -> None:
        """Call the plugin no more, if it is registered."""
        if name in self:
            self._plugins.unregister(name=name)

    def implements(self, name: str, hook: str) -> bool:
        """True if the plugin has such a hook."""
        return self._implementation(name, hook) is not None

    def call(self, name: str, hook: str, arguments: Mapping[str, Any]) -> tuple[Any] | None:
        """The result of one plugin's hook in a tuple, what it yields as a list; None if it has no such hook.

        The hook is given those of the arguments that it takes.  What it raises is raised.
        """
        implementation = self._implementation(name, hook)
        if implementation is None:
            return None
        taken = inspect.signature(implementation.function).parameters
        result = implementation.function(**{key: value for key, value in arguments.items() if key in taken})
        return (list(result),) if inspect.isgenerator(result) else (result,)

    def never_called(self, name: str) -> Iterator[str]:
        """The hooks of a plugin that this API does not have, each as a remark about them.

        Raises IncompatiblePlugin unless the plugin has hooks, and none that cannot be called by itself.
        """
        callers = self._plugins.get_hookcallers(self._plugins.get_plugin(name)) or []
        if not callers:
            raise IncompatiblePlugin("implements no hooks; mark its functions with nnc_plugins.hookimpl")
        for caller in callers:
            implementation = self._implementation(name, caller.name)
            if implementation is None:
                continue
            if implementation.wrapper or implementation.hookwrapper:
                raise IncompatiblePlugin(f"{caller.name!r} is a hook wrapper; nnc calls plugins one by one")
            if not caller.has_spec() and not implementation.optionalhook:
                yield (f"implements {caller.name!r}, which plugin API {dotted(API)} does not have: it is never called; "
                       "upgrade nnc-core or mark it hookimpl(optionalhook=True)")

    def _implementation(self, name: str, hook: str) -> pluggy.HookImpl | None:
        implementations = getattr(self._plugins.hook, hook).get_hookimpls()
        return next((i for i in implementations if i.plugin_name == name), None)


def dotted(api: tuple[int, int]) -> str:
    """A version of the API as text."""
    return ".".join(map(str, api))
