"""Discrete Fourier transforms: the functions of `ut.fft`.

Note [transforms]
There is one op, in four kinds: "forward" and "inverse" of complex numbers, "real" from real numbers
to the half of their spectrum that tells the rest, and "to_real" back. They are linear, and the
gradient of each is one of them with the opposite `norm`: of "real" it is "to_real" of half the
cotangent, since each frequency but 0 and the highest of an even size stands for two, and of
"to_real" it is "real", times two there. Padding, trimming and conjugates are ops of their own.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ... import dtypes
from ...core.dispatch import apply, cast, table
from ...core.op import Op
from ...core.register import function
from ...core.tensor import Tensor
from ...devices import DeviceLike
from ...dtypes import DTypeLike
from ...errors import ArgumentError, DimError, DTypeError
from ...kernel.tables import half_spectrum_weights
from ...shapes import Ints, Shape, as_int, as_ints, wrap_dim, wrap_dims
from ..create.creation import arange
from ..elementwise.complex_numbers import conj
from ..shape.padding import pad
from ..shape.rearrange import roll

_OPPOSITE = {"backward": "forward", "forward": "backward", "ortho": "ortho"}


def _weighted(x: Tensor, dim: int, size: int, factor: float) -> Tensor:
    """The half of a spectrum, with `factor` where a frequency stands for two."""
    shape = (-1, *(1,) * (x.ndim - 1 - dim))
    real = dtypes.real_of(x.dtype)
    return x * table(x, half_spectrum_weights, size, factor, real.numpy.name).reshape(shape)


def _adjoint(g: Tensor, kind: str, dims: Shape, size: int, norm: str) -> Tensor:
    norm = _OPPOSITE[norm]
    if kind in ("forward", "inverse"):
        other = "inverse" if kind == "forward" else "forward"
        return run(other, g, dims, size, norm)
    if kind == "real":
        return run("to_real", _weighted(g, dims[-1], size, 0.5), dims, size, norm)
    return _weighted(run("real", g, dims, size, norm), dims[-1], size, 2.0)


_fft = Op(
    "fft",
    lambda k, x, kind, dims, size, norm: k.fft(kind, x, dims, size, norm),
    inputs="x",
    params="kind dims size norm",
    vjp={"x": _adjoint},
    conjugate=False,
)


def run(kind: str, x: Tensor, dims: Shape, size: int, norm: str) -> Tensor:
    """The op; `size` is that of the last of the dims where numbers are real."""
    found: Tensor = apply(_fft, (x,), (kind, dims, size, norm))
    return found


# Arguments -----------------------------------------------------------------------------------
def _mode(op: str, norm: str | None) -> str:
    if norm is not None and norm not in _OPPOSITE:
        raise ArgumentError(f"[{op}] norm must be one of {', '.join(_OPPOSITE)}, got {norm!r}")
    return norm or "backward"


def _resized(x: Tensor, dim: int, size: int) -> Tensor:
    """Padded with zeros, or trimmed, at the end of a dimension."""
    have = x.shape[dim]
    if have > size:
        return x.narrow(dim, 0, size)
    if have < size:
        return pad(x, [0, 0] * (x.ndim - 1 - dim) + [0, size - have])
    return x


def _listed(op: str, dim: Any, ndim: int) -> Shape:
    """The dims that are given; none at all are none here, and not all of them as in reductions."""
    return () if isinstance(dim, Sequence) and not dim else wrap_dims(op, dim, ndim)


def _dims(op: str, x: Tensor, dim: Any, s: Any) -> tuple[Shape, list[int | None]]:
    """The dimensions, and their sizes or None."""
    sizes: list[int | None] | None = None
    if s is not None:
        sizes = [
            None if n == -1 else n for n in as_ints(op, "s", s if isinstance(s, Sequence) else (s,))
        ]
    if dim is None:
        ndim = x.ndim
        if sizes is not None and len(sizes) > ndim:
            raise DimError(f"[{op}] got {len(sizes)} sizes s for a tensor of {ndim} dimensions")
        dims = tuple(range(ndim))[0 if sizes is None else ndim - len(sizes) :]
    else:
        dims = _listed(op, dim, x.ndim)
    sizes = [None] * len(dims) if sizes is None else sizes
    if len(sizes) != len(dims):
        raise ArgumentError(f"[{op}] expects as many sizes as dims, got s={s} and dim={dim}")
    return dims, sizes


def _floating(op: str, x: Tensor) -> Tensor:
    if x.dtype.itemsize == 2 and x.dtype.is_floating_point:
        raise DTypeError(f"[{op}] takes single and double precision, got {x.dtype}")
    if not (x.is_floating_point() or x.is_complex()):
        return cast(x, dtypes.get_default_dtype())
    return x


def _complex(x: Tensor) -> Tensor:
    return x if x.is_complex() else cast(x, dtypes.complex_of(x.dtype))


def transform(
    op: str, kind: str, x: Tensor, dims: Shape, sizes: list[int | None], norm: str | None
) -> Tensor:
    """The transform of a kind: "", i, r, ir, h or ih before `fft`."""
    mode = _mode(op, norm)
    x = _floating(op, x)
    if not dims:
        if kind in ("", "i"):
            return _complex(x).clone()
        raise DimError(f"[{op}] needs at least one dimension to transform")
    halved = kind in ("ir", "h")
    full = [x.shape[d] if n is None else n for d, n in zip(dims, sizes, strict=True)]
    if halved and sizes[-1] is None:
        full[-1] = 2 * (x.shape[dims[-1]] - 1)
    if min(full) < 1:
        raise ArgumentError(f"[{op}] transforms at least 1 element, got sizes {full}")
    if kind in ("h", "ih"):
        mode = _OPPOSITE[mode]
    if kind in ("r", "ih") and x.is_complex():
        raise DTypeError(f"[{op}] expects a real tensor, got {x.dtype}")
    given = [*full[:-1], full[-1] // 2 + 1] if halved else full
    for d, n in zip(dims, given, strict=True):
        x = _resized(x, d, n)
    if halved:
        x = _complex(x)
        return run("to_real", conj(x) if kind == "h" else x, dims, full[-1], mode)
    if kind in ("r", "ih"):
        found = run("real", x, dims, full[-1], mode)
        return conj(found) if kind == "ih" else found
    return run("inverse" if kind == "i" else "forward", _complex(x), dims, full[-1], mode)


# The functions -------------------------------------------------------------------------------
_WHAT = {
    "": "The discrete Fourier transform",
    "i": "The inverse of `fft{}`",
    "r": "The half of `fft{}` of a real tensor that tells the rest",
    "ir": "The inverse of `rfft{}`: real, of an even size unless told otherwise",
    "h": "The transform, which is real, of half of a Hermitian-symmetric signal",
    "ih": "The inverse of `hfft{}`: half of a Hermitian-symmetric signal",
}


def _doc(kind: str, suffix: str, over: str) -> str:
    call, shown = EXAMPLES[f"{kind}fft{'2' if suffix else ''}"]
    return f"""{_WHAT[kind].format(suffix)}, over {over}.

    `norm` is "backward" (the default: the inverse divides by the number of elements), "forward"
    (the other one does) or "ortho" (both, by its square root).

    >>> import undertow as ut
    >>> ut.fft.{kind}fft{suffix}({call})
    {shown}
    """


def _one(kind: str) -> Callable[..., Tensor]:
    name = f"fft.{kind}fft"

    def one(input: Tensor, n: int | None = None, dim: int = -1, norm: str | None = None) -> Tensor:
        if not input.ndim:
            raise DimError(f"[{name}] needs at least one dimension to transform")
        size = None if n is None else as_int(name, "n", n)
        return transform(name, kind, input, (wrap_dim(name, dim, input.ndim),), [size], norm)

    one.__doc__ = _doc(kind, "", "one dimension, of which `n` elements are taken")
    return function(name=f"{kind}fft", space="fft")(one)


def _several(kind: str, suffix: str) -> Callable[..., Tensor]:
    name = f"fft.{kind}fft{suffix}"

    def two(
        input: Tensor, s: Ints | None = None, dim: Ints = (-2, -1), norm: str | None = None
    ) -> Tensor:
        return transform(name, kind, input, *_dims(name, input, dim, s), norm)

    def many(
        input: Tensor, s: Ints | None = None, dim: Ints | None = None, norm: str | None = None
    ) -> Tensor:
        return transform(name, kind, input, *_dims(name, input, dim, s), norm)

    door = two if suffix == "2" else many
    over = "two dimensions" if suffix == "2" else "all dimensions or `dim`"
    door.__doc__ = _doc(kind, suffix, f"{over}, of which `s` elements are taken")
    return function(name=f"{kind}fft{suffix}", space="fft")(door)


# The arguments and the result of an example for each function; `fftn` has that of `fft2`.
EXAMPLES = {
    "fft": (
        "ut.tensor([1.0, 2.0, 3.0])",
        "tensor([ 6.0000+0.0000j, -1.5000+0.8660j, -1.5000-0.8660j])",
    ),
    "ifft": (
        "ut.tensor([6.0, 0.0, 3.0])",
        "tensor([3.0000+0.0000j, 1.5000-0.8660j, 1.5000+0.8660j])",
    ),
    "rfft": ("ut.tensor([1.0, 2.0, 3.0])", "tensor([ 6.0000+0.0000j, -1.5000+0.8660j])"),
    "irfft": ("ut.tensor([6.0, -2.0, 2.0])", "tensor([1., 1., 3., 1.])"),
    "hfft": ("ut.tensor([6.0, -2.0, 2.0])", "tensor([ 4.,  4., 12.,  4.])"),
    "ihfft": (
        "ut.tensor([4.0, 1.0, 1.0, 2.0])",
        "tensor([2.0000-0.0000j, 0.7500-0.2500j, 0.5000-0.0000j])",
    ),
    "fft2": (
        "ut.tensor([[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]])",
        """tensor([[ 7.0000+0.0000j, -0.5000+0.8660j, -0.5000-0.8660j],
            [ 5.0000+0.0000j, -2.5000+0.8660j, -2.5000-0.8660j]])""",
    ),
    "ifft2": (
        "ut.tensor([[6.0, 0.0, 3.0], [1.0, 0.0, 0.0]])",
        """tensor([[1.6667+0.0000j, 0.9167-0.4330j, 0.9167+0.4330j],
            [1.3333+0.0000j, 0.5833-0.4330j, 0.5833+0.4330j]])""",
    ),
    "rfft2": (
        "ut.tensor([[1.0, 2.0, 3.0], [1.0, 0.0, 0.0]])",
        """tensor([[ 7.0000+0.0000j, -0.5000+0.8660j],
            [ 5.0000+0.0000j, -2.5000+0.8660j]])""",
    ),
    "irfft2": (
        "ut.tensor([[6.0, -2.0, 2.0], [1.0, 0.0, 0.0]])",
        """tensor([[0.6250, 0.6250, 1.6250, 0.6250],
            [0.3750, 0.3750, 1.3750, 0.3750]])""",
    ),
    "hfft2": (
        "ut.tensor([[6.0, -2.0, 2.0], [1.0, 0.0, 0.0]])",
        """tensor([[ 5.,  5., 13.,  5.],
            [ 3.,  3., 11.,  3.]])""",
    ),
    "ihfft2": (
        "ut.tensor([[4.0, 1.0], [1.0, 2.0]])",
        """tensor([[2.0000-0.j, 0.5000-0.j],
            [0.5000-0.j, 1.0000-0.j]])""",
    ),
}
for _kind in _WHAT:
    _one(_kind)
    _several(_kind, "2")
    _several(_kind, "n")


def _shift(name: str, x: Tensor, dim: Ints | None, direction: int) -> Tensor:
    if dim is None:
        dims = tuple(range(x.ndim))
    else:  # one that is named twice is shifted twice
        given = dim if isinstance(dim, Sequence) else (dim,)
        dims = tuple([wrap_dim(name, d, x.ndim) for d in as_ints(name, "dim", given)])
    if not dims:
        return x.clone()
    shifts = [n // 2 if direction > 0 else (n + 1) // 2 for n in (x.shape[d] for d in dims)]
    return roll(x, shifts, dims)


@function(space="fft")
def fftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The frequencies of a spectrum in rising order, zero in the middle.

    >>> import undertow as ut
    >>> ut.fft.fftshift(ut.fft.fftfreq(4))
    tensor([-0.5000, -0.2500,  0.0000,  0.2500])
    """
    return _shift("fft.fftshift", input, dim, 1)


@function(space="fft")
def ifftshift(input: Tensor, dim: Ints | None = None) -> Tensor:
    """The inverse of `fftshift`.

    >>> import undertow as ut
    >>> ut.fft.ifftshift(ut.arange(5))
    tensor([2, 3, 4, 0, 1])
    """
    return _shift("fft.ifftshift", input, dim, -1)


def _frequencies(
    op: str, n: Any, d: float, steps: Tensor, dtype: Any, requires_grad: bool
) -> Tensor:
    wanted = dtypes.get_default_dtype() if dtype is None else dtypes.as_dtype(dtype)
    if not (wanted.is_floating_point or wanted.is_complex):
        raise DTypeError(f"[{op}] makes floating tensors, got dtype {wanted}")
    found = cast(steps / (n * d), wanted)
    return found.requires_grad_() if requires_grad else found


@function(space="fft")
def fftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequency of each element of `fft` of `n` elements that are `d` apart.

    >>> import undertow as ut
    >>> ut.fft.fftfreq(5)
    tensor([ 0.0000,  0.2000,  0.4000, -0.4000, -0.2000])
    """
    count = _count("fft.fftfreq", n)
    steps = arange(count, dtype=dtypes.float64, device=device)
    steps = steps - (steps > (count - 1) // 2) * count
    return _frequencies("fft.fftfreq", count, d, steps, dtype, requires_grad)


@function(space="fft")
def rfftfreq(
    n: int,
    d: float = 1.0,
    *,
    dtype: DTypeLike | None = None,
    device: DeviceLike | None = None,
    requires_grad: bool = False,
) -> Tensor:
    """The frequency of each element of `rfft` of `n` elements that are `d` apart.

    >>> import undertow as ut
    >>> ut.fft.rfftfreq(5)
    tensor([0.0000, 0.2000, 0.4000])
    """
    count = _count("fft.rfftfreq", n)
    steps = arange(count // 2 + 1, dtype=dtypes.float64, device=device)
    return _frequencies("fft.rfftfreq", count, d, steps, dtype, requires_grad)


def _count(op: str, n: Any) -> int:
    count = as_int(op, "n", n)
    if count < 0:
        raise ArgumentError(f"[{op}] n must not be negative, got {count}")
    return count
