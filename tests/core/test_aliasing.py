"""Which functions may return a view: for every sample of the op table, whose memory a result is."""

from __future__ import annotations

import pytest

import undertow as ut
from op_cases import TABLE, sharing

# These return their argument, or a view of it, where torch does; see test_torch_ops.py.
# Everything else returns memory of its own, so that a later in-place change cannot show through.
MAY_SHARE = {
    "Tensor.contiguous",
    "linalg.diagonal",
    "Tensor.expand",
    "Tensor.expand_as",
    "Tensor.reshape_as",
    "Tensor.unfold",
    "Tensor.view",
    "Tensor.view_as",
    "adjoint",
    "as_strided",
    "as_tensor",
    "asarray",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "broadcast_tensors",
    "broadcast_to",
    "cartesian_prod",
    "chunk",
    "conj",
    "conj_physical",
    "diagonal",
    "dsplit",
    "einsum",
    "flatten",
    "histogramdd",
    "hsplit",
    "imag",
    "meshgrid",
    "moveaxis",
    "movedim",
    "narrow",
    "alpha_dropout",
    "dropout",
    "feature_alpha_dropout",
    "feature_dropout",
    "nn.functional.alpha_dropout",
    "nn.functional.dropout",
    "nn.functional.dropout1d",
    "nn.functional.dropout2d",
    "nn.functional.dropout3d",
    "nn.functional.feature_alpha_dropout",
    "permute",
    "positive",
    "ravel",
    "real",
    "reshape",
    "resolve_conj",
    "resolve_neg",
    "select",
    "split",
    "split_with_sizes",
    "squeeze",
    "swapaxes",
    "swapdims",
    "t",
    "tensor_split",
    "transpose",
    "unbind",
    "unflatten",
    "unsqueeze",
    "view_as_complex",
    "view_as_real",
    "vsplit",
}
MAY_SHARE |= {name for name in TABLE if name.endswith("_") or name.startswith("unsafe_")}


@pytest.mark.parametrize("grad", [False, True], ids=["plain", "recorded"])
@pytest.mark.parametrize("name", TABLE)
def test_only_view_functions_return_views(name: str, grad: bool) -> None:
    """A result shares memory with an input only if the function is known for it, and then does."""
    shares = any(s for sample in sharing(TABLE[name], grad) for row in sample for s in row)
    assert shares == (name in MAY_SHARE)


def test_memory_set_by_data_is_not_that_of_saved_outputs() -> None:
    """A node that saved its output has the old memory, which nobody changed; as in torch."""
    x = ut.tensor([1.0, -2.0], requires_grad=True)
    y = (x * 1).relu()
    z = y * 3
    y.data = ut.tensor([5.0, 6.0])
    assert y.tolist() == [5.0, 6.0]
    z.sum().backward()
    assert x.grad is not None
    assert x.grad.tolist() == [3.0, 0.0]
    w = x.exp()
    out = w * w  # saves the tensor itself
    w.data = ut.ones(2)
    with pytest.raises(ut.errors.VersionError):
        out.sum().backward()


def test_memory_set_to_itself_is_no_change() -> None:
    """So a module that is cast to the dtype that it has does not spoil a graph; as in torch."""
    layer = ut.nn.Linear(2, 2)
    x = ut.ones(3, 2, requires_grad=True)
    y = layer(x)
    layer.to(ut.float32)
    y.sum().backward()
    assert x.grad is not None
    assert ut.allclose(x.grad, layer.weight.detach().sum(0).expand(3, 2))
