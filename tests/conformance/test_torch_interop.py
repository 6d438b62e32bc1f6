"""Memory shared with torch through DLPack, and torch tensors as data."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow import errors

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance


@pytest.mark.parametrize("dtype", [*ut.dtypes.ALL, *ut.dtypes.FLOAT8], ids=str)
def test_dlpack_with_torch(dtype: Any) -> None:
    x = ut.zeros(2, 3, dtype=dtype)
    theirs = torch.from_dlpack(x)
    assert str(theirs.dtype) == f"torch.{dtype.name}"
    theirs[0, 1] = 1
    assert x[0, 1].item() == 1
    x[1, 1] = 1
    assert theirs[1, 1].item() == 1
    source = torch.zeros(3, 2, dtype=getattr(torch, dtype.name)).T
    ours = ut.from_dlpack(source)
    assert ours.dtype is dtype
    assert ours.stride() == source.stride()
    source[0, 0] = 1
    assert ours[0, 0].item() == 1
    ours[1, 2] = 1
    assert source[1, 2].item() == 1, "memory of torch is writable here"


def test_torch_tensors_as_data() -> None:
    source = torch.arange(4.0)
    copied = ut.tensor(source)
    shared = ut.as_tensor(source)
    source[0] = 9
    assert copied.tolist() == [0, 1, 2, 3]
    assert shared.tolist() == [9, 1, 2, 3]
    with pytest.raises(errors.UnsupportedError, match="cannot share"):
        ut.from_dlpack(torch.empty(2, dtype=torch.float4_e2m1fn_x2))


def test_negative_strides_are_refused_before_torch_sees_them() -> None:
    """torch aborts the process; a contiguous copy, or one made on the way, works."""
    turned = ut.from_numpy(np.arange(6.0).reshape(2, 3)[::-1, ::-1])
    with pytest.raises(errors.UnsupportedError, match="negative strides"):
        torch.from_dlpack(turned)
    assert torch.from_dlpack(turned.contiguous()).tolist() == [[5, 4, 3], [2, 1, 0]]
