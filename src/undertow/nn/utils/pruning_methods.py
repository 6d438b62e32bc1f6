"""Ways to choose which elements of a parameter are pruned, and how a module is told.

The parameter becomes `name_orig`, the buffer `name_mask` tells what is kept, and a hook multiplies
them before each forward.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator
from numbers import Integral, Real
from typing import Any

from ...core.register import FUNCTIONS
from ...core.tensor import Tensor
from ...errors import ArgumentError, DTypeError, ShapeError
from ..modules.module import Module


class BasePruningMethod(ABC):
    """A way to choose what is pruned; a subclass gives `PRUNING_TYPE` and `compute_mask`.

    The type is "unstructured" (single elements, of those that are left), "structured" (whole slices
    along `self.dim`) or "global" (the method looks at everything).

    >>> import undertow as ut
    >>> class Negative(ut.nn.utils.prune.BasePruningMethod):
    ...     PRUNING_TYPE = "unstructured"
    ...
    ...     def compute_mask(self, t, default_mask):
    ...         return default_mask * (t >= 0)
    >>> Negative().prune(ut.tensor([1.0, -2.0]))
    tensor([1., -0.])
    """

    PRUNING_TYPE: str
    _tensor_name: str

    @abstractmethod
    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The new mask, given how much the elements matter and what is pruned already."""

    def __call__(self, module: Module, inputs: Any) -> None:
        setattr(module, self._tensor_name, self.apply_mask(module))

    def apply_mask(self, module: Module) -> Tensor:
        """The parameter as it was, times the mask."""
        original: Tensor = getattr(module, f"{self._tensor_name}_orig")
        mask: Tensor = getattr(module, f"{self._tensor_name}_mask")
        return mask.to(original.dtype) * original

    @classmethod
    def apply(
        cls,
        module: Module,
        name: str,
        *args: Any,
        importance_scores: Tensor | None = None,
        **kwargs: Any,
    ) -> BasePruningMethod:
        """Prune a parameter; a second method prunes what the first one left."""
        method: BasePruningMethod = cls(*args, **kwargs)
        method._tensor_name = name
        tensor = getattr(module, name)
        scores = _scores(cls.__name__, tensor, importance_scores)
        key, before = pruning_of(module, name)
        if before is None:
            mask = method.compute_mask(scores, FUNCTIONS["ones_like"](tensor.detach()))
            delattr(module, name)
            module.register_parameter(f"{name}_orig", tensor)
        else:
            container = before if isinstance(before, PruningContainer) else PruningContainer(before)
            container.add_pruning_method(method)
            mask = container.compute_mask(scores, getattr(module, f"{name}_mask").detach().clone())
            del pre_hooks(module)[key]
            method = container
        module.register_buffer(f"{name}_mask", mask.detach())
        method(module, None)
        module.register_forward_pre_hook(method)
        return method

    def prune(
        self, t: Tensor, default_mask: Tensor | None = None, importance_scores: Tensor | None = None
    ) -> Tensor:
        """The tensor with the elements at zero that this method chooses; no module is changed."""
        scores = _scores(type(self).__name__, t, importance_scores)
        mask = FUNCTIONS["ones_like"](t.detach()) if default_mask is None else default_mask
        return t * self.compute_mask(scores, mask)

    def remove(self, module: Module) -> None:
        """Make the pruned tensor the parameter."""
        name = self._tensor_name
        pruned, parameter = self.apply_mask(module).detach(), getattr(module, f"{name}_orig")
        for gone in (name, f"{name}_orig", f"{name}_mask"):
            delattr(module, gone)
        parameter.data = pruned
        setattr(module, name, parameter)


class PruningContainer(BasePruningMethod):
    """Several methods that prune one parameter, one after the other."""

    PRUNING_TYPE = "unstructured"

    def __init__(self, *args: BasePruningMethod) -> None:
        self._pruning_methods: tuple[BasePruningMethod, ...] = ()
        for method in args:
            self.add_pruning_method(method)

    def add_pruning_method(self, method: BasePruningMethod) -> None:
        """Prune what is left by this method as well."""
        if not isinstance(method, BasePruningMethod):
            raise DTypeError(f"[PruningContainer] holds pruning methods, got {method!r}")
        name = self.__dict__.setdefault("_tensor_name", method._tensor_name)
        if name != method._tensor_name:
            raise ArgumentError(
                f"[PruningContainer] prunes {name!r}, got a method for {method._tensor_name!r}"
            )
        self._pruning_methods += (method,)

    def __len__(self) -> int:
        return len(self._pruning_methods)

    def __iter__(self) -> Iterator[BasePruningMethod]:
        return iter(self._pruning_methods)

    def __getitem__(self, idx: int) -> BasePruningMethod:
        return self._pruning_methods[idx]

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask after the last method, which sees only what is not pruned yet."""
        method = self._pruning_methods[-1]
        left: Any
        if method.PRUNING_TYPE == "unstructured":
            left = default_mask == 1
        elif method.PRUNING_TYPE == "structured":
            dim = _dim(type(method).__name__, t, getattr(method, "dim"))  # noqa: B009
            others = [d for d in range(t.ndim) if d != dim]
            left = (slice(None),) * dim + (default_mask.sum(others) != 0,)
        elif method.PRUNING_TYPE == "global":
            left = ...
        else:
            raise ArgumentError(
                f'[{type(method).__name__}] PRUNING_TYPE must be "unstructured", "structured" or '
                f'"global", got {method.PRUNING_TYPE!r}'
            )
        mask = default_mask.to(t.dtype, copy=True)
        mask[left] = method.compute_mask(t.detach()[left], default_mask[left]).to(mask.dtype)
        return mask


class Identity(BasePruningMethod):
    """Prune nothing, but make the parameter a pruned one."""

    PRUNING_TYPE = "unstructured"

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask as it is."""
        return default_mask


class _Amount(BasePruningMethod):
    """A method that prunes a number of elements (int) or a share of them (float)."""

    def __init__(self, amount: Any) -> None:
        op = type(self).__name__
        if not isinstance(amount, Real):
            raise DTypeError(f"[{op}] amount must be a number, got {amount!r}")
        if float(amount) < 0 or (not isinstance(amount, Integral) and float(amount) > 1):
            raise ArgumentError(
                f"[{op}] amount must be a share from 0 to 1 or a number of elements, got {amount}"
            )
        self.amount: Any = amount

    def _number(self, size: int) -> int:
        """How many of `size` are pruned."""
        if not isinstance(self.amount, Integral):
            return round(self.amount * size)
        if int(self.amount) > size:
            raise ArgumentError(
                f"[{type(self).__name__}] amount={self.amount}, but there are only {size} to prune"
            )
        return int(self.amount)


class _Unstructured(_Amount):
    """A method that prunes the elements with the lowest scores."""

    PRUNING_TYPE = "unstructured"

    @abstractmethod
    def _ranks(self, t: Tensor) -> Tensor:
        """A score for each element."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the elements that have the lowest scores."""
        number = self._number(t.numel())
        ranks = self._ranks(t.detach()).reshape(-1)
        mask = default_mask.reshape(-1).clone()
        mask[ranks.topk(number, largest=False).indices] = 0
        return mask.reshape(default_mask.shape)


class RandomUnstructured(_Unstructured):
    """Prune elements at random.

    >>> import undertow as ut
    >>> ut.nn.utils.prune.RandomUnstructured(3).prune(ut.ones(4)).sum()
    tensor(1.)
    """

    def _ranks(self, t: Tensor) -> Tensor:
        return FUNCTIONS["rand"](t.shape, device=t.device)


class L1Unstructured(_Unstructured):
    """Prune the smallest elements.

    >>> import undertow as ut
    >>> ut.nn.utils.prune.L1Unstructured(0.5).prune(ut.tensor([1.0, -3.0, 2.0, 0.5]))
    tensor([ 0., -3.,  2.,  0.])
    """

    def _ranks(self, t: Tensor) -> Tensor:
        return t.abs()


class _Structured(_Amount):
    """A method that prunes the slices along a dimension with the lowest scores."""

    PRUNING_TYPE = "structured"

    def __init__(self, amount: float, dim: int = -1) -> None:
        super().__init__(amount)
        self.dim = dim

    @abstractmethod
    def _ranks(self, t: Tensor, dim: int) -> Tensor:
        """A score for each slice."""

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """The mask without the slices that have the lowest scores."""
        op = type(self).__name__
        if t.ndim < 2:
            raise ShapeError(f"[{op}] prunes slices of at least two dimensions, got {t.shape}")
        dim = _dim(op, t, self.dim)
        lowest = self._ranks(t.detach(), dim).topk(self._number(t.shape[dim]), largest=False)
        return default_mask.index_fill(dim, lowest.indices, 0)


class RandomStructured(_Structured):
    """Prune slices at random.

    >>> import undertow as ut
    >>> ut.nn.utils.prune.RandomStructured(1, dim=0).prune(ut.ones(3, 2)).sum()
    tensor(4.)
    """

    def _ranks(self, t: Tensor, dim: int) -> Tensor:
        return FUNCTIONS["rand"](t.shape[dim], device=t.device)


class LnStructured(_Structured):
    """Prune the slices of the smallest n-norm.

    >>> import undertow as ut
    >>> w = ut.tensor([[1.0, 1.0], [3.0, 3.0], [2.0, 2.0]])
    >>> ut.nn.utils.prune.LnStructured(1, n=2, dim=0).prune(w).tolist()
    [[0.0, 0.0], [3.0, 3.0], [2.0, 2.0]]
    """

    def __init__(self, amount: float, n: Any, dim: int = -1) -> None:
        super().__init__(amount, dim)
        self.n = n

    def _ranks(self, t: Tensor, dim: int) -> Tensor:
        return t.norm(self.n, dim=[d for d in range(t.ndim) if d != dim])


class CustomFromMask(BasePruningMethod):
    """Prune where a mask is zero."""

    PRUNING_TYPE = "global"

    def __init__(self, mask: Tensor) -> None:
        self.mask = mask

    def compute_mask(self, t: Tensor, default_mask: Tensor) -> Tensor:
        """Both masks."""
        if default_mask.shape != self.mask.shape:
            raise ShapeError(
                f"[CustomFromMask] the mask has shape {self.mask.shape}, the parameter "
                f"{default_mask.shape}"
            )
        return default_mask * self.mask.to(default_mask.dtype)


def pre_hooks(module: Module) -> dict[Any, Any]:
    return {} if module._hooks is None else module._hooks.forward_pre


def pruning_of(module: Module, name: str) -> tuple[Any, BasePruningMethod | None]:
    """The hook that prunes a parameter, and its key."""
    for key, hook in pre_hooks(module).items():
        if isinstance(hook.fn, BasePruningMethod) and hook.fn._tensor_name == name:
            return key, hook.fn
    return None, None


def _scores(op: str, t: Tensor, scores: Tensor | None) -> Tensor:
    """How much each element matters: by itself, or as it is told."""
    if scores is None:
        return t
    if scores.shape != t.shape:
        raise ShapeError(
            f"[{op}] importance_scores must have the parameter's shape {t.shape}, got "
            f"{scores.shape}"
        )
    return scores


def _dim(op: str, t: Tensor, dim: int) -> int:
    if not -t.ndim <= dim < t.ndim:
        raise IndexError(f"[{op}] dim {dim} is out of range for a tensor of shape {t.shape}")
    return dim % t.ndim
