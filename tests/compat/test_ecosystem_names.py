"""Every name of torch that the packages of the ecosystem suite touch is here, or refuses."""

from __future__ import annotations

import ast

from ecosystem import names

import undertow as ut


def test_no_name_is_missing() -> None:
    """tools/ecosystem/touched.toml lists them; excused.toml says which need not be here."""
    _, packages = names.read()
    touched = {name for listed in packages.values() for name in listed}
    assert len(touched) > 1000
    excuses = names.excused()
    missing = [n for n in sorted(touched - set(excuses)) if names.state(n) == "missing"]
    assert missing == []
    assert set(excuses) <= touched


def test_states() -> None:
    """A name that does nothing but raise is refused."""

    def refused() -> None:
        """An error."""
        raise ut.errors.UnsupportedError("never")

    assert names.refuses(refused)
    assert not names.refuses(ut.nn.Linear)
    assert names.state("nn.Linear") == "real"
    assert names.state("nn.Nothing") == "missing"


def test_what_a_source_touches() -> None:
    """Imports under any name, chains of attributes and questions by name."""
    source = """
import torch.nn.functional as F
from torch import nn as layers
import torch
def f(x):
    if hasattr(torch, "compile"):
        return F.relu(layers.init.zeros_(x.mean()))
"""
    visitor = names.Touched()
    visitor.generic_visit(ast.parse(source))
    assert visitor.names >= {
        "torch.nn.functional",
        "torch.nn.functional.relu",
        "torch.nn.init.zeros_",
        "torch.compile",
    }
    assert "mean" in visitor.attributes
