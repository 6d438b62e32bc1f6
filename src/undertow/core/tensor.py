"""The Tensor: an array, the node that made it, and what it shares memory with.

Only what is not an op stands here; the ops attach themselves as methods (see `core/register`).
"""

from __future__ import annotations

import gc
import os
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any, overload

from .. import dtypes
from ..backends.dual import LEVELS, DualArray, living, primal_of
from ..backends.locks import Lock
from ..backends.registry import backend_of
from ..backends.wrapped import WrapperArray, array_of, device_of, instance_of
from ..devices import Device
from ..dtypes import DType
from ..errors import DTypeError, GradientError, InplaceError
from ..shapes import SIZES, Size, wrap_dim
from .modes import current
from .node import AccumulateGrad, Node, RemovableHandle
from .recording import RECORDERS, changed, recorder, touched

if TYPE_CHECKING:  # what ops attach; written by tools/stubs.py
    from .tensor_methods import TensorMethods
else:
    TensorMethods = object

_sharing = Lock()
if hasattr(os, "register_at_fork"):  # another thread of the parent may hold it at that moment
    os.register_at_fork(after_in_child=_sharing._at_fork_reinit)


class Version:
    """How often a buffer has been changed in place; one object for all tensors that share it.

    `overwritten` marks the stand-in that an in-place op computes from: its memory is about to
    change, so whoever saves it saves a copy.
    """

    __slots__ = ("overwritten", "value")

    def __init__(self, overwritten: bool = False) -> None:
        self.value = 0
        self.overwritten = overwritten


# The way from a base to a view, as (the way before, the last step): a view of a view shares the
# way of the first, so that a long chain of views costs no more than its links.
Steps = tuple[Any, tuple[Any, Any]] | None


def listed(steps: Steps) -> tuple[Any, ...]:
    """The steps (op, params) in order."""
    found = []
    while steps is not None:
        steps, step = steps
        found.append(step)
    return tuple(reversed(found))


class Alias:
    """How a tensor shares memory: the buffer's version, and for a view, its way from the base.

    Note [views]
    A view knows its base (which is never a view itself) and the `steps`, (op, params) each, that
    lead from there. An in-place operation on a view rewrites the history of the base, so every
    other view's node is out of date: `seen` is the base's node that the view was made from, and
    when that is no longer the base's node, `node_of` replays the steps before the view is used.
    A view made under no_grad, by a custom Function or by copy.copy never follows its base
    (`tracked` is False); once the base has a new history, and a new version since the view was
    `made`, it is neither the constant nor the result that it was, and differentiating it is an
    error. So it is when the base, changed since, was detached in place before the view could
    follow.
    An op such as `t_` changes the shape of the base itself; its `ways_back` lead from the new shape
    to the one that older views started from, and `ways_seen` counts those made before the view.
    A tensor that was never viewed nor changed has no Alias at all: that is the common, fast case.
    """

    __slots__ = (
        "base",
        "dormant",
        "inference",
        "made",
        "seen",
        "steps",
        "tracked",
        "ways_seen",
        "ways_back",
        "version",
    )

    version: Version
    made: int
    base: Tensor | None
    steps: Steps
    seen: Node | None
    inference: bool
    tracked: bool
    ways_seen: int
    ways_back: tuple[Any, ...]
    dormant: AccumulateGrad | None  # of a leaf whose gradients are switched off


class TensorType(type):
    """What it means to call Tensor: torch's old constructor; `ut.tensor(data)` keeps the dtype.

    It stands here and not in `Tensor.__new__`, so that the class itself makes instances without
    calling anything in Python, see `wrap`; of subclasses `Tensor.__new__` makes them.
    """

    def __call__(cls, *args: Any, **kwargs: Any) -> Any:
        if cls is Tensor:
            from .legacy import construct

            return construct("Tensor", args, dtypes.get_default_dtype(), **kwargs)
        return super().__call__(*args, **kwargs)


class Tensor(TensorMethods, metaclass=TensorType):
    """A multi-dimensional array that records what was done to it.

    Made by `ut.tensor`, `ut.zeros`, `ut.from_numpy` … and by every operation.

    >>> import undertow as ut
    >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    # `__dict__` is for attributes of the user's: nothing fills it until one is set.
    __slots__ = ("__dict__", "__weakref__", "_alias", "_array", "_grad", "_index", "_node")

    _array: Any
    _node: Node | None  # what made it; the AccumulateGrad node of a leaf that wants a gradient
    _index: int  # which output of the node it is
    _alias: Alias | None
    _grad: Tensor | None

    __torch_dispatch__: Any  # nobody's; see `core/overriding`
    __array_priority__ = 1000
    __hash__ = object.__hash__

    # What it is ---------------------------------------------------------------------------
    @staticmethod
    def _make_subclass(kind: type[Tensor], data: Tensor, require_grad: bool = False) -> Tensor:
        """A leaf of a subclass that shares the memory of `data`, for the `__new__` of that one."""
        made = wrap_shared(data._array, share(data), kind)
        if require_grad:
            Tensor.requires_grad.fset(made, True)  # type: ignore[attr-defined]
        return made

    @staticmethod
    def _make_wrapper_subclass(
        cls: type[Tensor],
        size: Iterable[int],
        strides: Any = None,
        storage_offset: Any = None,
        memory_format: Any = None,
        dtype: Any = None,
        layout: Any = None,
        device: Any = None,
        pin_memory: bool = False,
        requires_grad: bool = False,
        *policies: Any,
        **more_policies: Any,
    ) -> Any:
        """An instance of a subclass that holds other tensors: shape, dtype, device, no memory."""
        from .wrapping import make_wrapper

        return make_wrapper(cls, size, strides, dtype, device, requires_grad)

    @classmethod
    def __torch_function__(
        cls,
        func: Callable[..., Any],
        types: Iterable[type],
        args: tuple[Any, ...] = (),
        kwargs: dict[str, Any] | None = None,
    ) -> Any:
        """What a function gives for an instance of a subclass: results of that class."""
        from .overriding import of_subclass

        return of_subclass(cls, func, types, args, kwargs)

    @property
    def shape(self) -> Size:
        """The sizes of its dimensions."""
        return SIZES[self._array.shape]

    @property
    def ndim(self) -> int:
        """The number of its dimensions."""
        return len(self._array.shape)

    @property
    def dtype(self) -> DType:
        """The element type."""
        return dtypes.of_array(self._array.dtype)

    @property
    def device(self) -> Device:
        """Where its elements live."""
        array = self._array
        return device_of(array) if array.__class__ is WrapperArray else backend_of(array).device

    @property
    def itemsize(self) -> int:
        """Bytes per element."""
        return int(self._array.dtype.itemsize)

    def element_size(self) -> int:
        """Bytes per element.

        >>> import undertow as ut
        >>> ut.zeros(3).element_size(), ut.zeros(3, dtype=ut.float64).element_size()
        (4, 8)
        """
        return self.itemsize

    @property
    def nbytes(self) -> int:
        """Bytes of all its elements."""
        return int(self._array.size * self._array.dtype.itemsize)

    @overload
    def size(self, dim: None = None) -> Size: ...
    @overload
    def size(self, dim: int) -> int: ...
    def size(self, dim: int | None = None) -> Size | int:
        """The shape, or the size of one dimension.

        >>> import undertow as ut
        >>> x = ut.zeros(2, 3)
        >>> tuple(x.size()), x.size(-1)
        ((2, 3), 3)
        """
        sizes: tuple[int, ...] = self._array.shape
        if dim is None:
            return SIZES[sizes]
        rank = len(sizes)
        if dim.__class__ is int and -rank <= dim < rank:  # models ask for it all the time
            return sizes[dim]
        if not rank:
            raise wrap_error("size", dim)
        return sizes[wrap_dim("size", dim, rank)]

    def dim(self) -> int:
        """The number of its dimensions.

        >>> import undertow as ut
        >>> ut.zeros(2, 3).dim()
        2
        """
        return self.ndim

    ndimension = dim

    def numel(self) -> int:
        """The number of its elements.

        >>> import undertow as ut
        >>> ut.zeros(2, 3).numel()
        6
        """
        return int(self._array.size)

    nelement = numel

    @overload
    def stride(self, dim: None = None) -> tuple[int, ...]: ...
    @overload
    def stride(self, dim: int) -> int: ...
    def stride(self, dim: int | None = None) -> tuple[int, ...] | int:
        """Steps in elements along each dimension, or along one.

        >>> import undertow as ut
        >>> x = ut.zeros(2, 3)
        >>> x.stride(), x.T.stride(), x.stride(0)
        ((3, 1), (1, 3), 3)
        """
        strides = tuple(s // self.itemsize for s in self._array.strides)
        if dim is None:
            return strides
        from ..shapes import wrap_dim

        if not self.ndim:
            raise wrap_error("stride", dim)
        return strides[wrap_dim("stride", dim, self.ndim)]

    def storage_offset(self) -> int:
        """Elements between the start of its memory and its first element.

        >>> import undertow as ut
        >>> ut.zeros(2, 3)[1, 1:].storage_offset()
        4
        """
        return backend_of(self._array).storage_offset(self._array)

    def data_ptr(self) -> int:
        """The address of the first element.

        >>> import undertow as ut
        >>> x = ut.zeros(3)
        >>> x[1:].data_ptr() - x.data_ptr()  # one element of four bytes further
        4
        """
        return backend_of(self._array).address(self._array)

    def is_contiguous(self, memory_format: Any = None) -> bool:
        """Whether the elements lie in row-major order (or that of the format) without gaps.

        >>> import undertow as ut
        >>> x = ut.zeros(2, 3)
        >>> x.is_contiguous(), x.T.is_contiguous(), x.T.contiguous().is_contiguous()
        (True, False, True)
        """
        k, array = backend_of(self._array), self._array
        name = getattr(memory_format, "name", "")
        if name.startswith("channels_last"):
            if self.ndim != (5 if name.endswith("3d") else 4):
                return False
            array = k.permute(array, (0, *range(2, self.ndim), 1))
        return k.contiguous(array)

    def is_floating_point(self) -> bool:
        """Whether the dtype is a floating one.

        >>> import undertow as ut
        >>> ut.tensor([1.0]).is_floating_point(), ut.tensor([1]).is_floating_point()
        (True, False)
        """
        return self.dtype.is_floating_point

    def is_complex(self) -> bool:
        """Whether the dtype is a complex one.

        >>> import undertow as ut
        >>> ut.tensor([1 + 2j]).is_complex(), ut.tensor([1.0]).is_complex()
        (True, False)
        """
        return self.dtype.is_complex

    def is_signed(self) -> bool:
        """Whether the dtype holds negative numbers.

        >>> import undertow as ut
        >>> ut.tensor([1.0]).is_signed(), ut.tensor([1], dtype=ut.uint8).is_signed()
        (True, False)
        """
        return self.dtype.is_signed

    def is_inference(self) -> bool:
        """Whether it was made in `inference_mode`.

        >>> import undertow as ut
        >>> with ut.inference_mode():
        ...     x = ut.ones(2)
        >>> x.is_inference()
        True
        """
        return self._alias is not None and self._alias.inference

    # Its place in the graph ---------------------------------------------------------------
    @property
    def requires_grad(self) -> bool:
        """Whether gradients are computed for it; settable on leaves."""
        return node_of(self) is not None

    @requires_grad.setter
    def requires_grad(self, value: bool) -> None:
        self.requires_grad_(value)

    @requires_grad.deleter
    def requires_grad(self) -> None:
        raise GradientError("[requires_grad] cannot be deleted; set it to False")

    def requires_grad_(self, requires_grad: bool = True) -> Tensor:
        """Switch gradients on or off for this leaf; returns itself.

        >>> import undertow as ut
        >>> x = ut.tensor([1.0, 2.0]).requires_grad_()
        >>> (x**2).sum().backward()
        >>> x.grad
        tensor([2., 4.])
        """
        changed()
        node = node_of(self)
        if requires_grad:
            if node is None:
                if not self.dtype.is_differentiable:
                    raise GradientError(
                        "[requires_grad_] only floating and complex tensors can require gradients, "
                        f"this one is {self.dtype}; convert it first with .to(ut.float32)"
                    )
                if self.is_inference() and not current().inference:
                    raise GradientError(
                        "[requires_grad_] this tensor was made in inference_mode; clone() it first"
                    )
                # Switched off and on again it is the same leaf, with its hooks.
                dormant = None if self._alias is None else self._alias.dormant
                self._node = dormant or AccumulateGrad(self)
                self._node.metas = ((self._array.shape, self._array.dtype),)
                self._index = 0
        elif isinstance(node, AccumulateGrad):
            share(self).dormant = node
            self._node = None
        elif node is not None:
            raise GradientError(
                "[requires_grad_] only a leaf can stop requiring gradients; "
                "use detach() to get a tensor without history"
            )
        return self

    @property
    def is_leaf(self) -> bool:
        """Whether no recorded operation made it."""
        node = node_of(self)
        return node is None or isinstance(node, AccumulateGrad)

    @property
    def grad_fn(self) -> Node | None:
        """The node that made it; None for a leaf."""
        node = node_of(self)
        return None if isinstance(node, AccumulateGrad) else node

    @property
    def output_nr(self) -> int:
        """Which output of its `grad_fn` it is."""
        return self._index

    @property
    def grad(self) -> Tensor | None:
        """The gradient that backward accumulated here."""
        if RECORDERS:
            touched(self)
        return self._grad

    @grad.setter
    def grad(self, value: Tensor | None) -> None:
        if value is not None:
            given: Any = value  # a sparse tensor may be a gradient, and is no Tensor
            if not isinstance(given, Tensor) and not getattr(given, "is_sparse", False):
                raise DTypeError(
                    f"[grad] can be set to a Tensor or None, got {type(value).__name__}"
                )
            if value is self:
                raise GradientError("[grad] a tensor cannot be its own gradient")
            expected = self.grad_dtype if self.is_leaf else self.dtype
            if value.shape != self.shape or value.dtype is not (expected or value.dtype):
                raise GradientError(
                    f"[grad] expects shape {self.shape} and {expected or 'any dtype'}, "
                    f"got {value.shape} and {value.dtype}"
                )
            if value.device != self.device:
                raise GradientError(f"[grad] expects device {self.device}, got {value.device}")
        if RECORDERS:
            touched(self)
        self._grad = value

    @grad.deleter
    def grad(self) -> None:
        if RECORDERS:
            touched(self)
        self._grad = None

    @property
    def grad_dtype(self) -> DType | None:
        """The dtype of the gradient that this leaf accumulates; None for that of what arrives.

        It is the leaf's own until it is set. Gradients that arrive are cast.

        >>> import undertow as ut
        >>> x = ut.ones(2, dtype=ut.bfloat16, requires_grad=True)
        >>> x.grad_dtype = ut.float32
        >>> (x * 3).sum().backward()
        >>> x.grad
        tensor([3., 3.])
        """
        if not self.is_leaf:
            raise GradientError("[grad_dtype] only a leaf accumulates gradients; this is a result")
        node = self._accumulator()
        found = False if node is None else node.grad_dtype
        return self.dtype if found is False else found  # type: ignore[return-value]

    @grad_dtype.setter
    def grad_dtype(self, value: DType | None) -> None:
        if not self.is_leaf:
            raise GradientError("[grad_dtype] can be set on leaves only; this is a result")
        if value is not None and not isinstance(value, DType):
            raise DTypeError(f"[grad_dtype] is a dtype or None, got {type(value).__name__}")
        if value is not None and self._grad is not None and self._grad.dtype is not value:
            raise GradientError(
                f"[grad_dtype] cannot be {value}, since there is a gradient of {self._grad.dtype}; "
                "set .grad to None first"
            )
        node = self._accumulator()
        if node is None:
            node = share(self).dormant = AccumulateGrad(self)
        node.grad_dtype = value

    def _accumulator(self) -> AccumulateGrad | None:
        """The node of this leaf, also if its gradients are switched off."""
        if self._node is not None:
            return self._node if isinstance(self._node, AccumulateGrad) else None
        return None if self._alias is None else self._alias.dormant

    @property
    def retains_grad(self) -> bool:
        """Whether `retain_grad` was called on this non-leaf."""
        node = self.grad_fn
        return node is not None and node.hooks is not None and self._index in node.hooks.capture

    def retain_grad(self) -> None:
        """Keep `.grad` of this non-leaf as well; nothing to do for a leaf.

        >>> import undertow as ut
        >>> x = ut.tensor(3.0, requires_grad=True)
        >>> y = x**2
        >>> y.retain_grad()
        >>> (2 * y).backward()
        >>> y.grad, x.grad
        (tensor(2.), tensor(12.))
        """
        import weakref

        node = node_of(self)
        if node is None:
            raise GradientError("[retain_grad] this tensor does not require gradients")
        if not isinstance(node, AccumulateGrad):
            node._hooks().capture[self._index] = weakref.ref(self)

    def register_hook(self, hook: Callable[[Tensor], Tensor | None]) -> RemovableHandle:
        """Call `hook(grad)` once per backward with the summed gradient; it may return another.

        >>> import undertow as ut
        >>> x = ut.tensor([1.0, 2.0], requires_grad=True)
        >>> handle = x.register_hook(lambda grad: grad * 10)
        >>> (x + x).sum().backward()
        >>> x.grad
        tensor([20., 20.])
        """
        node = node_of(self)
        if node is None:
            raise GradientError("[register_hook] this tensor does not require gradients")
        return RemovableHandle(node._hooks().tensor.setdefault(self._index, {}), hook)

    def register_post_accumulate_grad_hook(self, hook: Callable[[Tensor], None]) -> RemovableHandle:
        """Call `hook(tensor)` after the gradient of this leaf has been accumulated.

        >>> import undertow as ut
        >>> w = ut.tensor([1.0, 2.0], requires_grad=True)
        >>> def step(w):  # an optimiser inside the backward pass: the gradient is not kept
        ...     with ut.no_grad():
        ...         w -= 0.1 * w.grad
        ...     w.grad = None
        >>> handle = w.register_post_accumulate_grad_hook(step)
        >>> (w**2).sum().backward()
        >>> w.detach(), w.grad
        (tensor([0.8000, 1.6000]), None)
        """
        node = node_of(self)
        if not isinstance(node, AccumulateGrad):
            raise GradientError(
                "[register_post_accumulate_grad_hook] works on leaves that require gradients"
            )
        if node.post_accumulate is None:
            node.post_accumulate = {}
        node.holds = self
        return RemovableHandle(node.post_accumulate, hook)

    # Sharing memory -----------------------------------------------------------------------
    def detach(self) -> Tensor:
        """The same memory without history, nor a tangent.

        >>> import undertow as ut
        >>> x = ut.tensor([2.0], requires_grad=True)
        >>> y = x.detach()
        >>> y.requires_grad, y.data_ptr() == x.data_ptr()
        (False, True)
        """
        if RECORDERS and recorder() is not None:
            recorder().saw(self)
        array = primal_of(self._array) if LEVELS else self._array
        return wrap_shared(array, share(self))

    def _same(self) -> Tensor:
        """The same memory without history, and with its tangent."""
        if RECORDERS and recorder() is not None:
            recorder().saw(self)
        return wrap_shared(self._array, share(self))

    def detach_(self) -> Tensor:
        """Forget the history of this tensor in place.

        >>> import undertow as ut
        >>> x = ut.tensor([2.0], requires_grad=True)
        >>> y = x * 3
        >>> y.detach_().requires_grad
        False
        """
        if self._alias is not None and self._alias.base is not None:
            raise InplaceError(
                "[detach_] a view cannot be detached in place: its base would still have the "
                "history; use detach()"
            )
        alias = share(self)  # whoever saved it must attach it to its old history again
        if isinstance(self._node, AccumulateGrad):
            alias.dormant = self._node
        self._node = None
        self._index = 0
        if LEVELS:
            self._array = primal_of(self._array)
        return self

    @property
    def data(self) -> Tensor:
        """The same memory without history, and with a version of its own.

        A change through it is not noticed by a gradient that needs the old value, as in torch:
        programs that know what they do write to parts that nobody needs. `detach` notices.
        """
        found = self.detach()
        found._alias = new_alias(Version(), inference=share(found).inference)
        return found

    @data.setter
    def data(self, value: Tensor) -> None:
        if not isinstance(value, Tensor):
            raise DTypeError(f"[data] can be set to a Tensor, got {type(value).__name__}")
        changed()
        kind = value.dtype
        if node_of(self) is not None and not (kind.is_floating_point or kind.is_complex):
            raise GradientError(
                f"[data] of a tensor that requires gradients is floating or complex, got {kind}"
            )
        if value._array is self._array:  # module.to(...) that has nothing to move
            return
        if isinstance(self._node, AccumulateGrad):
            self._node.metas = ((value.shape, value._array.dtype),)
        before = share(self)
        self._array = value._array
        if before.base is not None:
            before.version.value += 1  # saved uses of the old memory are out of date
            return
        # So they are here, where this tensor itself was saved. What has the old memory keeps its
        # version: other tensors, and the outputs that nodes have saved, as in torch.
        version = Version()
        version.value = before.version.value + 1
        alias = new_alias(version, inference=before.inference, tracked=before.tracked)
        alias.dormant = before.dormant
        self._alias = alias

    @data.deleter
    def data(self) -> None:
        raise GradientError("[data] cannot be deleted; set it to another tensor")

    @property
    def _version(self) -> int:
        """How often its memory has been changed in place."""
        return 0 if self._alias is None else self._alias.version.value

    @property
    def _base(self) -> Tensor | None:
        """What it is a view of."""
        return None if self._alias is None else self._alias.base

    def _is_view(self) -> bool:
        return self._base is not None

    def _as_saved(self) -> Tensor:
        """The same memory and version outside the graph: how an output saves itself.

        Until somebody shares the memory of the output (`share`), there is no version to follow;
        but saved-tensor hooks keep what they are given, so they get one at once. So do indices,
        such as `max` gives away: they have no node that `share` could find what was saved by.
        """
        if self._alias is None and (current().pack is not None or self._array.dtype.kind == "i"):
            self._alias = new_alias(Version())
        return wrap(self._array) if self._alias is None else wrap_shared(self._array, self._alias)

    def _attached(self, node: Node | None, index: int) -> Tensor:
        """The same memory as the output `index` of `node`."""
        other = wrap_shared(self._array, share(self))
        other._node = node
        other._index = index
        return other

    def _kept(self) -> Tensor:
        """Itself, or a copy of its value and history when its memory is about to be overwritten."""
        if self._alias is None or not self._alias.version.overwritten:
            return self
        kept = wrap(backend_of(self._array).copy(self._array))
        kept._node, kept._index = node_of(self), self._index
        return kept

    def _check_savable(self, op: str) -> None:
        if self._alias is not None and self._alias.inference:
            raise GradientError(
                f"[{op}] an inference tensor of shape {self.shape} cannot be saved for a gradient; "
                "clone() it outside inference_mode first"
            )


def wrap_error(op: str, dim: Any) -> Exception:
    from ..errors import DimError

    return DimError(f"[{op}] dim {dim} given for a tensor of 0 dimensions")


def _constructed(cls: type[Tensor], *args: Any, **kwargs: Any) -> Any:
    """An instance of a subclass, of what `ut.Tensor` takes: `super().__new__(cls, data)`."""
    from .legacy import construct

    if len(args) == 1 and isinstance(args[0], Tensor):
        shared: Any = args[0].as_subclass(cls)
        return shared
    data = construct("Tensor", args, dtypes.get_default_dtype(), **kwargs)
    return data if cls is Tensor else wrap_shared(data._array, share(data), cls)


# Not by `Tensor.__new__ = …`, which would have Python call it for each result: subclasses that are
# made from now on find it, and Tensor itself stays as it is; see `TensorType`.
gc.get_referents(vars(Tensor))[0]["__new__"] = staticmethod(_constructed)
Tensor.__doc__ = Tensor.__doc__  # and Python forgets what it had found for `Tensor.__new__`

# The classes that override no function: their instances are not asked. See Note [overriding].
PLAIN: set[type] = {Tensor}

# A Tensor with nothing set, made as by a class that has no TensorType.
_blank: Callable[[], Tensor] = type.__call__.__get__(Tensor)
_new = object.__new__


def wrap(array: Any, node: Node | None = None, index: int = 0) -> Tensor:
    """A tensor around a fresh array, output `index` of `node`: the one place that makes them."""
    t = _blank()
    t._array = array
    t._node = node
    t._index = index
    t._alias = t._grad = None
    return t


def new_alias(
    version: Version, base: Tensor | None = None, inference: bool = False, tracked: bool = True
) -> Alias:
    """How a tensor shares memory that is no view made by an op; for those see `view_of`."""
    alias = Alias()
    alias.version = version
    alias.made = version.value
    alias.base = base
    alias.seen = None if base is None else base._node
    alias.steps = alias.dormant = None
    alias.inference = inference
    alias.tracked = tracked
    alias.ways_seen = 0
    alias.ways_back = ()
    return alias


def view_of(source: Tensor, array: Any, step: Any, grad: bool) -> Tensor:
    """The view `array` of `source`, to which one step leads, and no node yet; see Note [views].

    `source` has an Alias, and its node is up to date.
    """
    t = _blank()
    t._array = array
    t._node = t._grad = None
    t._index = 0
    before: Any = source._alias
    t._alias = alias = Alias()  # has no __init__, and neither is filled by a call: see `wrap`
    alias.version = version = before.version
    alias.made = version.value
    base = before.base
    if base is None:
        base = source
        alias.steps = (None, step)
        alias.ways_seen = len(before.ways_back)
    else:
        alias.steps = (before.steps, step)
        alias.ways_seen = before.ways_seen
    alias.base = base
    alias.seen = base._node
    alias.inference = before.inference
    alias.tracked = grad and before.tracked
    alias.ways_back = ()
    alias.dormant = None
    return t


def wrap_shared(array: Any, alias: Alias, kind: type[Tensor] = Tensor) -> Tensor:
    """A tensor without history that shares another's buffer and version."""
    if kind is Tensor:
        t = _blank()
    else:
        t = _new(kind)
        if kind not in PLAIN:
            from .overriding import notice

            notice(kind)
        if array.__class__ is WrapperArray:  # each instance has its own
            array = array_of(array, kind, vars(t))
    t._array = array
    t._node = t._grad = None
    t._index = 0
    t._alias = new_alias(alias.version, inference=alias.inference)
    return t


def restored(t: Any) -> Any:
    """The wrapper whose array a plain tensor has; any other value as it is."""
    if type(t) is not Tensor or t._array.__class__ is not WrapperArray:
        return t
    array = t._array
    made = instance_of(array)
    made._array, made._node, made._index = array, t._node, t._index
    made._alias, made._grad = t._alias, None
    return made


def beside(new: Tensor, other: Tensor) -> Tensor:
    """`new`, which shares the memory of `other`: no change in place can follow both histories."""
    base = other if other._base is None else other._base
    new._alias = new_alias(share(new).version, base, share(new).inference, tracked=False)
    return new


def share(t: Tensor) -> Alias:
    """The tensor's Alias, made now if it has shared its memory with nobody yet."""
    alias = t._alias
    if alias is None:
        with _sharing:  # two threads must not make two versions of one buffer
            alias = t._alias
            if alias is None:
                alias = new_alias(Version())
                node = t._node
                if node.__class__ is Node and node.plan.outs:
                    _share_saved(node, t._index, alias)
                t._alias = alias
    return alias


def _share_saved(node: Node, index: int, alias: Alias) -> None:
    """Let the output that a node saved follow the version of the tensor that it gave away."""
    if node.saved is not None:
        for j in node.plan.outs:
            if node.plan.recipe[j][1] == index and node.saved[j].__class__ is Tensor:
                node.saved[j]._alias = new_alias(alias.version)


def node_of(t: Tensor) -> Node | None:
    """The node that made `t`, brought up to date first if `t` is a view; see Note [views]."""
    alias = t._alias
    if alias is not None and alias.base is not None and alias.seen is not alias.base._node:
        from .inplace import refresh

        refresh(t, alias)
    return t._node


def is_dual(t: Any) -> bool:
    """Whether a tensor has a tangent; see Note [tangents] in backends/dual."""
    return bool(LEVELS) and isinstance(t, Tensor) and living(t._array).__class__ is DualArray


def differentiated(*tensors: Any) -> bool:
    """Whether a derivative of any of these is wanted: recorded, or by forward mode."""
    grad = current().grad
    for t in tensors:
        if isinstance(t, Tensor) and ((grad and node_of(t) is not None) or is_dual(t)):
            return True
    return False


def connected(t: Tensor, node: Node | None) -> bool:
    """Whether `t`, saved when `node` had made it, still hangs where it did.

    A constant that was made to require gradients later counts, as in torch.
    """
    return t._node is node or (node is None and isinstance(t._node, AccumulateGrad))
