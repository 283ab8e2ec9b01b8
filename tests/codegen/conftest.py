"""The C99 runner of all cases that a session's tests ask for: one compilation."""

from __future__ import annotations

from typing import Any

import pytest

from tests.codegen.compiled import Runner, compile_c99, compiler
from tests.codegen.nests import Case


@pytest.fixture(scope="session")
def c99(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Runner:
    if compiler() is None:
        pytest.skip("no C compiler (cc, gcc or clang) on the path")
    asking: list[Any] = [item for item in request.session.items if "c99" in getattr(item, "fixturenames", ())]
    cases: dict[str, Case] = {item.callspec.params["case"].name: item.callspec.params["case"] for item in asking}
    return compile_c99({name: case.nest for name, case in cases.items()}, tmp_path_factory.mktemp("c99"))
