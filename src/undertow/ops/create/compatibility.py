"""What programs ask a tensor for on the way: where it is, how it is stored, old methods.

Of what has no meaning here nothing is pretended: a question is answered truthfully, a request that
changes nothing (pinned memory, a stream to wait for) returns at once, and one for a device that
is not there is an error.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from importlib import import_module
from typing import Any

from ...core.dispatch import sum_to
from ...core.foreign import NUMBERS
from ...core.legacy import construct
from ...core.modes import current, no_grad
from ...core.other_kinds import OtherKind
from ...core.register import FUNCTIONS, attach, function
from ...core.tensor import Tensor, differentiated, wrap_shared
from ...core.tensor import share as shared
from ...devices import DeviceLike
from ...errors import ArgumentError, DTypeError, GradientError, ShapeError, UnsupportedError
from ...layouts import layout as Layout
from ...layouts import sparse_bsc, sparse_bsr, sparse_csc, sparse_csr, strided
from ...shapes import Ints, as_shape
from ..reduce.scan import accumulator


# Where it is, and how it is stored ----------------------------------------------------------
def _on(type: str) -> property:
    def ask(self: Tensor) -> bool:
        return self.device.type == type

    ask.__name__ = f"is_{type}"
    return property(ask, doc=f"Whether it is on a {type!r} device.")


for _type in ("cpu", "cuda", "ipu", "maia", "meta", "mps", "mtia", "vulkan", "xla", "xpu"):
    attach(f"is_{_type}", _on(_type))


def _never(name: str, what: str) -> property:
    def ask(self: Tensor) -> bool:
        return False

    ask.__name__ = name
    return property(ask, doc=f"Whether it is {what}: a Tensor never is.")


for _name, _what in {
    "is_mkldnn": "in oneDNN's layout",
    "is_nested": "nested",
    "is_quantized": "quantised",
    "is_sparse": "sparse",
    "is_sparse_csr": "sparse by rows",
}.items():
    attach(_name, _never(_name, _what))


def _layout(self: Tensor) -> Layout:
    return strided


_layout.__name__ = "layout"
attach("layout", property(_layout, doc="How its elements are stored: `ut.strided`."))


def get_device(self: Tensor) -> int:
    """The number of its device; -1 for the CPU.

    >>> import undertow as ut
    >>> ut.ones(2).get_device()
    -1
    """
    return -1 if self.device.type == "cpu" else self.device.index or 0


def cuda(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """The tensor on a CUDA device; an error where there is none.

    >>> import undertow as ut
    >>> x = ut.ones(2)
    >>> y = x.cuda() if ut.cuda.is_available() else x
    """
    return self.to(_numbered("cuda", device))


def xpu(
    self: Tensor, device: Any = None, non_blocking: bool = False, memory_format: Any = None
) -> Tensor:
    """The tensor on an XPU device; an error where there is none.

    >>> import undertow as ut
    >>> x = ut.ones(2)
    >>> y = x.xpu() if ut.xpu.is_available() else x
    """
    return self.to(_numbered("xpu", device))


def _numbered(type: str, device: Any) -> Any:
    return f"{type}:{device}" if isinstance(device, int) else type if device is None else device


def pin_memory(self: Tensor, device: DeviceLike | None = None) -> Tensor:
    """The tensor itself: no device here copies faster from pinned memory.

    >>> import undertow as ut
    >>> x = ut.ones(2)
    >>> x.pin_memory() is x
    True
    """
    return self


def is_pinned(self: Tensor, device: DeviceLike | None = None) -> bool:
    """Whether its memory is pinned: never.

    >>> import undertow as ut
    >>> ut.ones(2).pin_memory().is_pinned()
    False
    """
    return False


def record_stream(self: Tensor, stream: Any) -> None:
    """Nothing: an operation has ended when it returns.

    >>> import undertow as ut
    >>> ut.ones(2).record_stream(None)
    """


def is_shared(self: Tensor) -> bool:
    """Whether other processes see its memory: no.

    >>> import undertow as ut
    >>> ut.ones(2).is_shared()
    False
    """
    return False


def share_memory_(self: Tensor) -> Tensor:
    """An error: memory is not shared in place; a DataLoader's workers do it by themselves.

    >>> import undertow as ut
    >>> ut.ones(2).share_memory_()
    Traceback (most recent call last):
    undertow.errors.UnsupportedError: [share_memory_] memory is not moved to where other ...
    """
    raise UnsupportedError(
        "[share_memory_] memory is not moved to where other processes see it; send the tensor "
        "through a queue of undertow.multiprocessing, which copies it"
    )


def is_same_size(self: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).is_same_size(ut.ones(2, 3)), ut.zeros(2, 3).is_same_size(ut.ones(3, 2))
    (True, False)
    """
    return self.shape == other.shape


def is_set_to(self: Tensor, tensor: Tensor) -> bool:
    """Whether two tensors are the same memory in the same way: shape, strides and start.

    >>> import undertow as ut
    >>> x = ut.zeros(4)
    >>> x.is_set_to(x[:]), x.is_set_to(x.view(2, 2)), x.is_set_to(x.clone())
    (True, False, False)
    """
    return (
        self.shape == tensor.shape
        and self.stride() == tensor.stride()
        and self.dtype is tensor.dtype
        and self.data_ptr() == tensor.data_ptr()
    )


def is_nonzero(self: Tensor) -> bool:
    """Whether its one element is not zero.

    >>> import undertow as ut
    >>> ut.tensor([3.0]).is_nonzero(), ut.tensor(0).is_nonzero()
    (True, False)
    """
    return bool(self)


def is_conj(self: Tensor) -> bool:
    """Whether it is a conjugation that waits to be done: never, it is done at once.

    >>> import undertow as ut
    >>> x = ut.tensor([1 + 2j])
    >>> x.conj().is_conj(), x.conj()
    (False, tensor([1.-2.j]))
    """
    return False


def is_neg(self: Tensor) -> bool:
    """Whether it is a negation that waits to be done: never, it is done at once.

    >>> import undertow as ut
    >>> ut.ones(2).neg().is_neg()
    False
    """
    return False


def is_distributed(self: Tensor) -> bool:
    """Whether it lies on several machines: no.

    >>> import undertow as ut
    >>> ut.ones(2).is_distributed()
    False
    """
    return False


def dim_order(self: Tensor, *, ambiguity_check: Any = False) -> tuple[int, ...]:
    """The dimensions from the largest stride to the smallest.

    With `ambiguity_check` it is an error where memory allows several orders.

    >>> import undertow as ut
    >>> x = ut.zeros(1, 8, 8, 3)
    >>> x.dim_order(), x.permute(0, 3, 1, 2).dim_order()
    ((0, 1, 2, 3), (0, 2, 3, 1))
    """
    strides = self.stride()
    steps = [strides[d] for d in range(self.ndim) if self.shape[d] != 1]
    if ambiguity_check and (0 in steps or len(set(steps)) < self.ndim):
        raise ArgumentError(
            f"[dim_order] a tensor of shape {self.shape} and strides {strides} has several orders"
        )
    return tuple(sorted(range(self.ndim), key=lambda d: (-strides[d], d)))


def const_data_ptr(self: Tensor) -> int:
    """The address of the first element.

    >>> import undertow as ut
    >>> x = ut.zeros(3)
    >>> x.const_data_ptr() == x.data_ptr()
    True
    """
    return self.data_ptr()


def to_dense(self: Tensor, dtype: Any = None, *, masked_grad: bool | None = None) -> Tensor:
    """The tensor itself, in another dtype if one is given: it is dense already.

    >>> import undertow as ut
    >>> ut.tensor([0.0, 2.0]).to_sparse().to_dense()
    tensor([0., 2.])
    >>> ut.tensor([0.0, 2.0]).to_dense()
    tensor([0., 2.])
    """
    return self if dtype is None else self.to(dtype)


def sparse_dim(self: Tensor) -> int:
    """0: a dense tensor has no sparse dimensions.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).sparse_dim(), ut.zeros(2, 3).to_sparse().sparse_dim()
    (0, 2)
    """
    return 0


def dense_dim(self: Tensor) -> int:
    """The number of its dimensions: all are dense.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).dense_dim()
    2
    """
    return self.ndim


def to_sparse(
    self: Tensor,
    sparse_dim: int | None = None,
    *,
    layout: Any = None,
    blocksize: Any = None,
    dense_dim: int | None = None,
) -> Any:
    """The elements that are not zero with their coordinates, or by rows: see `ut.sparse`.

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse()
    tensor(indices=tensor([[0, 1],
                           [1, 1]]),
           values=tensor([2., 3.]),
           size=(2, 2), nnz=2, layout=undertow.sparse_coo)
    """
    return import_module("undertow.sparse").to_sparse(
        self, sparse_dim, layout=layout, blocksize=blocksize, dense_dim=dense_dim
    )


def to_sparse_coo(self: Tensor) -> Any:
    """The elements that are not zero with their coordinates: `to_sparse()`.

    >>> import undertow as ut
    >>> ut.tensor([0.0, 2.0, 0.0, 3.0]).to_sparse_coo().indices()
    tensor([[1, 3]])
    """
    return to_sparse(self)


def to_sparse_csr(self: Tensor, dense_dim: int | None = None) -> Any:
    """The matrix by rows, of which the elements that are not zero are stored.

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csr().crow_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(self, layout=sparse_csr, dense_dim=dense_dim)


def to_sparse_csc(self: Tensor, dense_dim: int | None = None) -> Any:
    """The matrix by columns, of which the elements that are not zero are stored.

    >>> import undertow as ut
    >>> ut.tensor([[0.0, 2.0], [0.0, 3.0]]).to_sparse_csc().ccol_indices()
    tensor([0, 0, 2])
    """
    return to_sparse(self, layout=sparse_csc, dense_dim=dense_dim)


def to_sparse_bsr(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The matrix by rows, of which the blocks that are not zero are stored.

    >>> import undertow as ut
    >>> ut.eye(4).to_sparse_bsr((2, 2)).crow_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(self, layout=sparse_bsr, blocksize=blocksize, dense_dim=dense_dim)


def to_sparse_bsc(self: Tensor, blocksize: Any, dense_dim: int | None = None) -> Any:
    """The matrix by columns, of which the blocks that are not zero are stored.

    >>> import undertow as ut
    >>> ut.eye(4).to_sparse_bsc((2, 2)).ccol_indices()
    tensor([0, 1, 2])
    """
    return to_sparse(self, layout=sparse_bsc, blocksize=blocksize, dense_dim=dense_dim)


_SPARSE_PARTS = {  # what makes the matrix [[0, 2], [3, 4]] sparse, and the part of it
    "coalesce": ("to_sparse", "tensor(indices=... nnz=3, layout=undertow.sparse_coo)"),
    "is_coalesced": ("to_sparse", "True"),
    "indices": ("to_sparse", "tensor([[0, 1, 1],\n            [1, 0, 1]])"),
    "values": ("to_sparse", "tensor([2., 3., 4.])"),
    "crow_indices": ("to_sparse_csr", "tensor([0, 1, 3])"),
    "col_indices": ("to_sparse_csr", "tensor([1, 0, 1])"),
    "ccol_indices": ("to_sparse_csc", "tensor([0, 1, 3])"),
    "row_indices": ("to_sparse_csc", "tensor([1, 0, 1])"),
}


def _of_sparse(name: str) -> Callable[..., Any]:
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, Tensor):
            raise UnsupportedError(f"[{name}] is for sparse tensors, and this one is dense")
        return getattr(self, name)(*args, **kwargs)

    method.__name__ = method.__qualname__ = name
    method.__doc__ = f"""What a sparse tensor has; of a dense one it is an error.

    >>> import undertow as ut
    >>> s = ut.tensor([[0.0, 2.0], [3.0, 4.0]]).{_SPARSE_PARTS[name][0]}()
    >>> s.{name}()
    {_SPARSE_PARTS[name][1]}
    """
    return method


def _of_any_layout(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A method of dense tensors that asks a sparse one for its own: `Tensor.to_dense(s)`."""

    @functools.wraps(fn)
    def method(self: Any, *args: Any, **kwargs: Any) -> Any:
        if isinstance(self, OtherKind):
            return getattr(self, fn.__name__)(*args, **kwargs)
        return fn(self, *args, **kwargs)

    return method


def sparse_mask(self: Tensor, mask: Any) -> Any:
    """The elements at the positions of a sparse tensor: `ut.sparse.sparse_mask`.

    >>> import undertow as ut
    >>> pattern = ut.tensor([[0.0, 1.0], [1.0, 0.0]]).to_sparse()
    >>> ut.tensor([[1.0, 2.0], [3.0, 4.0]]).sparse_mask(pattern).to_dense()
    tensor([[0., 2.],
            [3., 0.]])
    """
    return import_module("undertow.sparse").sparse_mask(self, mask)


def module_load(self: Tensor, other: Tensor, assign: bool = False) -> Tensor:
    """What `load_state_dict` puts in the place of this: `other`, or a copy of it in this memory.

    >>> import undertow as ut
    >>> x = ut.zeros(2)
    >>> loaded = x.module_load(ut.tensor([1.0, 2.0]))
    >>> x, loaded.data_ptr() == x.data_ptr()
    (tensor([1., 2.]), True)
    """
    if assign:
        return other.detach()
    return self.copy_(other).detach()


# Old methods ----------------------------------------------------------------------------------
def new(self: Tensor, *args: Any, size: Ints | None = None, device: Any = None) -> Tensor:
    """torch's old constructor in the dtype of this tensor: `x.new(2, 3)`, `x.new([1, 2])`.

    >>> import undertow as ut
    >>> ut.tensor([1, 2]).new([3, 4]), ut.tensor([1.0]).new(2, 3).shape
    (tensor([3, 4]), (2, 3))
    """
    given = args if size is None else as_shape("new", size)
    return construct("new", given, self.dtype, device)


def apply_(self: Tensor, callable: Callable[[Any], Any]) -> Tensor:
    """Replace each element by what a Python function makes of it; slow, and without gradients.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 2.0, 3.0]).apply_(lambda v: v if v > 1.5 else 0.0)
    tensor([0., 2., 3.])
    """
    return _filled("apply_", self, lambda values: [callable(v) for v in values])


def map_(self: Tensor, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
    """Replace each element by a Python function of it and of another tensor's; slow.

    >>> import undertow as ut
    >>> ut.tensor([1.0, 5.0]).map_(ut.tensor([3.0, 2.0]), max)
    tensor([3., 5.])
    """
    others = _listed("map_", tensor.expand(self.shape))
    return _filled("map_", self, lambda values: [callable(v, o) for v, o in zip(values, others)])  # noqa: B905


def map2_(
    self: Tensor, tensor1: Tensor, tensor2: Tensor, callable: Callable[[Any, Any, Any], Any]
) -> Tensor:
    """Replace each element by a Python function of it and of two other tensors'; slow.

    >>> import undertow as ut
    >>> a, b = ut.tensor([1.0, 2.0]), ut.tensor([10.0, 20.0])
    >>> ut.zeros(2).map2_(a, b, lambda old, a, b: a if a > 1 else b)
    tensor([10.,  2.])
    """
    first, second = (_listed("map2_", t.expand(self.shape)) for t in (tensor1, tensor2))
    return _filled(
        "map2_",
        self,
        lambda values: [callable(v, a, b) for v, a, b in zip(values, first, second, strict=True)],
    )


def _listed(op: str, t: Tensor) -> list[Any]:
    if t.requires_grad:
        raise GradientError(
            f"[{op}] a Python function has no gradient; detach() the tensor, or compute under "
            "no_grad() with ops"
        )
    values: list[Any] = t.detach().reshape(-1).tolist()
    return values


def _filled(op: str, t: Tensor, compute: Callable[[list[Any]], list[Any]]) -> Tensor:
    values = compute(_listed(op, t))
    made = FUNCTIONS["tensor"](values, dtype=t.dtype, device=t.device)
    return t.copy_(made.reshape(t.shape))


def as_subclass(self: Tensor, cls: type[Tensor]) -> Tensor:
    """The same memory as an instance of a subclass of Tensor.

    >>> import undertow as ut
    >>> class Metres(ut.Tensor):
    ...     pass
    >>> type(ut.tensor([1.0]).as_subclass(Metres)).__name__
    'Metres'
    """
    if not issubclass(cls, Tensor):
        raise DTypeError(f"[as_subclass] expects a subclass of Tensor, got {cls!r}")
    made = wrap_shared(self._array, shared(self), cls)
    if self.requires_grad:
        seen = self.view(self.shape)  # recorded as a view: changes in place follow both histories
        made._alias, made._node, made._index = seen._alias, seen._node, seen._index
    return made


def resize_(self: Tensor, *sizes: Ints, memory_format: Any = None) -> Tensor:
    """Give it another shape in place: elements are kept in order, further ones have any value.

    >>> import undertow as ut
    >>> x = ut.tensor([1, 2, 3, 4])
    >>> x.resize_(2, 1)
    tensor([[1],
            [2]])
    """
    shape = as_shape("resize_", sizes)
    if (self.requires_grad or differentiated(self)) and not current().inference:
        raise GradientError("[resize_] cannot resize a tensor that requires gradients")
    if shape == self.shape:
        return self
    flat = self.detach().reshape(-1)
    with no_grad():
        made = FUNCTIONS["empty"](shape, dtype=self.dtype, device=self.device)
        count = min(made.numel(), flat.numel())
        made.reshape(-1)[:count] = flat[:count]
    self.data = made
    return self


def resize_as_(self: Tensor, the_template: Tensor, memory_format: Any = None) -> Tensor:
    """`resize_` to the shape of another tensor.

    >>> import undertow as ut
    >>> x = ut.tensor([1, 2, 3, 4])
    >>> x.resize_as_(ut.zeros(2, 1))
    tensor([[1],
            [2]])
    """
    return resize_(self, the_template.shape)


def fill_diagonal_(self: Tensor, fill_value: Any, wrap: bool = False) -> Tensor:
    """Set the main diagonal to a number; `wrap` begins again below it in a tall matrix.

    >>> import undertow as ut
    >>> ut.zeros(2, 3).fill_diagonal_(5)
    tensor([[5., 0., 0.],
            [0., 5., 0.]])
    """
    if self.ndim < 2:
        raise ShapeError(f"[fill_diagonal_] needs two dimensions at least, got {self.shape}")
    if self.ndim > 2 and len({*self.shape}) > 1:
        raise ShapeError(f"[fill_diagonal_] needs equal sizes beyond matrices, got {self.shape}")
    if not isinstance(fill_value, NUMBERS):
        raise DTypeError(f"[fill_diagonal_] expects a number, got {fill_value!r}")
    if self.ndim > 2:
        here = FUNCTIONS["arange"](self.shape[0], device=self.device)
        self[(here,) * self.ndim] = fill_value
        return self
    rows, columns = self.shape
    for start in range(0, rows if wrap else min(rows, 1), columns + 1):
        self[start:].diagonal().fill_(fill_value)
    return self


for _method in (
    get_device,
    cuda,
    xpu,
    pin_memory,
    is_pinned,
    record_stream,
    is_shared,
    share_memory_,
    is_set_to,
    is_nonzero,
    is_distributed,
    dim_order,
    const_data_ptr,
    _of_any_layout(to_dense),
    _of_any_layout(sparse_dim),
    _of_any_layout(dense_dim),
    _of_any_layout(to_sparse),
    _of_any_layout(to_sparse_coo),
    _of_any_layout(to_sparse_csr),
    _of_any_layout(to_sparse_csc),
    _of_any_layout(to_sparse_bsr),
    _of_any_layout(to_sparse_bsc),
    sparse_mask,
    new,
    apply_,
    map_,
    map2_,
    as_subclass,
    module_load,
    resize_,
    resize_as_,
    fill_diagonal_,
    is_same_size,
    is_conj,
    is_neg,
    *map(
        _of_sparse,
        """
        ccol_indices coalesce col_indices crow_indices indices is_coalesced row_indices values
        """.split(),  # noqa: SIM905
    ),
):
    attach(_method.__name__, _method)


@function(top=False)
def sum_to_size(input: Tensor, *sizes: Ints, size: Ints | None = None) -> Tensor:
    """The sum over the dimensions along which a tensor of that size would be broadcast to this.

    >>> import undertow as ut
    >>> ut.ones(3, 4).sum_to_size(1, 4)
    tensor([[3., 3., 3., 3.]])
    """
    shape = as_shape("sum_to_size", sizes if size is None else size)
    lead = input.ndim - len(shape)
    if lead < 0 or any(s not in (1, n) for s, n in zip(shape, input.shape[lead:], strict=True)):
        raise ShapeError(
            f"[sum_to_size] a tensor of shape {shape} does not broadcast to {input.shape}"
        )
    if shape == input.shape and shape:
        return sum_to(input, shape)
    return sum_to(accumulator(input, None), shape)  # integers are summed as int64
