"""The package under another's name: one set of modules, whatever they are called."""

from __future__ import annotations

import importlib
import importlib.util
import sys
from collections.abc import Iterator

import pytest

import undertow as ut


@pytest.fixture
def stranger() -> Iterator[str]:
    """A name under which `sys.modules` has the package, as a program would put it there."""
    name = "some_other_library"
    sys.modules[name] = ut
    yield name
    for found in [n for n in sys.modules if n.partition(".")[0] == name]:
        del sys.modules[found]


def test_modules_are_the_same(stranger: str) -> None:
    """No file runs twice, at any depth, and what is loaded on demand is loaded once."""
    for (
        path
    ) in "nn nn.functional nn.utils.rnn utils.data optim.lr_scheduler distributions.beta".split():  # noqa: SIM905
        assert importlib.import_module(f"{stranger}.{path}") is importlib.import_module(
            f"undertow.{path}"
        )
    space: dict[str, object] = {}
    exec(f"from {stranger}.nn import Linear\nimport {stranger}.nn.init as init", space)
    assert space["Linear"] is ut.nn.Linear
    assert space["init"] is ut.nn.init
    assert ut.nn.__name__ == "undertow.nn"
    assert ut.nn.__spec__ is not None
    assert ut.nn.__spec__.name == "undertow.nn"


def test_what_is_not_there(stranger: str) -> None:
    """A module that does not exist is missing under the name that was asked for."""
    assert importlib.util.find_spec(f"{stranger}.nn.nothing") is None
    with pytest.raises(ModuleNotFoundError, match=rf"No module named '{stranger}\.nn\.nothing'"):
        importlib.import_module(f"{stranger}.nn.nothing")


def test_an_attribute_of_a_stranger(stranger: str) -> None:
    """Other packages are found as ever."""
    assert importlib.util.find_spec("json.decoder") is not None
    assert importlib.util.find_spec("json.nothing") is None
