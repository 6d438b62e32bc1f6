"""The examples in the docstrings of published functions and Tensor methods, really run.

pytest would run them in the namespace of `undertow`, where `float` and `int` are dtypes; here they
run in an empty one, as a user would type them.
"""

from __future__ import annotations

import doctest
from typing import Any

import pytest

import undertow as ut
from undertow.core import legacy, storage
from undertow.core.register import FUNCTIONAL, FUNCTIONS, SPACES


def documented() -> list[Any]:
    """Everything with an example in its docstring, once."""
    named: dict[int, tuple[str, Any]] = {}
    assert [ut.fft.__all__, ut.special.__all__]  # published when first asked for
    for name, thing in [
        *FUNCTIONS.items(),
        *((f"nn.functional.{n}", f) for n, f in FUNCTIONAL.items()),
        *((f"{space}.{n}", f) for space, table in SPACES.items() for n, f in table.items()),
        *((f"Tensor.{n}", f) for n, f in vars(ut.Tensor).items()),
        # Classes that no module defines by a statement.
        *((n, c) for n, c in (legacy.TYPED | storage.TYPED).items() if hasattr(ut, n)),
        ("Tag", ut.Tag),
    ]:
        if ">>>" in (getattr(thing, "__doc__", None) or ""):
            named.setdefault(id(thing), (name, thing))
    return [pytest.param(name, thing, id=name) for name, thing in named.values()]


@pytest.mark.parametrize("name, thing", documented())
def test_example(name: str, thing: Any) -> None:
    """The output shown is the output printed."""
    options = doctest.NORMALIZE_WHITESPACE | doctest.ELLIPSIS
    test = doctest.DocTestParser().get_doctest(thing.__doc__, {}, name, None, None)
    report: list[str] = []
    failed, _ = doctest.DocTestRunner(optionflags=options).run(test, out=report.append)
    assert not failed, "".join(report)
