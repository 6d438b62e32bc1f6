"""Whose fault an error is: a caller's argument is named, an op's own defect stays what it is."""

from __future__ import annotations

import contextlib
import inspect
import traceback
from typing import Any

import numpy as np
import pytest

import undertow as ut
from op_cases import resolve, tensors
from op_samples import OpInfo, load
from undertow.core.register import guarded

JUNK = [None, "x", object(), 1.5, (None,), {}]


def inside(body: str, signature: str = "input: Tensor, other: Any = None") -> Any:
    """A published function with this body, as if it stood in the library."""
    text = f"from __future__ import annotations\ndef broken({signature}):\n    return {body}\n"
    room: dict[str, Any] = {"__name__": "undertow.ops.broken"}
    exec(compile(text, "broken.py", "exec"), room)
    return guarded(room["broken"], "broken")


@pytest.mark.parametrize(
    "body, error",
    [
        ("input.shpae", AttributeError),  # a misspelt attribute of a good argument
        ("(1j).shape", AttributeError),
        ("['a' + 1 for n in [input]]", TypeError),
        ("'a' + 1", TypeError),  # an operation that has nothing to do with the arguments
        ("len(3)", TypeError),
        ("(lambda a: a)(input, other)", TypeError),  # a wrong call of a function of its own
        ("(lambda a, b: a)(other)", TypeError),
        ("max(key=other)", TypeError),
    ],
)
@pytest.mark.parametrize("other", [None, 0, (1, 2), "text"])
def test_a_defect_of_an_op_stays_what_it_is(body: str, error: type, other: Any) -> None:
    """The author sees the error itself, and where it arose: not a story about the arguments."""
    with pytest.raises(error) as caught:
        inside(body)(ut.ones(2), other)
    assert type(caught.value) is error
    assert caught.value.__cause__ is None
    names = [frame.name for frame in traceback.extract_tb(caught.value.__traceback__)]
    assert "broken" in names


@pytest.mark.parametrize(
    "body, other, message",
    [
        ("[n for n in other]", 3, "'int' object is not iterable.*other=3"),
        ("[n + 1 for n in other]", [1, "a"], r"other=\[1, 'a'\]"),
        ("[max(m, 0) for n in other for m in n]", [[1], ["a"]], r"other=\[\[1\], \['a'\]\]"),
        ("{m: n + 1 for m, n in other.items()}", {1: "a"}, r"other=\{1: 'a'\}"),
        ("max(input, other[0])", 3, "'int' object is not subscriptable.*other=3"),
        ("(lambda sizes: tuple(sizes))(other)", 1.5, "other=1.5"),
        ("range(other)", np.ones(3), "scalar index.*other=array"),
        ("{other}", np.ones(3), "unhashable type.*other=array"),
        ("other.name", "float32", "other='float32'"),
        ("range(other)", "x", "'str' object cannot be interpreted as an integer.*other='x'"),
    ],
)
def test_an_argument_is_named(body: str, other: Any, message: str) -> None:
    """What fails on a caller's argument is an error of ours that shows it."""
    with pytest.raises(ut.errors.DTypeError, match=rf"^\[broken\] .*{message}") as caught:
        inside(body)(ut.ones(2), other)
    assert isinstance(caught.value.__cause__, (TypeError, AttributeError))


def test_an_argument_that_misfits_is_named_whatever_failed() -> None:
    """The annotations come first: a list for a tensor is told before any defect is."""
    with pytest.raises(ut.errors.DTypeError, match=r"^\[broken\] input must be a Tensor, got list"):
        inside("'a' + 1")([1.0])


@pytest.mark.filterwarnings("ignore:.*took dimension:UserWarning")  # a softmax with dim=None
@pytest.mark.parametrize(
    "info", [info for info in load().values() if info.samples], ids=lambda info: info.name
)
def test_junk_is_refused_by_name(info: OpInfo) -> None:
    """Every function takes an argument of a wrong type, or refuses it with an error of ours.

    Not to raise any other error is the point.
    """
    called = resolve(info.name)
    plain = (inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY)
    names = [p.name for p in inspect.signature(called).parameters.values() if p.kind in plain]
    sample = info.samples[0]
    for i in range(max(len(names), len(sample.args))):
        for junk in JUNK:
            args, kwargs = list(tensors(sample.args)), dict(tensors(sample.kwargs))
            if i < len(args):
                args[i] = junk
            else:
                kwargs[names[i]] = junk
            with contextlib.suppress(ut.errors.UndertowError):  # any other error fails the test
                called(*args, **kwargs)
