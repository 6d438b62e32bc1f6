# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""The methods that ops attach to Tensor."""

import builtins
from collections.abc import Callable, Iterator, Sequence
from types import EllipsisType
from typing import Any, Literal, TypeAlias, overload

from numpy.typing import NDArray

from ..devices import DeviceLike
from ..dtypes import DTypeLike, Number
from ..layouts import layout as Layout
from ..ops.elementwise.float_parts import Parts
from ..ops.linalg.orthogonal import QR, Reflections
from ..ops.linalg.pivoted import LUFactor, LUFactorInfo
from ..ops.linalg.solving import SignLogDet
from ..ops.linalg.spectra import OldSVD
from ..ops.linalg.triangular import TriangularSolution
from ..ops.reduce.histograms import Histogram
from ..ops.reduce.reduction import MinMax
from ..ops.reduce.scan import Selection
from ..shapes import Ints
from .generator import Generator
from .storage import TypedStorage, UntypedStorage
from .tensor import Tensor

Index: TypeAlias = (
    builtins.int | slice | EllipsisType | Tensor | NDArray[Any] | list[Any] | tuple[Any, ...] | None
)

class TensorMethods:
    def __repr__(self, **contents: Any) -> str: ...
    def _repr_html_(self) -> str: ...
    def __format__(self, spec: str) -> str: ...
    def __len__(self) -> builtins.int: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __reversed__(self) -> Tensor: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __bool__(self) -> builtins.bool: ...
    def __float__(self) -> builtins.float: ...
    def __int__(self) -> builtins.int: ...
    def __complex__(self) -> complex: ...
    def __index__(self) -> builtins.int: ...
    def __reduce_ex__(self, protocol: Any) -> tuple[Any, ...]: ...
    def __copy__(self) -> Tensor: ...
    def __deepcopy__(self, memo: dict[builtins.int, Any]) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> Any: ...
    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any: ...
    def __dlpack__(
        self,
        *,
        stream: Any = None,
        max_version: Any = None,
        dl_device: Any = None,
        copy: builtins.bool | None = None,
    ) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def __array_namespace__(self, /, *, api_version: str | None = None) -> Any: ...
    def to_device(self, device: Any, /, *, stream: Any = None) -> Tensor:
        """The tensor on a device, itself if it is there: `to(device)`, in the standard's words."""
    def untyped_storage(self) -> UntypedStorage:
        """The bytes that this tensor and its views look at."""
    def storage(self) -> TypedStorage:
        """The memory that this tensor and its views look at, as elements of its dtype."""
    def clone(self, *, memory_format: Any = None) -> Tensor:
        """A copy in memory of its own that gradients flow through."""
    @overload
    def new_zeros(
        self,
        *sizes: builtins.int,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Zeros of another shape, with the dtype and device of `input`."""
    @overload
    def new_zeros(
        self,
        size: Sequence[builtins.int],
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Zeros of another shape, with the dtype and device of `input`."""
    @overload
    def new_ones(
        self,
        *sizes: builtins.int,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Ones of another shape, with the dtype and device of `input`."""
    @overload
    def new_ones(
        self,
        size: Sequence[builtins.int],
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Ones of another shape, with the dtype and device of `input`."""
    @overload
    def new_empty(
        self,
        *sizes: builtins.int,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Memory of another shape, with the dtype and device of `input` and any values."""
    @overload
    def new_empty(
        self,
        size: Sequence[builtins.int],
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Memory of another shape, with the dtype and device of `input` and any values."""
    def new_full(
        self,
        size: Ints,
        fill_value: Tensor | Number,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`fill_value` in another shape, with the dtype and device of `input`."""
    def new_tensor(
        self,
        data: Any,
        *,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A copy of `data` in the dtype and on the device of `input`."""
    def where(self, condition: Tensor, other: Tensor | Number) -> Tensor:
        """`ut.where(condition, input, other)`."""
    def eq(self, other: Tensor | Number) -> Tensor:
        """`input == other` for each element, as a bool tensor; numbers compare exactly."""
    def eq_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `eq`; returns the tensor itself."""
    def ne(self, other: Tensor | Number) -> Tensor:
        """`input != other` for each element, as a bool tensor; numbers compare exactly."""
    def ne_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `ne`; returns the tensor itself."""
    def lt(self, other: Tensor | Number) -> Tensor:
        """`input < other` for each element, as a bool tensor; numbers compare exactly."""
    def lt_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `lt`; returns the tensor itself."""
    def __lt__(self, other: Tensor | Number) -> Tensor: ...
    def le(self, other: Tensor | Number) -> Tensor:
        """`input <= other` for each element, as a bool tensor; numbers compare exactly."""
    def le_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `le`; returns the tensor itself."""
    def __le__(self, other: Tensor | Number) -> Tensor: ...
    def gt(self, other: Tensor | Number) -> Tensor:
        """`input > other` for each element, as a bool tensor; numbers compare exactly."""
    def gt_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `gt`; returns the tensor itself."""
    def __gt__(self, other: Tensor | Number) -> Tensor: ...
    def ge(self, other: Tensor | Number) -> Tensor:
        """`input >= other` for each element, as a bool tensor; numbers compare exactly."""
    def ge_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `ge`; returns the tensor itself."""
    def __ge__(self, other: Tensor | Number) -> Tensor: ...
    def not_equal(self, other: Tensor | Number) -> Tensor:
        """`input != other` for each element, as a bool tensor; numbers compare exactly."""
    def not_equal_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `ne`; returns the tensor itself."""
    def less(self, other: Tensor | Number) -> Tensor:
        """`input < other` for each element, as a bool tensor; numbers compare exactly."""
    def less_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `lt`; returns the tensor itself."""
    def less_equal(self, other: Tensor | Number) -> Tensor:
        """`input <= other` for each element, as a bool tensor; numbers compare exactly."""
    def less_equal_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `le`; returns the tensor itself."""
    def greater(self, other: Tensor | Number) -> Tensor:
        """`input > other` for each element, as a bool tensor; numbers compare exactly."""
    def greater_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `gt`; returns the tensor itself."""
    def greater_equal(self, other: Tensor | Number) -> Tensor:
        """`input >= other` for each element, as a bool tensor; numbers compare exactly."""
    def greater_equal_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `ge`; returns the tensor itself."""
    def __eq__(self, other: Tensor | Number) -> Tensor: ...  # type: ignore[override]
    def __ne__(self, other: Tensor | Number) -> Tensor: ...  # type: ignore[override]
    def logical_and(self, other: Tensor | Number) -> Tensor:
        """Whether both elements are true, that is not zero."""
    def logical_and_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `logical_and`; returns the tensor itself."""
    def logical_or(self, other: Tensor | Number) -> Tensor:
        """Whether at least one of the elements is true, that is not zero."""
    def logical_or_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `logical_or`; returns the tensor itself."""
    def logical_xor(self, other: Tensor | Number) -> Tensor:
        """Whether exactly one of the elements is true, that is not zero."""
    def logical_xor_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `logical_xor`; returns the tensor itself."""
    def logical_not(self) -> Tensor:
        """Whether the element is false, that is zero."""
    def logical_not_(self) -> Tensor:
        """In-place form of `logical_not`; returns the tensor itself."""
    def bitwise_and(self, other: Tensor | Number) -> Tensor:
        """The bits set in both integers; of booleans, whether both are true."""
    def bitwise_and_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `bitwise_and`; returns the tensor itself."""
    def __and__(self, other: Tensor | Number) -> Tensor: ...
    def __rand__(self, other: Tensor | Number) -> Tensor: ...
    def __iand__(self, other: Tensor | Number) -> Tensor: ...
    def bitwise_or(self, other: Tensor | Number) -> Tensor:
        """The bits set in at least one integer; of booleans, whether at least one is true."""
    def bitwise_or_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `bitwise_or`; returns the tensor itself."""
    def __or__(self, other: Tensor | Number) -> Tensor: ...
    def __ror__(self, other: Tensor | Number) -> Tensor: ...
    def __ior__(self, other: Tensor | Number) -> Tensor: ...
    def bitwise_xor(self, other: Tensor | Number) -> Tensor:
        """The bits set in exactly one integer; of booleans, whether exactly one is true."""
    def bitwise_xor_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `bitwise_xor`; returns the tensor itself."""
    def __xor__(self, other: Tensor | Number) -> Tensor: ...
    def __rxor__(self, other: Tensor | Number) -> Tensor: ...
    def __ixor__(self, other: Tensor | Number) -> Tensor: ...
    def bitwise_left_shift(self, other: Tensor | Number) -> Tensor:
        """The bits of `input` moved left by `other` places."""
    def bitwise_left_shift_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `bitwise_left_shift`; returns the tensor itself."""
    def __lshift__(self, other: Tensor | Number) -> Tensor: ...
    def __rlshift__(self, other: Tensor | Number) -> Tensor: ...
    def __ilshift__(self, other: Tensor | Number) -> Tensor: ...
    def bitwise_right_shift(self, other: Tensor | Number) -> Tensor:
        """The bits of `input` moved right by `other` places; the sign stays."""
    def bitwise_right_shift_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `bitwise_right_shift`; returns the tensor itself."""
    def __rshift__(self, other: Tensor | Number) -> Tensor: ...
    def __rrshift__(self, other: Tensor | Number) -> Tensor: ...
    def __irshift__(self, other: Tensor | Number) -> Tensor: ...
    def bitwise_not(self) -> Tensor:
        """All bits inverted; of booleans, the logical not."""
    def bitwise_not_(self) -> Tensor:
        """In-place form of `bitwise_not`; returns the tensor itself."""
    def __invert__(self) -> Tensor: ...
    def isnan(self) -> Tensor:
        """Which elements are NaN."""
    def isinf(self) -> Tensor:
        """Which elements are infinite, of either sign."""
    def isfinite(self) -> Tensor:
        """Which elements are neither infinite nor NaN."""
    def isposinf(self) -> Tensor:
        """Which elements are positive infinity."""
    def isneginf(self) -> Tensor:
        """Which elements are negative infinity."""
    def isreal(self) -> Tensor:
        """Which elements have no imaginary part; of real tensors, all."""
    def signbit(self) -> Tensor:
        """Which elements have their sign bit set: negative numbers and -0.0."""
    def isclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Which elements differ by at most `atol + rtol * abs(other)`."""
    def allclose(
        self,
        other: Tensor,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Whether all elements differ by at most `atol + rtol * abs(other)`."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape and the same elements."""
    @overload
    def reshape(self, *sizes_: builtins.int) -> Tensor:
        """The same elements in another shape: a view where the strides allow it, else a copy."""
    @overload
    def reshape(self, shape: Sequence[builtins.int]) -> Tensor:
        """The same elements in another shape: a view where the strides allow it, else a copy."""
    @overload
    def view(self, *size: builtins.int) -> Tensor:
        """The same memory in another shape; an error where the strides do not allow that."""
    @overload
    def view(self, size: Sequence[builtins.int]) -> Tensor:
        """The same memory in another shape; an error where the strides do not allow that."""
    @overload
    def view(self, dtype: DTypeLike) -> Tensor:
        """The same memory in another shape; an error where the strides do not allow that."""
    def view_as(self, other: Tensor) -> Tensor:
        """`view` in the shape of `other`."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """`reshape` to the shape of `other`."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Dimensions `start_dim` to `end_dim` joined into one."""
    def ravel(self) -> Tensor:
        """All elements in one contiguous dimension: a view where possible."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """One dimension split into several; one of their sizes may be -1."""
    def squeeze(self, dim: Ints | None = None) -> Tensor:
        """A view without the dimensions of size 1: all of them, or those in `dim` that have size 1."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """A view with a new dimension of size 1 at position `dim`."""
    @overload
    def permute(self, *order: builtins.int) -> Tensor:
        """A view with the dimensions in another order."""
    @overload
    def permute(self, dims: Sequence[builtins.int]) -> Tensor:
        """A view with the dimensions in another order."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """A view with two dimensions exchanged."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """The same as `transpose`."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """The same as `transpose`."""
    def t(self) -> Tensor:
        """A matrix transposed; a vector or zero-dimensional tensor as it is."""
    def adjoint(self) -> Tensor:
        """The last two dimensions exchanged and, for complex numbers, conjugated."""
    @property
    def T(self) -> Tensor:
        """A view with the dimensions in reverse order."""
    @property
    def mT(self) -> Tensor:
        """A view with the last two dimensions exchanged."""
    @property
    def mH(self) -> Tensor: ...
    @property
    def H(self) -> Tensor:
        """The conjugate transpose of a matrix."""
    def movedim(self, source: Ints, destination: Ints) -> Tensor:
        """A view with the dimensions `source` at the positions `destination`, the others in order."""
    def moveaxis(self, source: Ints, destination: Ints) -> Tensor:
        """The same as `movedim`."""
    @overload
    def expand(self, *sizes_: builtins.int, implicit: builtins.bool = False) -> Tensor:
        """A view in which dimensions of size 1 are repeated without copying; -1 keeps a size."""
    @overload
    def expand(self, size: Sequence[builtins.int], *, implicit: builtins.bool = False) -> Tensor:
        """A view in which dimensions of size 1 are repeated without copying; -1 keeps a size."""
    def expand_as(self, other: Tensor) -> Tensor:
        """`expand` to the shape of `other`."""
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """A view broadcast to `size`; the same as `expand`."""
    def narrow(
        self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int
    ) -> Tensor:
        """A view of `length` positions of dimension `dim` from `start` on."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """A view of position `index` of dimension `dim`, without that dimension."""
    def contiguous(self, *, memory_format: Any = None) -> Tensor:
        """The tensor itself if its elements lie in row-major order, else a copy that does."""
    def combinations(self, r: builtins.int = 2, with_replacement: builtins.bool = False) -> Tensor:
        """All choices of `r` elements of a vector in order, as rows."""
    def split(self, split_size: Ints, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """`ut.split` of this tensor; torch's method has another word for the sizes."""
    def split_with_sizes(
        self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Consecutive views of the sizes listed along `dim`, which they must fill."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """At most `chunks` views of equal size (the last may be smaller) along `dim`."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Views of every position along `dim`, without that dimension."""
    def tensor_split(
        self,
        indices_or_sections: Ints | Tensor | None = None,
        dim: builtins.int = 0,
        *,
        indices: Sequence[builtins.int] | Tensor | None = None,
        sections: builtins.int | None = None,
    ) -> tuple[Tensor, ...]:
        """Views of almost equal size, the first ones larger by one, or views between the indices."""
    def hsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """Views side by side: along dimension 1, of a vector along dimension 0."""
    def vsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """Views of rows: along dimension 0 of at least two."""
    def dsplit(self, indices_or_sections: Ints | Tensor) -> tuple[Tensor, ...]:
        """Views in depth: along dimension 2 of at least three."""
    def cumsum(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The running sum along `dim`; integers are summed as int64."""
    def cumsum_(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """In-place form of `cumsum`; returns the tensor itself."""
    def cumprod(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """The running product along `dim`; integers are multiplied as int64."""
    def cumprod_(self, dim: builtins.int, *, dtype: DTypeLike | None = None) -> Tensor:
        """In-place form of `cumprod`; returns the tensor itself."""
    def cummax(self, dim: builtins.int) -> Selection:
        """The running maximum along `dim`, and the index of the last element that attains it."""
    def cummin(self, dim: builtins.int) -> Selection:
        """The running minimum along `dim`, and the index of the last element that attains it."""
    def logcumsumexp(self, dim: builtins.int) -> Tensor:
        """`log(cumsum(exp(input)))` along `dim`, without overflow."""
    def diff(
        self,
        n: builtins.int = 1,
        dim: builtins.int = -1,
        prepend: Tensor | None = None,
        append: Tensor | None = None,
    ) -> Tensor:
        """The n-th difference of neighbours along `dim`; booleans are compared."""
    @property
    def is_cpu(self) -> builtins.bool: ...
    @property
    def is_cuda(self) -> builtins.bool: ...
    @property
    def is_ipu(self) -> builtins.bool: ...
    @property
    def is_maia(self) -> builtins.bool: ...
    @property
    def is_meta(self) -> builtins.bool: ...
    @property
    def is_mps(self) -> builtins.bool: ...
    @property
    def is_mtia(self) -> builtins.bool: ...
    @property
    def is_vulkan(self) -> builtins.bool: ...
    @property
    def is_xla(self) -> builtins.bool: ...
    @property
    def is_xpu(self) -> builtins.bool: ...
    @property
    def is_mkldnn(self) -> builtins.bool: ...
    @property
    def is_nested(self) -> builtins.bool: ...
    @property
    def is_quantized(self) -> builtins.bool: ...
    @property
    def is_sparse(self) -> builtins.bool: ...
    @property
    def is_sparse_csr(self) -> builtins.bool: ...
    @property
    def layout(self) -> Layout: ...
    def get_device(self) -> builtins.int:
        """The number of its device; -1 for the CPU."""
    def cuda(
        self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None
    ) -> Tensor:
        """The tensor on a CUDA device; an error where there is none."""
    def xpu(
        self, device: Any = None, non_blocking: builtins.bool = False, memory_format: Any = None
    ) -> Tensor:
        """The tensor on an XPU device; an error where there is none."""
    def pin_memory(self, device: DeviceLike | None = None) -> Tensor:
        """The tensor itself: no device here copies faster from pinned memory."""
    def is_pinned(self, device: DeviceLike | None = None) -> builtins.bool:
        """Whether its memory is pinned: never."""
    def record_stream(self, stream: Any) -> None:
        """Nothing: an operation has ended when it returns."""
    def is_shared(self) -> builtins.bool:
        """Whether other processes see its memory: no."""
    def share_memory_(self) -> Tensor:
        """An error: memory is not shared in place; a DataLoader's workers do it by themselves."""
    def is_set_to(self, tensor: Tensor) -> builtins.bool:
        """Whether two tensors are the same memory in the same way: shape, strides and start."""
    def is_nonzero(self) -> builtins.bool:
        """Whether its one element is not zero."""
    def is_distributed(self) -> builtins.bool:
        """Whether it lies on several machines: no."""
    def dim_order(self, *, ambiguity_check: Any = False) -> tuple[builtins.int, ...]:
        """The dimensions from the largest stride to the smallest."""
    def const_data_ptr(self) -> builtins.int:
        """The address of the first element."""
    def to_dense(self, dtype: Any = None, *, masked_grad: builtins.bool | None = None) -> Tensor:
        """The tensor itself, in another dtype if one is given: it is dense already."""
    def sparse_dim(self) -> builtins.int:
        """0: a dense tensor has no sparse dimensions."""
    def dense_dim(self) -> builtins.int:
        """The number of its dimensions: all are dense."""
    def to_sparse(
        self,
        sparse_dim: builtins.int | None = None,
        *,
        layout: Any = None,
        blocksize: Any = None,
        dense_dim: builtins.int | None = None,
    ) -> Any:
        """The elements that are not zero with their coordinates, or by rows: see `ut.sparse`."""
    def to_sparse_coo(self) -> Any:
        """The elements that are not zero with their coordinates: `to_sparse()`."""
    def to_sparse_csr(self, dense_dim: builtins.int | None = None) -> Any:
        """The matrix by rows, of which the elements that are not zero are stored."""
    def to_sparse_csc(self, dense_dim: builtins.int | None = None) -> Any:
        """The matrix by columns, of which the elements that are not zero are stored."""
    def to_sparse_bsr(self, blocksize: Any, dense_dim: builtins.int | None = None) -> Any:
        """The matrix by rows, of which the blocks that are not zero are stored."""
    def to_sparse_bsc(self, blocksize: Any, dense_dim: builtins.int | None = None) -> Any:
        """The matrix by columns, of which the blocks that are not zero are stored."""
    def sparse_mask(self, mask: Any) -> Any:
        """The elements at the positions of a sparse tensor: `ut.sparse.sparse_mask`."""
    def new(self, *args: Any, size: Ints | None = None, device: Any = None) -> Tensor:
        """torch's old constructor in the dtype of this tensor: `x.new(2, 3)`, `x.new([1, 2])`."""
    def apply_(self, callable: Callable[[Any], Any]) -> Tensor:
        """Replace each element by what a Python function makes of it; slow, and without gradients."""
    def map_(self, tensor: Tensor, callable: Callable[[Any, Any], Any]) -> Tensor:
        """Replace each element by a Python function of it and of another tensor's; slow."""
    def map2_(
        self, tensor1: Tensor, tensor2: Tensor, callable: Callable[[Any, Any, Any], Any]
    ) -> Tensor:
        """Replace each element by a Python function of it and of two other tensors'; slow."""
    def as_subclass(self, cls: builtins.type[Tensor]) -> Tensor:
        """The same memory as an instance of a subclass of Tensor."""
    def module_load(self, other: Tensor, assign: builtins.bool = False) -> Tensor:
        """What `load_state_dict` puts in the place of this: `other`, or a copy of it in this memory."""
    def resize_(self, *sizes: Ints, memory_format: Any = None) -> Tensor:
        """Give it another shape in place: elements are kept in order, further ones have any value."""
    def resize_as_(self, the_template: Tensor, memory_format: Any = None) -> Tensor:
        """`resize_` to the shape of another tensor."""
    def fill_diagonal_(self, fill_value: Any, wrap: builtins.bool = False) -> Tensor:
        """Set the main diagonal to a number; `wrap` begins again below it in a tall matrix."""
    def is_same_size(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape."""
    def is_conj(self) -> builtins.bool:
        """Whether it is a conjugation that waits to be done: never, it is done at once."""
    def is_neg(self) -> builtins.bool:
        """Whether it is a negation that waits to be done: never, it is done at once."""
    def ccol_indices(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def coalesce(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def col_indices(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def crow_indices(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def indices(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def is_coalesced(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def row_indices(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    def values(self, *args: Any, **kwargs: Any) -> Any:
        """What a sparse tensor has; of a dense one it is an error."""
    @overload
    def sum_to_size(self, *sizes: builtins.int) -> Tensor:
        """The sum over the dimensions along which a tensor of that size would be broadcast to this."""
    @overload
    def sum_to_size(self, size: Sequence[builtins.int]) -> Tensor:
        """The sum over the dimensions along which a tensor of that size would be broadcast to this."""
    @overload
    def to(
        self,
        dtype: DTypeLike,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        *,
        memory_format: Any = None,
    ) -> Tensor:
        """The tensor in another dtype or on another device; itself when nothing changes."""
    @overload
    def to(
        self,
        device: DeviceLike | None = None,
        dtype: DTypeLike | None = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        *,
        memory_format: Any = None,
    ) -> Tensor:
        """The tensor in another dtype or on another device; itself when nothing changes."""
    @overload
    def to(
        self,
        other: Tensor,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
        *,
        memory_format: Any = None,
    ) -> Tensor:
        """The tensor in another dtype or on another device; itself when nothing changes."""
    def float(self, memory_format: Any = None) -> Tensor:
        """`to(ut.float32)`."""
    def double(self, memory_format: Any = None) -> Tensor:
        """`to(ut.float64)`."""
    def half(self, memory_format: Any = None) -> Tensor:
        """`to(ut.float16)`."""
    def bfloat16(self, memory_format: Any = None) -> Tensor:
        """`to(ut.bfloat16)`."""
    def int(self, memory_format: Any = None) -> Tensor:
        """`to(ut.int32)`."""
    def long(self, memory_format: Any = None) -> Tensor:
        """`to(ut.int64)`."""
    def short(self, memory_format: Any = None) -> Tensor:
        """`to(ut.int16)`."""
    def char(self, memory_format: Any = None) -> Tensor:
        """`to(ut.int8)`."""
    def byte(self, memory_format: Any = None) -> Tensor:
        """`to(ut.uint8)`."""
    def bool(self, memory_format: Any = None) -> Tensor:
        """`to(ut.bool)`."""
    def cfloat(self, memory_format: Any = None) -> Tensor:
        """`to(ut.complex64)`."""
    def cdouble(self, memory_format: Any = None) -> Tensor:
        """`to(ut.complex128)`."""
    def chalf(self, memory_format: Any = None) -> Tensor:
        """`to(ut.complex32)`."""
    @overload
    def type(self) -> str:
        """The name of the tensor's type in torch's old manner, or the tensor in another dtype."""
    @overload
    def type(self, dtype: DTypeLike, non_blocking: builtins.bool = False) -> Tensor:
        """The name of the tensor's type in torch's old manner, or the tensor in another dtype."""
    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in the dtype and on the device of `other`."""
    def cpu(self, memory_format: Any = None) -> Tensor:
        """The tensor in the CPU's memory; itself when it is there."""
    def resolve_conj(self) -> Tensor:
        """The tensor itself: conjugation is never lazy here."""
    def resolve_neg(self) -> Tensor:
        """The tensor itself: negation is never lazy here."""
    def item(self) -> builtins.int | builtins.float:
        """The one element as a Python number (a complex one too, which its type leaves out)."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number for a zero-dimensional tensor."""
    def numpy(self, *, force: builtins.bool = False) -> NDArray[Any]:
        """The elements as a NumPy array that shares the tensor's memory."""
    def copy_(self, src: Tensor | Number, non_blocking: builtins.bool = False) -> Tensor:
        """Copy the elements of `src`, broadcast, cast and moved to this device, into this tensor."""
    def fill_(self, value: Tensor | Number) -> Tensor:
        """Set every element to `value`, a number or a zero-dimensional tensor."""
    def zero_(self) -> Tensor:
        """Set every element to zero."""
    def __add__(self, other: Tensor | Number) -> Tensor: ...
    def __radd__(self, other: Tensor | Number) -> Tensor: ...
    def add(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """`input + alpha * other`, elementwise."""
    def __sub__(self, other: Tensor | Number) -> Tensor: ...
    def __rsub__(self, other: Tensor | Number) -> Tensor: ...
    def sub(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """`input - alpha * other`, elementwise."""
    def add_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """In-place form of `add`; returns the tensor itself."""
    def sub_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """In-place form of `sub`; returns the tensor itself."""
    def mul(self, other: Tensor | Number) -> Tensor:
        """`input * other`, elementwise."""
    def mul_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `mul`; returns the tensor itself."""
    def __mul__(self, other: Tensor | Number) -> Tensor: ...
    def __rmul__(self, other: Tensor | Number) -> Tensor: ...
    def neg(self) -> Tensor:
        """`-input`, elementwise."""
    def neg_(self) -> Tensor:
        """In-place form of `neg`; returns the tensor itself."""
    def __neg__(self) -> Tensor: ...
    def positive(self) -> Tensor:
        """`+input`: the tensor itself; bool tensors have no sign and are refused."""
    def __pos__(self) -> Tensor: ...
    def __truediv__(self, other: Tensor | Number) -> Tensor: ...
    def __rtruediv__(self, other: Tensor | Number) -> Tensor: ...
    def __rdiv__(self, other: Any) -> Tensor: ...
    def div(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`, elementwise; rounded down ('floor') or towards zero ('trunc') on request."""
    def div_(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of `div`; returns the tensor itself."""
    def true_divide(self, other: Tensor | Number) -> Tensor:
        """`input / other`, elementwise; integers give the default floating dtype."""
    def true_divide_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `true_divide`; returns the tensor itself."""
    def floor_divide(self, other: Tensor | Number) -> Tensor:
        """`input / other` rounded down; integers stay integers."""
    def floor_divide_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `floor_divide`; returns the tensor itself."""
    def __floordiv__(self, other: Tensor | Number) -> Tensor: ...
    def __rfloordiv__(self, other: Tensor | Number) -> Tensor: ...
    def remainder(self, other: Tensor | Number) -> Tensor:
        """What `floor_divide` leaves over; it has the sign of `other`, as in Python."""
    def remainder_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `remainder`; returns the tensor itself."""
    def __mod__(self, other: Tensor | Number) -> Tensor: ...
    def __rmod__(self, other: Tensor | Number) -> Tensor: ...
    def fmod(self, other: Tensor | Number) -> Tensor:
        """What division towards zero leaves over; it has the sign of `input`, as in C."""
    def fmod_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `fmod`; returns the tensor itself."""
    def reciprocal(self) -> Tensor:
        """`1 / input`, elementwise."""
    def reciprocal_(self) -> Tensor:
        """In-place form of `reciprocal`; returns the tensor itself."""
    def square(self) -> Tensor:
        """`input * input`, elementwise."""
    def square_(self) -> Tensor:
        """In-place form of `square`; returns the tensor itself."""
    def sqrt(self) -> Tensor:
        """The square root of each element; NaN below zero."""
    def sqrt_(self) -> Tensor:
        """In-place form of `sqrt`; returns the tensor itself."""
    def rsqrt(self) -> Tensor:
        """`1 / sqrt(input)`, elementwise."""
    def rsqrt_(self) -> Tensor:
        """In-place form of `rsqrt`; returns the tensor itself."""
    def pow(self, exponent: Tensor | Number) -> Tensor:
        """`input ** exponent`, elementwise."""
    def pow_(self, exponent: Tensor | Number) -> Tensor:
        """In-place form of `pow`; returns the tensor itself."""
    def __pow__(self, other: Tensor | Number) -> Tensor: ...
    def __rpow__(self, other: Tensor | Number) -> Tensor: ...
    def float_power(self, exponent: Tensor | Number) -> Tensor:
        """`input ** exponent` in double precision."""
    def float_power_(self, exponent: Tensor | Number) -> Tensor:
        """In-place form of `float_power`; returns the tensor itself."""
    def addcmul(
        self, tensor1: Tensor | Number, tensor2: Tensor | Number, *, value: Number = 1
    ) -> Tensor:
        """`input + value * tensor1 * tensor2`, elementwise."""
    def addcmul_(
        self, tensor1: Tensor | Number, tensor2: Tensor | Number, *, value: Number = 1
    ) -> Tensor:
        """In-place form of `addcmul`; returns the tensor itself."""
    def addcdiv(
        self, tensor1: Tensor | Number, tensor2: Tensor | Number, *, value: Number = 1
    ) -> Tensor:
        """`input + value * tensor1 / tensor2`, elementwise, of floating tensors."""
    def addcdiv_(
        self, tensor1: Tensor | Number, tensor2: Tensor | Number, *, value: Number = 1
    ) -> Tensor:
        """In-place form of `addcdiv`; returns the tensor itself."""
    def lerp(self, end: Tensor | Number, weight: Tensor | Number) -> Tensor:
        """`input + weight * (end - input)`, elementwise; the weight is a number or a tensor."""
    def lerp_(self, end: Tensor | Number, weight: Tensor | Number) -> Tensor:
        """In-place form of `lerp`; returns the tensor itself."""
    def ldexp(self, other: Tensor | Number) -> Tensor:
        """`input * 2 ** other`, elementwise."""
    def ldexp_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `ldexp`; returns the tensor itself."""
    def subtract(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """`input - alpha * other`, elementwise."""
    def subtract_(self, other: Tensor | Number, *, alpha: Number = 1) -> Tensor:
        """In-place form of `sub`; returns the tensor itself."""
    def multiply(self, other: Tensor | Number) -> Tensor:
        """`input * other`, elementwise."""
    def multiply_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `mul`; returns the tensor itself."""
    def negative(self) -> Tensor:
        """`-input`, elementwise."""
    def negative_(self) -> Tensor:
        """In-place form of `neg`; returns the tensor itself."""
    def divide(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """`input / other`, elementwise; rounded down ('floor') or towards zero ('trunc') on request."""
    def divide_(self, other: Tensor | Number, *, rounding_mode: str | None = None) -> Tensor:
        """In-place form of `div`; returns the tensor itself."""
    def __iadd__(self, other: Tensor | Number) -> Tensor: ...
    def __isub__(self, other: Tensor | Number) -> Tensor: ...
    def __imul__(self, other: Tensor | Number) -> Tensor: ...
    def __itruediv__(self, other: Tensor | Number) -> Tensor: ...
    def __ifloordiv__(self, other: Tensor | Number) -> Tensor: ...
    def __imod__(self, other: Tensor | Number) -> Tensor: ...
    def __ipow__(self, other: Tensor | Number) -> Tensor: ...
    def clamp_min(self, min: Tensor | Number) -> Tensor:
        """The elements, but at least `min`; at the bound the gradient goes to `input`."""
    def clamp_max(self, max: Tensor | Number) -> Tensor:
        """The elements, but at most `max`; at the bound the gradient goes to `input`."""
    def clamp_min_(self, min: Tensor | Number) -> Tensor:
        """In-place form of `clamp_min`; returns the tensor itself."""
    def clamp_max_(self, max: Tensor | Number) -> Tensor:
        """In-place form of `clamp_max`; returns the tensor itself."""
    def clamp(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor:
        """The elements, but at least `min` and at most `max`, numbers or tensors; `max` wins."""
    def clamp_(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor:
        """In-place form of `clamp`; returns the tensor itself."""
    def clip(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor:
        """The elements, but at least `min` and at most `max`, numbers or tensors; `max` wins."""
    def clip_(
        self, min: Tensor | Number | None = None, max: Tensor | Number | None = None
    ) -> Tensor:
        """In-place form of `clamp`; returns the tensor itself."""
    def maximum(self, other: Tensor | Number) -> Tensor:
        """The larger element; NaN if either is. Equal elements share the gradient."""
    def minimum(self, other: Tensor | Number) -> Tensor:
        """The smaller element; NaN if either is. Equal elements share the gradient."""
    def fmax(self, other: Tensor | Number) -> Tensor:
        """The larger element, or the only one that is not NaN; of equal ones, the first."""
    def fmin(self, other: Tensor | Number) -> Tensor:
        """The smaller element, or the only one that is not NaN; of equal ones, the first."""
    @property
    def real(self) -> Tensor: ...
    @property
    def imag(self) -> Tensor: ...
    def conj(self) -> Tensor:
        """Complex conjugates, as a copy; a real tensor is returned as it is."""
    def angle(self) -> Tensor:
        """The angle of complex numbers in radians; of real ones, pi where they are negative, else 0."""
    def conj_physical(self) -> Tensor:
        """Complex conjugates, as a copy; a real tensor is returned as it is."""
    def conj_physical_(self) -> Tensor:
        """In-place form of `conj_physical`; returns the tensor itself."""
    def sign(self) -> Tensor:
        """-1, 0 or 1 for negative, zero and positive elements; 0 for NaN."""
    def sign_(self) -> Tensor:
        """In-place form of `sign`; returns the tensor itself."""
    def abs(self) -> Tensor:
        """The absolute value of each element; of complex ones, a real tensor."""
    def __abs__(self) -> Tensor: ...
    def abs_(self) -> Tensor:
        """In-place form of `abs`; returns the tensor itself."""
    def sgn(self) -> Tensor:
        """`sign`, and for complex elements `input / abs(input)`."""
    def sgn_(self) -> Tensor:
        """In-place form of `sgn`; returns the tensor itself."""
    def copysign(self, other: Tensor | Number) -> Tensor:
        """The size of `input` with the sign of `other`, also that of -0.0."""
    def copysign_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `copysign`; returns the tensor itself."""
    def heaviside(self, values: Tensor | Number) -> Tensor:
        """0 for negative elements, 1 for positive ones, `values` for zeros; not differentiable."""
    def heaviside_(self, values: Tensor | Number) -> Tensor:
        """In-place form of `heaviside`; returns the tensor itself."""
    def floor(self) -> Tensor:
        """The largest integer that is not above the element."""
    def floor_(self) -> Tensor:
        """In-place form of `floor`; returns the tensor itself."""
    def ceil(self) -> Tensor:
        """The smallest integer that is not below the element."""
    def ceil_(self) -> Tensor:
        """In-place form of `ceil`; returns the tensor itself."""
    def trunc(self) -> Tensor:
        """The element without its fraction."""
    def trunc_(self) -> Tensor:
        """In-place form of `trunc`; returns the tensor itself."""
    def fix(self) -> Tensor:
        """The element without its fraction."""
    def fix_(self) -> Tensor:
        """In-place form of `trunc`; returns the tensor itself."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """The nearest integer, or multiple of `10 ** -decimals`; halves go to the even neighbour."""
    def round_(self, *, decimals: builtins.int = 0) -> Tensor:
        """In-place form of `round`; returns the tensor itself."""
    def frac(self) -> Tensor:
        """The fraction of each element, with its sign."""
    def frac_(self) -> Tensor:
        """In-place form of `frac`; returns the tensor itself."""
    def nan_to_num(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """NaN and infinities replaced, by default by zero and the dtype's largest and smallest number."""
    def nan_to_num_(
        self,
        nan: builtins.float | None = None,
        posinf: builtins.float | None = None,
        neginf: builtins.float | None = None,
    ) -> Tensor:
        """In-place form of `nan_to_num`; returns the tensor itself."""
    def absolute(self) -> Tensor:
        """The absolute value of each element; of complex ones, a real tensor."""
    def absolute_(self) -> Tensor:
        """In-place form of `abs`; returns the tensor itself."""
    def exp(self) -> Tensor:
        """e to the power of each element."""
    def exp_(self) -> Tensor:
        """In-place form of `exp`; returns the tensor itself."""
    def exp2(self) -> Tensor:
        """2 to the power of each element."""
    def exp2_(self) -> Tensor:
        """In-place form of `exp2`; returns the tensor itself."""
    def expm1(self) -> Tensor:
        """`exp(input) - 1`, accurate also for small elements."""
    def expm1_(self) -> Tensor:
        """In-place form of `expm1`; returns the tensor itself."""
    def log(self) -> Tensor:
        """The natural logarithm of each element; -inf at zero, NaN below."""
    def log_(self) -> Tensor:
        """In-place form of `log`; returns the tensor itself."""
    def log2(self) -> Tensor:
        """The logarithm to base 2 of each element."""
    def log2_(self) -> Tensor:
        """In-place form of `log2`; returns the tensor itself."""
    def log10(self) -> Tensor:
        """The logarithm to base 10 of each element."""
    def log10_(self) -> Tensor:
        """In-place form of `log10`; returns the tensor itself."""
    def log1p(self) -> Tensor:
        """`log(1 + input)`, accurate also for small elements."""
    def log1p_(self) -> Tensor:
        """In-place form of `log1p`; returns the tensor itself."""
    def sigmoid(self) -> Tensor:
        """`1 / (1 + exp(-input))`, elementwise."""
    def sigmoid_(self) -> Tensor:
        """In-place form of `sigmoid`; returns the tensor itself."""
    def sin(self) -> Tensor:
        """The sine of each element, in radians."""
    def sin_(self) -> Tensor:
        """In-place form of `sin`; returns the tensor itself."""
    def cos(self) -> Tensor:
        """The cosine of each element, in radians."""
    def cos_(self) -> Tensor:
        """In-place form of `cos`; returns the tensor itself."""
    def tan(self) -> Tensor:
        """The tangent of each element, in radians."""
    def tan_(self) -> Tensor:
        """In-place form of `tan`; returns the tensor itself."""
    def asin(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose sine is the element; NaN outside -1 to 1."""
    def asin_(self) -> Tensor:
        """In-place form of `asin`; returns the tensor itself."""
    def acos(self) -> Tensor:
        """The angle from 0 to pi whose cosine is the element; NaN outside -1 to 1."""
    def acos_(self) -> Tensor:
        """In-place form of `acos`; returns the tensor itself."""
    def atan(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose tangent is the element."""
    def atan_(self) -> Tensor:
        """In-place form of `atan`; returns the tensor itself."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine of each element."""
    def sinh_(self) -> Tensor:
        """In-place form of `sinh`; returns the tensor itself."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine of each element."""
    def cosh_(self) -> Tensor:
        """In-place form of `cosh`; returns the tensor itself."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent of each element."""
    def tanh_(self) -> Tensor:
        """In-place form of `tanh`; returns the tensor itself."""
    def asinh(self) -> Tensor:
        """The number whose hyperbolic sine is the element."""
    def asinh_(self) -> Tensor:
        """In-place form of `asinh`; returns the tensor itself."""
    def acosh(self) -> Tensor:
        """The number from 0 up whose hyperbolic cosine is the element; NaN below 1."""
    def acosh_(self) -> Tensor:
        """In-place form of `acosh`; returns the tensor itself."""
    def atanh(self) -> Tensor:
        """The number whose hyperbolic tangent is the element; NaN outside -1 to 1."""
    def atanh_(self) -> Tensor:
        """In-place form of `atanh`; returns the tensor itself."""
    def arcsin(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose sine is the element; NaN outside -1 to 1."""
    def arcsin_(self) -> Tensor:
        """In-place form of `asin`; returns the tensor itself."""
    def arccos(self) -> Tensor:
        """The angle from 0 to pi whose cosine is the element; NaN outside -1 to 1."""
    def arccos_(self) -> Tensor:
        """In-place form of `acos`; returns the tensor itself."""
    def arctan(self) -> Tensor:
        """The angle from -pi/2 to pi/2 whose tangent is the element."""
    def arctan_(self) -> Tensor:
        """In-place form of `atan`; returns the tensor itself."""
    def arcsinh(self) -> Tensor:
        """The number whose hyperbolic sine is the element."""
    def arcsinh_(self) -> Tensor:
        """In-place form of `asinh`; returns the tensor itself."""
    def arccosh(self) -> Tensor:
        """The number from 0 up whose hyperbolic cosine is the element; NaN below 1."""
    def arccosh_(self) -> Tensor:
        """In-place form of `acosh`; returns the tensor itself."""
    def arctanh(self) -> Tensor:
        """The number whose hyperbolic tangent is the element; NaN outside -1 to 1."""
    def arctanh_(self) -> Tensor:
        """In-place form of `atanh`; returns the tensor itself."""
    def deg2rad(self) -> Tensor:
        """Degrees in radians."""
    def deg2rad_(self) -> Tensor:
        """In-place form of `deg2rad`; returns the tensor itself."""
    def rad2deg(self) -> Tensor:
        """Radians in degrees."""
    def rad2deg_(self) -> Tensor:
        """In-place form of `rad2deg`; returns the tensor itself."""
    def atan2(self, other: Tensor | Number) -> Tensor:
        """The angle from -pi to pi of the point (`other`, `input`), in radians."""
    def atan2_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `atan2`; returns the tensor itself."""
    def arctan2(self, other: Tensor | Number) -> Tensor:
        """The angle from -pi to pi of the point (`other`, `input`), in radians."""
    def arctan2_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `atan2`; returns the tensor itself."""
    def hypot(self, other: Tensor | Number) -> Tensor:
        """`sqrt(input**2 + other**2)` without overflow; the gradient at the origin is zero."""
    def hypot_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `hypot`; returns the tensor itself."""
    def logaddexp(self, other: Tensor | Number) -> Tensor:
        """`log(exp(input) + exp(other))` without overflow."""
    def logaddexp2(self, other: Tensor | Number) -> Tensor:
        """`log2(2**input + 2**other)` without overflow."""
    def xlogy(self, other: Tensor | Number) -> Tensor:
        """`input * log(other)`, and 0 where `input` is 0, unless `other` is NaN."""
    def xlogy_(self, other: Tensor | Number) -> Tensor:
        """In-place form of `xlogy`; returns the tensor itself."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """`log(input / (1 - input))`, the inverse of `sigmoid`; `eps` first clamps to eps, 1 - eps."""
    def logit_(self, eps: builtins.float | None = None) -> Tensor:
        """In-place form of `logit`; returns the tensor itself."""
    def erf(self) -> Tensor:
        """The error function of each element."""
    def erf_(self) -> Tensor:
        """In-place form of `erf`; returns the tensor itself."""
    def erfc(self) -> Tensor:
        """`1 - erf(input)`, accurate also where it is small."""
    def erfc_(self) -> Tensor:
        """In-place form of `erfc`; returns the tensor itself."""
    def erfinv(self) -> Tensor:
        """The inverse of `erf`; infinite at -1 and 1, NaN beyond."""
    def erfinv_(self) -> Tensor:
        """In-place form of `erfinv`; returns the tensor itself."""
    def lgamma(self) -> Tensor:
        """The logarithm of the absolute value of the gamma function."""
    def lgamma_(self) -> Tensor:
        """In-place form of `lgamma`; returns the tensor itself."""
    def digamma(self) -> Tensor:
        """The derivative of `lgamma`."""
    def digamma_(self) -> Tensor:
        """In-place form of `digamma`; returns the tensor itself."""
    def polygamma(self, n: builtins.int) -> Tensor:
        """`ut.polygamma(n, input)`."""
    def polygamma_(self, n: builtins.int) -> Tensor:
        """In-place form of `polygamma`; returns the tensor itself."""
    def i0(self) -> Tensor:
        """The modified Bessel function of the first kind of order 0."""
    def i0_(self) -> Tensor:
        """In-place form of `i0`; returns the tensor itself."""
    def sinc(self) -> Tensor:
        """`sin(pi * input) / (pi * input)`, and 1 at zero."""
    def sinc_(self) -> Tensor:
        """In-place form of `sinc`; returns the tensor itself."""
    def relu_(self) -> Tensor:
        """In-place form of `relu`; returns the tensor itself."""
    def relu(self) -> Tensor:
        """`max(input, 0)`, elementwise; the gradient at zero is zero."""
    def prelu(self, weight: Tensor) -> Tensor:
        """`leaky_relu` whose slope is a tensor of one element, or of one for each channel (dim 1)."""
    def hardshrink(self, lambd: builtins.float = 0.5) -> Tensor:
        """The elements of size above `lambd`, and zero in place of the others."""
    def frexp(self) -> Parts:
        """`input` as mantissa times two to the exponent, the mantissa at least 0.5 and below 1."""
    def nextafter(self, other: Tensor) -> Tensor:
        """The next floating number after `input` towards `other`."""
    def nextafter_(self, other: Tensor) -> Tensor:
        """In-place form of `nextafter`; returns the tensor itself."""
    def igamma(self, other: Tensor) -> Tensor:
        """The regularized lower incomplete gamma function P of `input` (a) and `other` (x)."""
    def igamma_(self, other: Tensor) -> Tensor:
        """In-place form of `igamma`; returns the tensor itself."""
    def igammac(self, other: Tensor) -> Tensor:
        """The regularized upper incomplete gamma function, 1 - `igamma`, accurate where it is small."""
    def igammac_(self, other: Tensor) -> Tensor:
        """In-place form of `igammac`; returns the tensor itself."""
    def mvlgamma(self, p: builtins.int) -> Tensor:
        """The logarithm of the multivariate gamma function of dimension `p`."""
    def mvlgamma_(self, p: builtins.int) -> Tensor:
        """In-place form of `mvlgamma`; returns the tensor itself."""
    def __getitem__(self, key: Index) -> Tensor: ...
    def __setitem__(self, key: Index, value: Tensor | Number | NDArray[Any]) -> None: ...
    def __delitem__(self, key: Any) -> None: ...
    def index_put(
        self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False
    ) -> Tensor:
        """`input` with `values` written (or added) at `input[indices]`."""
    def index_put_(
        self, indices: Sequence[Tensor | None], values: Tensor, accumulate: builtins.bool = False
    ) -> Tensor:
        """In-place form of `index_put`; returns the tensor itself."""
    def take(self, index: Tensor) -> Tensor:
        """Elements of `input`, seen as one row, at positions of any shape."""
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """`input` with the elements of `source` written (or added) at positions in it, seen as a row."""
    def put_(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """In-place form of `put`; returns the tensor itself."""
    def repeat_interleave(
        self,
        repeats: Ints | Tensor | None = None,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Each element (or slice along `dim`) several times; of `repeats` alone, the positions."""
    def masked_fill(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        """`value`, a number or zero-dimensional tensor, where the mask is true, else `input`."""
    def masked_fill_(self, mask: Tensor, value: Tensor | Number) -> Tensor:
        """In-place form of `masked_fill`; returns the tensor itself."""
    @overload
    def nonzero(self, *, as_tuple: Literal[False] = False) -> Tensor:
        """The coordinates of the nonzero elements: one row each, or one tensor for each dimension."""
    @overload
    def nonzero(self, *, as_tuple: Literal[True]) -> tuple[Tensor, ...]:
        """The coordinates of the nonzero elements: one row each, or one tensor for each dimension."""
    @overload
    def nonzero(self, *, as_tuple: builtins.bool = False) -> Tensor | tuple[Tensor, ...]:
        """The coordinates of the nonzero elements: one row each, or one tensor for each dimension."""
    def argwhere(self) -> Tensor:
        """The coordinates of the nonzero elements, one row each."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where the mask, broadcast against `input`, is true, as a vector."""
    def masked_scatter(self, mask: Tensor, source: Tensor) -> Tensor:
        """`input` with the leading elements of `source`, in order, where the mask is true."""
    def masked_scatter_(self, mask: Tensor, source: Tensor) -> Tensor:
        """In-place form of `masked_scatter`; returns the tensor itself."""
    def gcd(self, other: Tensor) -> Tensor:
        """The greatest common divisor; that of 0 and 0 is 0."""
    def gcd_(self, other: Tensor) -> Tensor:
        """In-place form of `gcd`; returns the tensor itself."""
    def lcm(self, other: Tensor) -> Tensor:
        """The least common multiple; 0 if one of them is 0."""
    def lcm_(self, other: Tensor) -> Tensor:
        """In-place form of `lcm`; returns the tensor itself."""
    def nonzero_static(self, *, size: builtins.int, fill_value: builtins.int = -1) -> Tensor:
        """`nonzero`, cut off after `size` rows, or filled up to them with rows of `fill_value`."""
    def hash_tensor(
        self, dim: Ints | None = None, keepdim: builtins.bool = False, *, mode: builtins.int = 0
    ) -> Tensor:
        """A number (uint64) that tells tensors apart: exclusive or of the bits of all elements."""
    def sum(
        self,
        dim: Ints | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """The sum over all or some dimensions; integers are summed as int64."""
    def mean(
        self,
        dim: Ints | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """The mean over all or some dimensions; NaN where there are no elements."""
    def prod(
        self,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """The product over all dimensions or one; integers are multiplied as int64."""
    def amax(self, dim: Ints = (), keepdim: builtins.bool = False) -> Tensor:
        """The maximum over all or some dimensions; its gradient is shared evenly between ties."""
    def amin(self, dim: Ints = (), keepdim: builtins.bool = False) -> Tensor:
        """The minimum over all or some dimensions; its gradient is shared evenly between ties."""
    @overload
    def max(self) -> Tensor:
        """The maximum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def max(self, dim: builtins.int, keepdim: builtins.bool = False) -> Selection:
        """The maximum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def max(self, other: Tensor, /) -> Tensor:
        """The maximum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def max(self, *, other: Tensor) -> Tensor:
        """The maximum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def min(self) -> Tensor:
        """The minimum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def min(self, dim: builtins.int, keepdim: builtins.bool = False) -> Selection:
        """The minimum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def min(self, other: Tensor, /) -> Tensor:
        """The minimum: of all elements, along a dim with its indices, or of two tensors."""
    @overload
    def min(self, *, other: Tensor) -> Tensor:
        """The minimum: of all elements, along a dim with its indices, or of two tensors."""
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The index of the first maximum along `dim`, or in the flattened tensor."""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The index of the first minimum along `dim`, or in the flattened tensor."""
    def any(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether some element is nonzero, over all or some dimensions."""
    def all(self, dim: Ints | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether every element is nonzero, over all or some dimensions."""
    def logsumexp(self, dim: Ints, keepdim: builtins.bool = False) -> Tensor:
        """`log(sum(exp(input)))` over some dimensions, without overflow."""
    def nansum(
        self,
        dim: Ints | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """The sum over all or some dimensions with NaN taken for zero."""
    def nanmean(
        self,
        dim: Ints | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """The mean over all or some dimensions of the elements that are not NaN."""
    def count_nonzero(self, dim: Ints | None = None) -> Tensor:
        """How many elements are nonzero, over all or some dimensions; NaN is nonzero."""
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> MinMax:
        """The minimum and the maximum, of all elements or along a dim."""
    def norm(
        self,
        p: builtins.float | str | None = "fro",
        dim: Ints | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: DTypeLike | None = None,
    ) -> Tensor:
        """The p-norm of the elements over all or some dimensions."""
    def dist(self, other: Tensor, p: builtins.float = 2) -> Tensor:
        """The p-norm of `input - other`."""
    def gather(
        self, dim: builtins.int, index: Tensor, *, sparse_grad: builtins.bool = False
    ) -> Tensor:
        """Elements picked along `dim`: `out[i][j] = input[i][index[i][j]]` for dim 1."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """`gather` with the other dimensions broadcast; without `dim`, from `input` as one row."""
    def scatter(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """`input` with the elements of `src`, or one value, written where `gather` would read them."""
    def scatter_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Tensor | Number | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """In-place form of `scatter`; returns the tensor itself."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """`input` plus the elements of `src`, each added where `gather` would read it."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """In-place form of `scatter_add`; returns the tensor itself."""
    def scatter_reduce(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Tensor,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """The elements of `src` reduced into the places where `gather` would read them."""
    def scatter_reduce_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Tensor,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """In-place form of `scatter_reduce`; returns the tensor itself."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """The slices of `input` along `dim` that a vector of positions names."""
    def index_add(
        self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1
    ) -> Tensor:
        """`input` with `alpha` times the slices of `source` added to its slices at `index`."""
    def index_add_(
        self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1
    ) -> Tensor:
        """In-place form of `index_add`; returns the tensor itself."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """`input` with its slices at `index` replaced by those of `source`."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """In-place form of `index_copy`; returns the tensor itself."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Tensor | Number) -> Tensor:
        """`input` with every element of its slices at `index` replaced by one value."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Tensor | Number) -> Tensor:
        """In-place form of `index_fill`; returns the tensor itself."""
    def index_reduce(
        self,
        dim: builtins.int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """The slices of `source` reduced (prod, mean, amax, amin) into the slices at `index`."""
    def index_reduce_(
        self,
        dim: builtins.int,
        index: Tensor,
        source: Tensor,
        reduce: str,
        *,
        include_self: builtins.bool = True,
    ) -> Tensor:
        """In-place form of `index_reduce`; returns the tensor itself."""
    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product; vectors and batches as in NumPy's `@`, batch dimensions broadcast."""
    def __matmul__(self, other: Tensor) -> Tensor: ...
    def __rmatmul__(self, other: Tensor) -> Tensor: ...
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices of one size."""
    def mv(self, vec: Tensor) -> Tensor:
        """A matrix times a vector."""
    def dot(self, tensor: Tensor) -> Tensor:
        """The sum of the products of two vectors' elements."""
    def vdot(self, other: Tensor) -> Tensor:
        """`dot`, with the first vector conjugated if it is complex."""
    def inner(self, other: Tensor) -> Tensor:
        """The sum of products over the last dimension of both; with a zero-d tensor, the product."""
    def outer(self, vec2: Tensor) -> Tensor:
        """All products of an element of one vector with an element of the other."""
    def ger(self, vec2: Tensor) -> Tensor:
        """All products of an element of one vector with an element of the other."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta * input + alpha * (mat1 @ mat2)` for matrices."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """In-place form of `addmm`; returns the tensor itself."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta * input + alpha * (mat @ vec)` for a matrix and a vector."""
    def addmv_(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """In-place form of `addmv`; returns the tensor itself."""
    def baddbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """`beta * input + alpha * (batch1 @ batch2)` for batches of matrices."""
    def baddbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """In-place form of `baddbmm`; returns the tensor itself."""
    def addbmm(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """`beta * input + alpha * (batch1 @ batch2).sum(0)` for batches of matrices."""
    def addbmm_(
        self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1
    ) -> Tensor:
        """In-place form of `addbmm`; returns the tensor itself."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """`beta * input + alpha * outer(vec1, vec2)`."""
    def addr_(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """In-place form of `addr`; returns the tensor itself."""
    def trace(self) -> Tensor:
        """The sum of the diagonal of a matrix."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: every element of `input` times all of `other`, as blocks."""
    def cross(self, other: Tensor, dim: builtins.int | None = None) -> Tensor:
        """The cross product along a dimension of size 3, by default the first such one."""
    def diagonal(
        self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """A view of a diagonal in the plane of two dimensions, as a new last dimension."""
    def diag_embed(
        self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1
    ) -> Tensor:
        """Matrices of zeros with the last dimension of `input` on a diagonal."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """A matrix with a vector on its diagonal, or a copy of the diagonal of a matrix."""
    def diagflat(self, offset: builtins.int = 0) -> Tensor:
        """A matrix with all elements of `input` on its diagonal."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """The lower triangle of matrices up to a diagonal, zeros above it."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """In-place form of `tril`; returns the tensor itself."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """The upper triangle of matrices from a diagonal on, zeros below it."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """In-place form of `triu`; returns the tensor itself."""
    def triangular_solve(
        self,
        A: Tensor,
        upper: builtins.bool = True,
        transpose: builtins.bool = False,
        unitriangular: builtins.bool = False,
    ) -> TriangularSolution:
        """X of A X = B, or of Aᵀ X = B, for a triangular A; and a copy of A."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """`linalg.cholesky`."""
    def cholesky_solve(self, L: Tensor, upper: builtins.bool = False) -> Tensor:
        """X of A X = B, given the Cholesky factor of A."""
    def cholesky_inverse(self, upper: builtins.bool = False) -> Tensor:
        """The inverse of a matrix whose Cholesky factor is given."""
    def qr(self, some: builtins.bool = True) -> QR:
        """`linalg.qr`: reduced, or complete with `some=False`."""
    def geqrf(self) -> Reflections:
        """LAPACK's packed QR: R, the reflections' vectors below its diagonal, and their factors."""
    def orgqr(self, input2: Tensor) -> Tensor:
        """`linalg.householder_product`."""
    def ormqr(
        self,
        tau: Tensor,
        other: Tensor,
        left: builtins.bool = True,
        transpose: builtins.bool = False,
    ) -> Tensor:
        """The whole Q of `geqrf`'s reflections times a matrix: Q C, or C Q with `left=False`."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> OldSVD:
        """U, S and V of A = U S Vᴴ, full matrices with `some=False`; U and V zero if not wanted."""
    def inverse(self) -> Tensor:
        """`linalg.inv`."""
    def det(self) -> Tensor:
        """`linalg.det`."""
    def slogdet(self) -> SignLogDet:
        """`linalg.slogdet`."""
    def logdet(self) -> Tensor:
        """The logarithm of the determinant: NaN where that is negative, minus infinity at zero."""
    def matrix_exp(self) -> Tensor:
        """`linalg.matrix_exp`."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """`linalg.matrix_power`."""
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """`linalg.pinv` with a tolerance relative to the largest singular value."""
    def lu(
        self, pivot: builtins.bool = True, get_infos: builtins.bool = False
    ) -> LUFactor | LUFactorInfo:
        """`linalg.lu_factor`, or with `get_infos` `linalg.lu_factor_ex`."""
    def lu_solve(self, LU_data: Tensor, LU_pivots: Tensor) -> Tensor:
        """`linalg.lu_solve` with its arguments in an older order."""
    def bernoulli(
        self, p: builtins.float | None = None, *, generator: Generator | None = None
    ) -> Tensor:
        """Ones with the probabilities in `input`, or with probability `p` in the shape of `input`."""
    def multinomial(
        self,
        num_samples: builtins.int,
        replacement: builtins.bool = False,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Indices drawn with probabilities proportional to the weights in each row of `input`."""
    def uniform_(
        self,
        from_: builtins.float = 0,
        to: builtins.float = 1,
        *,
        generator: Generator | None = None,
        **bounds: builtins.float,
    ) -> Tensor:
        """Fill with uniform numbers in [from, to)."""
    def normal_(
        self,
        mean: builtins.float = 0,
        std: builtins.float = 1,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with normal numbers of the given mean and standard deviation."""
    def log_normal_(
        self,
        mean: builtins.float = 1,
        std: builtins.float = 2,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with exp of normal numbers of the given mean and standard deviation."""
    def bernoulli_(
        self, p: Tensor | builtins.float = 0.5, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with ones with probability `p` (a number, or a tensor that broadcasts), else zeros."""
    def random_(
        self,
        from_: builtins.int | None = None,
        to: builtins.int | EllipsisType | None = ...,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with integers: `random_(to)` below to, `random_(from, to)` from from."""
    def exponential_(
        self, lambd: builtins.float = 1, *, generator: Generator | None = None
    ) -> Tensor:
        """Fill with exponential numbers of the given rate; never exactly zero."""
    def geometric_(self, p: builtins.float, *, generator: Generator | None = None) -> Tensor:
        """Fill with the number of trials up to the first success, each of probability `p`."""
    def cauchy_(
        self,
        median: builtins.float = 0,
        sigma: builtins.float = 1,
        *,
        generator: Generator | None = None,
    ) -> Tensor:
        """Fill with Cauchy numbers of the given median and scale."""
    def sort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = False,
    ) -> Selection:
        """The elements in order along `dim`, and their indices; NaN counts as largest."""
    def argsort(
        self,
        dim: builtins.int = -1,
        descending: builtins.bool = False,
        stable: builtins.bool = False,
    ) -> Tensor:
        """The indices that put the elements in order along `dim`."""
    def msort(self) -> Tensor:
        """The elements in order along the first dimension."""
    def topk(
        self,
        k: builtins.int,
        dim: builtins.int = -1,
        largest: builtins.bool = True,
        sorted: builtins.bool = True,
    ) -> Selection:
        """The k largest (or smallest) elements along `dim` in order, and their indices."""
    def kthvalue(
        self, k: builtins.int, dim: builtins.int = -1, keepdim: builtins.bool = False
    ) -> Selection:
        """The k-th smallest element along `dim`, counted from 1, and its index."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: builtins.int | None = None,
    ) -> Tensor:
        """The distinct elements in order, or the distinct slices along `dim`."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: Literal[False] = False,
        *,
        return_counts: Literal[True],
        dim: builtins.int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The distinct elements in order, or the distinct slices along `dim`."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[False] = False,
        dim: builtins.int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The distinct elements in order, or the distinct slices along `dim`."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[True],
        dim: builtins.int | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The distinct elements in order, or the distinct slices along `dim`."""
    @overload
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The distinct elements in order, or the distinct slices along `dim`."""
    @overload
    def unique_consecutive(
        self,
        return_inverse: Literal[False] = False,
        return_counts: Literal[False] = False,
        dim: builtins.int | None = None,
    ) -> Tensor:
        """The elements, or the slices along `dim`, with all but the first of each run left out."""
    @overload
    def unique_consecutive(
        self,
        return_inverse: Literal[False] = False,
        *,
        return_counts: Literal[True],
        dim: builtins.int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The elements, or the slices along `dim`, with all but the first of each run left out."""
    @overload
    def unique_consecutive(
        self,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[False] = False,
        dim: builtins.int | None = None,
    ) -> tuple[Tensor, Tensor]:
        """The elements, or the slices along `dim`, with all but the first of each run left out."""
    @overload
    def unique_consecutive(
        self,
        *,
        return_inverse: Literal[True],
        return_counts: Literal[True],
        dim: builtins.int | None = None,
    ) -> tuple[Tensor, Tensor, Tensor]:
        """The elements, or the slices along `dim`, with all but the first of each run left out."""
    @overload
    def unique_consecutive(
        self,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Tensor | tuple[Tensor, ...]:
        """The elements, or the slices along `dim`, with all but the first of each run left out."""
    def softmax(self, dim: builtins.int | None = None, dtype: DTypeLike | None = None) -> Tensor:
        """`exp(input)` divided by its sum along `dim`; never overflows."""
    def log_softmax(
        self, dim: builtins.int | None = None, dtype: DTypeLike | None = None
    ) -> Tensor:
        """`log(softmax(input, dim))`, accurate where the softmax itself would round to zero."""
    def renorm(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """`input` with each slice along `dim` whose p-norm is above `maxnorm` scaled down to it."""
    def renorm_(self, p: builtins.float, dim: builtins.int, maxnorm: builtins.float) -> Tensor:
        """In-place form of `renorm`; returns the tensor itself."""
    def cov(
        self,
        *,
        correction: builtins.int = 1,
        fweights: Tensor | None = None,
        aweights: Tensor | None = None,
    ) -> Tensor:
        """The covariance matrix of variables in rows; of one variable, its variance."""
    def corrcoef(self) -> Tensor:
        """The correlation coefficients of variables in rows: their covariance on a common scale."""
    def histogram(
        self,
        bins: Tensor | builtins.int,
        *,
        range: Sequence[builtins.float] | None = None,
        weight: Tensor | None = None,
        density: builtins.bool = False,
    ) -> Histogram:
        """How many elements lie between each two edges, or the sum of their weights."""
    def var(
        self,
        dim: Ints | None = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """The variance over all or some dimensions: squared deviations over `n - correction`."""
    def std(
        self,
        dim: Ints | None = None,
        unbiased: builtins.bool | None = None,
        keepdim: builtins.bool = False,
        *,
        correction: builtins.float | None = None,
    ) -> Tensor:
        """The standard deviation over all or some dimensions: the root of `var`."""
    @overload
    def median(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
        """The median of all elements, or along a dim with its index; NaN if any element is."""
    @overload
    def median(self, dim: builtins.int, keepdim: builtins.bool = False) -> Selection:
        """The median of all elements, or along a dim with its index; NaN if any element is."""
    @overload
    def nanmedian(self, dim: None = None, keepdim: builtins.bool = False) -> Tensor:
        """The median of the elements that are not NaN, of all or along a dim with its index."""
    @overload
    def nanmedian(self, dim: builtins.int, keepdim: builtins.bool = False) -> Selection:
        """The median of the elements that are not NaN, of all or along a dim with its index."""
    def mode(self, dim: builtins.int = -1, keepdim: builtins.bool = False) -> Selection:
        """The most frequent element along `dim` (the smallest of several), and its last index."""
    def quantile(
        self,
        q: Tensor | builtins.float,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        """The q-th quantiles of all elements, or along a dim; NaN if any element is."""
    def nanquantile(
        self,
        q: Tensor | builtins.float,
        dim: builtins.int | None = None,
        keepdim: builtins.bool = False,
        *,
        interpolation: str = "linear",
    ) -> Tensor:
        """The q-th quantiles of the elements that are not NaN; see `quantile`."""
    def histc(
        self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0
    ) -> Tensor:
        """How many elements fall into each of `bins` equal intervals from `min` to `max`."""
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """How often each of 0, 1, 2 … occurs, or the sum of the weights of its occurrences."""
    def as_strided(
        self,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        storage_offset: builtins.int | None = None,
    ) -> Tensor:
        """A view of the tensor's memory by sizes, strides and offset in elements of its storage."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """A view of all windows of `size` along a dimension, every `step`; they form a new last one."""
    def unsafe_chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """The parts that `chunk` gives, as if they did not share memory."""
    def unsafe_split(
        self, split_size_or_sections: Ints, dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """The parts that `split` gives, as if they did not share memory."""
    def unsafe_split_with_sizes(
        self, split_sizes: Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """The parts that `split_with_sizes` gives, as if they did not share memory."""
    def narrow_copy(
        self, dim: builtins.int, start: builtins.int | Tensor, length: builtins.int
    ) -> Tensor:
        """A copy of the view that `narrow` gives: it shares no memory with `input`."""
    def squeeze_(self, dim: Ints | None = None) -> Tensor:
        """`squeeze` of the tensor itself: the same memory, without dimensions of size 1."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """`unsqueeze` of the tensor itself."""
    def t_(self) -> Tensor:
        """`t` of the tensor itself."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """`transpose` of the tensor itself."""
    def swapaxes_(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """`swapaxes` of the tensor itself."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """`swapdims` of the tensor itself."""
    def as_strided_(
        self,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        storage_offset: builtins.int | None = None,
    ) -> Tensor:
        """`as_strided` of the tensor itself; views that were made before have no gradient any more."""
    def new_empty_strided(
        self,
        size: Ints,
        stride: Ints,
        dtype: DTypeLike | None = None,
        device: DeviceLike | None = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """`empty_strided` in the dtype and on the device of this tensor."""
    def set_(
        self,
        source: Tensor | UntypedStorage | None = None,
        storage_offset: builtins.int = 0,
        size: Ints | None = None,
        stride: Ints | None = None,
    ) -> Tensor:
        """Look at the memory of another tensor instead, or at a storage or at none; both then share it."""
    @overload
    def flip(self, *order: builtins.int) -> Tensor:
        """A copy with the elements along `dims` in reverse."""
    @overload
    def flip(self, dims: Sequence[builtins.int]) -> Tensor:
        """A copy with the elements along `dims` in reverse."""
    def fliplr(self) -> Tensor:
        """A copy with the columns (dimension 1) in reverse."""
    def flipud(self) -> Tensor:
        """A copy with the rows (dimension 0) in reverse."""
    def roll(self, shifts: Ints, dims: Ints | None = None) -> Tensor:
        """A copy shifted along `dims`; what leaves at the end comes in at the front."""
    def rot90(self, k: builtins.int = 1, dims: Sequence[builtins.int] = (0, 1)) -> Tensor:
        """A copy rotated `k` times by 90 degrees in the plane of two dims, first to second."""
    @overload
    def repeat(self, *times: builtins.int) -> Tensor:
        """A copy repeated along every dimension; more repeats than dimensions add some in front."""
    @overload
    def repeat(self, repeats: Sequence[builtins.int]) -> Tensor:
        """A copy repeated along every dimension; more repeats than dimensions add some in front."""
    @overload
    def tile(self, *times: builtins.int) -> Tensor:
        """A copy repeated along the last dimensions, as `repeat` with missing repeats taken as 1."""
    @overload
    def tile(self, dims: Sequence[builtins.int]) -> Tensor:
        """A copy repeated along the last dimensions, as `repeat` with missing repeats taken as 1."""
    def select_scatter(self, src: Tensor, dim: builtins.int, index: builtins.int) -> Tensor:
        """A copy with `src` in place of `select(dim, index)`."""
    def slice_scatter(
        self,
        src: Tensor,
        dim: builtins.int = 0,
        start: builtins.int | None = None,
        end: builtins.int | None = None,
        step: builtins.int = 1,
    ) -> Tensor:
        """A copy with `src` in place of the slice `start:end:step` of dimension `dim`."""
    def diagonal_scatter(
        self, src: Tensor, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1
    ) -> Tensor:
        """A copy with `src` in place of `diagonal(offset, dim1, dim2)`."""
    def as_strided_scatter(
        self,
        src: Tensor,
        size: Sequence[builtins.int],
        stride: Sequence[builtins.int],
        storage_offset: builtins.int | None = None,
    ) -> Tensor:
        """A copy with `src` in place of `as_strided(size, stride, storage_offset)`."""
    def stft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Tensor | None = None,
        center: builtins.bool = True,
        pad_mode: str = "reflect",
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        return_complex: builtins.bool | None = None,
        align_to_window: builtins.bool | None = None,
    ) -> Tensor:
        """The short-time Fourier transform: of a signal (time) or a batch of them, (frequency, frame)."""
    def istft(
        self,
        n_fft: builtins.int,
        hop_length: builtins.int | None = None,
        win_length: builtins.int | None = None,
        window: Tensor | None = None,
        center: builtins.bool = True,
        normalized: builtins.bool = False,
        onesided: builtins.bool | None = None,
        length: builtins.int | None = None,
        return_complex: builtins.bool = False,
    ) -> Tensor:
        """The signal of which `stft` with the same arguments gives `input`, or the nearest there is."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
        inputs: Any = None,
        *,
        workers: builtins.int | None = None,
    ) -> None:
        """Compute the gradients of this tensor and add them to the leaves' `.grad`."""
