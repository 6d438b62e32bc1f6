"""Autocast: which functions run in a lower precision inside `ut.autocast`, and how they get there.

The lists are torch's for the CPU; they hold for every device. A listed function casts its floating
tensors (but float64) and then runs as usual, so casts are recorded like any op and gradients come
back in the dtype of the parameter. Inside a listed function, and in a backward, autocast is off.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from .. import dtypes
from ..dtypes import DType
from .dispatch import cast
from .modes import State, current, enter, leave
from .node import AccumulateGrad
from .tensor import Tensor, share

LOWER, SINGLE, WIDEST, AS_IT_IS = "lower precision", "float32", "widest", "as it is"

_LISTS = {
    LOWER: """
        addbmm addmm baddbmm bmm conv1d conv2d conv3d conv_tbc conv_transpose1d conv_transpose2d
        conv_transpose3d linalg.vecdot linear matmul mm prelu rnn_relu rnn_relu_cell rnn_tanh
        rnn_tanh_cell scaled_dot_product_attention
    """,
    SINGLE: """
        adaptive_avg_pool3d adaptive_max_pool3d avg_pool3d binary_cross_entropy
        binary_cross_entropy_with_logits cdist
        cosine_embedding_loss cross_entropy ctc_loss fake_quantize_per_tensor_affine
        fractional_max_pool2d fractional_max_pool3d
        grid_sample hinge_embedding_loss huber_loss kl_div l1_loss lp_pool3d margin_ranking_loss
        max_pool3d max_unpool1d max_unpool2d max_unpool3d mse_loss
        multi_margin_loss multilabel_margin_loss nanquantile nll_loss poisson_nll_loss polar prod
        quantile smooth_l1_loss soft_margin_loss trace triplet_margin_loss view_as_complex
        cholesky cholesky_inverse cholesky_solve geqrf inverse lu lu_solve orgqr ormqr pinverse qr
        svd triangular_solve
        linalg.cholesky linalg.cholesky_ex linalg.cond linalg.eig linalg.eigh linalg.eigvals
        linalg.eigvalsh linalg.householder_product linalg.inv linalg.inv_ex linalg.lstsq
        linalg.matrix_rank linalg.qr linalg.solve linalg.svd linalg.svdvals linalg.tensorinv
        linalg.tensorsolve fft.fft fft.fft2 fft.fftn fft.hfft fft.ifft fft.ifft2 fft.ifftn fft.ihfft
        fft.irfft fft.irfft2 fft.irfftn fft.rfft fft.rfft2 fft.rfftn stft
    """,
    WIDEST: "cat index_copy stack",
}
POLICIES: dict[str, str | Callable[..., str | None]] = {
    name: policy for policy, names in _LISTS.items() for name in names.split()
}


# torch lists kernels, and some functions run different ones: these say which list their call is on.
def _pad(input: Tensor, pad: Any, mode: str = "constant", value: Any = None) -> str | None:
    listed = mode == "replicate" or (mode == "reflect" and len(pad) < 6)
    return SINGLE if listed else None


def _max_pool3d(*args: Any, return_indices: bool = False, **kwargs: Any) -> str | None:
    return None if return_indices or len(args) > 6 else SINGLE


def _interpolate(
    input: Tensor, size: Any = None, scale_factor: Any = None, mode: str = "nearest", *more: Any
) -> str | None:
    return SINGLE if mode == "area" and input.ndim == 5 else None


def _local_response_norm(input: Tensor, *more: Any, **kwargs: Any) -> str | None:
    return SINGLE if input.ndim > 3 else None


def _einsum(*args: Any) -> str | None:
    """A product of matrices if two operands share a letter that the output lacks."""
    if isinstance(args[0], str):
        left, arrow, right = args[0].replace(" ", "").replace(".", "").partition("->")
        terms: list[Any] = left.split(",")
        output: Any = right if arrow else ()
    else:  # einsum(x, [0, 1], y, [1, 2], [0, 2])
        terms = list(args[1::2])
        output = args[-1] if len(args) % 2 else ()
    shared = {c for i, t in enumerate(terms) for other in terms[:i] for c in t if c in other}
    return LOWER if shared - set(output) else None


def _inner(input: Tensor, other: Tensor) -> str | None:
    return LOWER if input.ndim and other.ndim and input.ndim + other.ndim > 2 else None


def _tensordot(a: Tensor, b: Tensor, *more: Any, **kwargs: Any) -> str | None:
    return LOWER if a.ndim + b.ndim > 2 else None


def _chain_matmul(*matrices: Any) -> str | None:
    return LOWER if _tensors(matrices) > 1 else None


def _tensors(value: Any) -> int:
    if isinstance(value, (list, tuple)):
        return sum(map(_tensors, value))
    return int(isinstance(value, Tensor))


POLICIES |= {
    "pad": _pad,
    "max_pool3d": _max_pool3d,
    "interpolate": _interpolate,
    "local_response_norm": _local_response_norm,
    "einsum": _einsum,
    "inner": _inner,
    "tensordot": _tensordot,
    "chain_matmul": _chain_matmul,
    "bilinear": AS_IT_IS,
}

# The device types that autocast was ever on for: empty means that nobody need look further.
EVER: set[str] = set()


class Autocast:
    """What is on in a context: the lower dtype by device type, and the casts made so far.

    `lower` also remembers dtypes that were set for device types that are off. A parameter is cast
    once in an outermost region: `casts` keeps it, with the version of what was cast.
    """

    __slots__ = ("caching", "casts", "inside", "lower", "on")

    def __init__(
        self,
        on: frozenset[str] = frozenset(),
        lower: dict[str, DType] | None = None,
        caching: bool = True,
        casts: dict[tuple[int, DType], tuple[Tensor, int, Tensor]] | None = None,
    ) -> None:
        self.on = on
        self.lower = lower or {}
        self.caching = caching
        self.casts = {} if casts is None else casts
        self.inside: tuple[State | None, State | None] = (None, None)

    def but(self, device_type: str, enabled: bool, dtype: DType, caching: bool) -> Autocast:
        """This one, changed for one device type."""
        if enabled:
            EVER.add(device_type)
        on = self.on | {device_type} if enabled else self.on - {device_type}
        return Autocast(on, {**self.lower, device_type: dtype}, caching, self.casts)

    def fresh(self) -> Autocast:
        """The same, with no casts made so far."""
        return Autocast(self.on, self.lower, self.caching)

    @property
    def settings(self) -> Any:
        """What it does, to be compared."""
        return self.on, tuple(sorted(self.lower.items(), key=str)), self.caching

    def without(self, state: State) -> State:
        """`state`, in which this autocast is on, with autocast off."""
        inside = self.inside
        if inside[0] is not state:
            inside = self.inside = (state, state.but(autocast=None))
        assert inside[1] is not None
        return inside[1]

    def eligible(self, value: Any) -> bool:
        """Whether autocast touches a value: floating tensors of its devices, but float64."""
        return (
            isinstance(value, Tensor)
            and value.is_floating_point()
            and value.dtype is not dtypes.float64
            and value.device.type in self.on
        )

    def target(self, t: Tensor, policy: str, wide: bool) -> DType:
        """The dtype in which a listed function gets a tensor."""
        lower = self.lower[t.device.type]
        return dtypes.float32 if policy is SINGLE or (policy is WIDEST and wide) else lower

    def converted(self, t: Tensor, dtype: DType) -> Tensor:
        """`t` in `dtype`; a parameter that was cast before and has not changed: that cast."""
        kept = (
            self.caching
            and t.dtype is dtypes.float32 is not dtype
            and current().grad
            and isinstance(t._node, AccumulateGrad)
            and t._base is None
        )
        if not kept:
            return cast(t, dtype)
        found = self.casts.get((id(t), dtype))
        if found is None or found[1] != t._version:
            found = self.casts[id(t), dtype] = (t, share(t).version.value, cast(t, dtype))
        return found[2]


def autocast_on() -> bool:
    """Whether autocast is on for some device in this context."""
    autocast = current().autocast
    return autocast is not None and bool(autocast.on)


def autocasting(policy: Any, fn: Callable[..., Any], args: Any, kwargs: dict[str, Any]) -> Any:
    """Call a listed function in a context where autocast may be on."""
    if not autocast_on():
        return fn(*args, **kwargs)
    state = current()
    autocast: Autocast = state.autocast
    if callable(policy):
        try:
            policy = policy(*args, **kwargs)
        except (
            TypeError,
            AttributeError,
            LookupError,
        ):  # a wrong call, which the function itself explains
            policy = None
    if policy is None:
        return fn(*args, **kwargs)
    if policy is not AS_IT_IS:
        args, kwargs = _cast_arguments(autocast, policy, args, kwargs)
    token = enter(autocast.without(state))
    try:
        return fn(*args, **kwargs)
    finally:
        leave(token)


def _cast_arguments(
    autocast: Autocast, policy: str, args: Any, kwargs: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    wide = False

    def look(value: Any) -> None:
        nonlocal wide
        if isinstance(value, (list, tuple)):
            for v in value:
                look(v)
        elif autocast.eligible(value):
            wide = wide or value.dtype is dtypes.float32

    def convert(value: Any) -> Any:
        if type(value) in (list, tuple):
            return type(value)([convert(v) for v in value])
        if not autocast.eligible(value):
            return value
        return autocast.converted(value, autocast.target(value, policy, wide))

    if policy is WIDEST:
        look((*args, *kwargs.values()))
    return tuple([convert(a) for a in args]), {n: convert(v) for n, v in kwargs.items()}
