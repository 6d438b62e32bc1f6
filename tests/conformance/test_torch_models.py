"""The classifiers beside torch's: their own source, run with torch's modules in place of ours."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.models
from undertow.models import MODELS

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


def in_torch(kind: type) -> Any:
    """A class of `undertow.models`, made of torch's modules."""
    names: dict[str, Any] = {
        "nn": torch.nn,
        "F": torch.nn.functional,
        "Tensor": torch.Tensor,
        "ShapeError": ValueError,
        "FUNCTIONS": {"cat": torch.cat},
    }
    folder = Path(undertow.models.__file__).parent
    for file in ("classifier.py", f"{kind.__module__.rpartition('.')[2]}.py"):
        lines = (folder / file).read_text().splitlines()
        body = [line for line in lines if not line.startswith("from .")]
        exec("\n".join(body), names)
    return names[kind.__name__]


@pytest.mark.filterwarnings("ignore:Using padding='same'")
@pytest.mark.parametrize("name", MODELS)
@pytest.mark.parametrize("training", [True, False])
def test_same_scores_and_gradients(name: str, training: bool) -> None:
    ut.manual_seed(0)
    ours = MODELS[name](2, 3).double().train(training)
    theirs = in_torch(type(ours))(2, 3).double().train(training)
    state = {key: torch.from_numpy(np.array(value)) for key, value in ours.state_dict().items()}
    assert list(state) == list(theirs.state_dict())
    theirs.load_state_dict(state)
    x = np.random.default_rng(0).normal(size=(4, 2, 45))
    classes = np.array([0, 2, 1, 1])
    mine, other = ours(ut.from_numpy(x)), theirs(torch.from_numpy(x))
    np.testing.assert_allclose(mine.detach(), other.detach(), rtol=1e-9, atol=1e-11)
    ut.nn.functional.cross_entropy(mine, ut.from_numpy(classes)).backward()
    torch.nn.functional.cross_entropy(other, torch.from_numpy(classes)).backward()
    for (path, a), (_, b) in zip(ours.named_parameters(), theirs.named_parameters(), strict=True):
        scale = float(b.grad.abs().max()) + 1e-6  # biases before a batch norm have no gradient
        np.testing.assert_allclose(a.grad, b.grad, rtol=1e-7, atol=1e-9 * scale, err_msg=path)
    for (path, a), (_, b) in zip(ours.named_buffers(), theirs.named_buffers(), strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-9, err_msg=path)
