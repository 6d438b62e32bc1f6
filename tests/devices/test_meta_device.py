"""The device without memory: shapes and dtypes of every op, models made there and moved."""

from __future__ import annotations

import copy
from typing import Any

import pytest

import undertow as ut
from op_cases import call, flat
from op_samples import TABLE, OpInfo
from undertow import nn
from undertow.errors import UnsupportedError


def kinds(found: Any) -> list[Any]:
    """What can be known of results without elements."""
    return [(t.shape, t.dtype) if isinstance(t, ut.Tensor) else type(t) for t in flat(found)]


@pytest.mark.parametrize("info", TABLE.values(), ids=list(TABLE))
def test_shapes_and_dtypes_are_the_cpus(info: OpInfo) -> None:
    """Of every sample in the table, or the op says that it would have to look at elements."""
    for sample in info.samples:
        try:
            found = kinds(call(info, sample, device="meta"))
        except UnsupportedError as error:
            if "has no elements" not in str(error):
                raise
        else:
            assert found == kinds(call(info, sample, device="cpu"))


def test_a_large_model() -> None:
    """Forward and backward of what would take terabytes."""
    with ut.device("meta"):
        model = nn.Sequential(
            nn.Conv2d(3, 8, 3), nn.BatchNorm2d(8), nn.ReLU(), nn.Flatten(), nn.LazyLinear(10**6)
        )
        x = ut.empty(1000, 3, 500, 500)
    out = model(x)
    assert out.shape == (1000, 10**6)
    assert out.is_meta
    nn.functional.cross_entropy(out, ut.zeros(1000, dtype=ut.int64, device="meta")).backward()
    weight = model[-1].weight
    assert weight.grad is not None
    assert weight.grad.shape == weight.shape == (10**6, 8 * 498 * 498)
    ut.optim.Adam(model.parameters()).step()


@pytest.mark.parametrize(
    "make, shape",
    [
        (lambda: nn.LSTM(4, 5, 2, bidirectional=True), (3, 2, 4)),
        (lambda: nn.TransformerEncoderLayer(16, 2), (5, 2, 16)),
        (lambda: nn.MaxPool2d(3, 2, 1), (2, 3, 9, 9)),
        (lambda: nn.AdaptiveAvgPool2d(2), (2, 3, 9, 9)),
        (lambda: nn.ConvTranspose1d(3, 4, 3), (2, 3, 9)),
        (lambda: nn.GroupNorm(2, 4), (2, 4, 9)),
        (lambda: nn.Dropout(), (2, 4)),
    ],
)
def test_layers(make: Any, shape: Any) -> None:
    expected = make()(ut.ones(shape))
    with ut.device("meta"):
        assert kinds(make()(ut.ones(shape))) == kinds(expected)


def test_from_there_to_a_device() -> None:
    layer = nn.Linear(2, 3, device="meta")
    with pytest.raises(NotImplementedError, match="to_empty"):
        layer.to("cpu")
    assert copy.deepcopy(layer).weight.is_meta
    layer.to_empty(device="cpu")
    nn.init.ones_(layer.weight)
    nn.init.zeros_(layer.bias)
    assert layer(ut.ones(2)).tolist() == [2.0, 2.0, 2.0]
    assert layer.to_empty(device="meta").weight.is_meta
    assert not nn.utils.skip_init(nn.Linear, 2, 3).weight.is_meta


def test_a_state_is_assigned() -> None:
    """Copying it to where nothing is kept is a mistake that is told."""
    state = nn.Linear(2, 3).state_dict()
    layer = nn.Linear(2, 3, device="meta")
    with pytest.warns(UserWarning, match="assign=True"):
        layer.load_state_dict(state)
    assert layer.weight.is_meta
    layer.load_state_dict(state, assign=True)
    assert ut.equal(layer.weight, state["weight"])


def test_text_and_what_is_not_there() -> None:
    x = ut.ones(2, 3, device="meta", requires_grad=True)
    assert repr(x) == "tensor(..., device='meta', size=(2, 3), requires_grad=True)"
    assert repr(x.long()) == "tensor(..., device='meta', size=(2, 3), dtype=undertow.int64)"
    assert x.data_ptr() == 0
    assert ut.ones(3).to("meta").shape == (3,)
    for ask in (x.tolist, x.sum().item, x.nonzero, x.cpu):
        with pytest.raises(NotImplementedError, match="no elements"):
            ask()


@pytest.mark.parametrize(("first", "second"), [("cpu", "meta"), ("meta", "cpu")])
def test_mixed_devices_are_moved_to_where_that_can_be(first, second):
    x, y = ut.ones(2, device=first), ut.ones(2, device=second)
    with pytest.raises(ut.errors.DeviceError, match=r"move one with .to\('meta'\)"):
        x + y


def test_a_number_without_value_is_formatted() -> None:
    """It has no number to show, so it shows itself."""
    x = ut.tensor(2.0, device="meta")
    assert f"{x}" == repr(x)


def test_meshgrid_of_two_devices_is_an_error() -> None:
    with pytest.raises(RuntimeError, match=r"\[meshgrid\] expects tensors on one device"):
        ut.meshgrid(ut.ones(2), ut.ones(2, device="meta"), indexing="ij")


def test_an_old_state_counts_batches_from_zero() -> None:
    """The count is not in checkpoints of old versions; a module without memory begins at 0."""
    with ut.device("meta"):
        norm = ut.nn.BatchNorm1d(2)
    norm.load_state_dict({}, strict=False, assign=True)
    assert norm.num_batches_tracked.device.type == "cpu"
    assert norm.num_batches_tracked == 0
