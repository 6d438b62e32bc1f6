"""The namespace of the array API standard: its names, its rules, and libraries that use it.

NumPy's own namespace follows the standard, too, so it is the oracle: the same call in both.
"""

from __future__ import annotations

import importlib.util
import math
import os
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import undertow as ut
import undertow.array_api as xp

NAMES = """
abs acos acosh add all any arange argmax argmin argsort asarray asin asinh astype atan atan2 atanh
bitwise_and bitwise_invert bitwise_left_shift bitwise_or bitwise_right_shift bitwise_xor bool
broadcast_arrays broadcast_to can_cast ceil clip complex128 complex64 concat conj copysign cos cosh
count_nonzero cumulative_prod cumulative_sum diff divide e empty empty_like equal exp expand_dims
expm1 eye finfo flip float32 float64 floor floor_divide from_dlpack full full_like greater
greater_equal hypot iinfo imag inf int16 int32 int64 int8 isdtype isfinite isinf isnan less
less_equal linspace log log10 log1p log2 logaddexp logical_and logical_not logical_or logical_xor
matmul matrix_transpose max maximum mean meshgrid min minimum moveaxis multiply nan negative newaxis
nonzero not_equal ones ones_like permute_dims pi positive pow prod real reciprocal
remainder repeat reshape result_type roll round searchsorted sign signbit sin sinh sort sqrt
square squeeze stack std subtract sum take take_along_axis tan tanh tensordot tile tril triu trunc
uint8 unique_all unique_counts unique_inverse unique_values unstack var vecdot where zeros
zeros_like
""".split()  # noqa: SIM905

rng = np.random.default_rng(7)
A = rng.standard_normal((3, 4))
B = rng.standard_normal((3, 4))
N = rng.integers(-5, 6, (3, 4))
Z = rng.standard_normal(5) + 1j * rng.standard_normal(5)
SPECIAL = np.array([0.0, -0.0, 1.5, -2.5, np.inf, -np.inf, np.nan])
PAIRS = np.stack([g.ravel() for g in np.meshgrid(SPECIAL, SPECIAL)])

CALLS: dict[str, Any] = {
    "arange": lambda xp, a: xp.arange(1, 7, 2),
    "arange, floating": lambda xp, a: xp.astype(xp.arange(2.0), xp.float64),
    "arange, nothing": lambda xp, a: xp.arange(3, 1),
    "eye": lambda xp, a: xp.eye(3, 4, k=-1, dtype=xp.float64),
    "eye, outside": lambda xp, a: xp.eye(2, 2, k=5, dtype=xp.float64),
    "linspace": lambda xp, a: xp.linspace(0, 1, 5, endpoint=False, dtype=xp.float64),
    "full": lambda xp, a: xp.full((2, 1), 3),
    "meshgrid": lambda xp, a: xp.meshgrid(a(A[0]), a(B[:, 0])),
    "tril": lambda xp, a: xp.tril(a(A), k=1),
    "triu": lambda xp, a: xp.triu(a(A), k=-1),
    "sum over none": lambda xp, a: xp.sum(a(A), axis=()),
    "sum over two": lambda xp, a: xp.sum(a(A), axis=(0, -1), keepdims=True),
    "sum of small integers": lambda xp, a: xp.sum(a(N.astype(np.int8)), axis=0),
    "prod over two": lambda xp, a: xp.prod(a(A), axis=(1, 0)),
    "prod over none": lambda xp, a: xp.prod(a(N), axis=()),
    "prod kept": lambda xp, a: xp.prod(a(N), axis=1, keepdims=True),
    "mean": lambda xp, a: xp.mean(a(A), axis=(0,)),
    "var": lambda xp, a: xp.var(a(A), axis=1, correction=1.5),
    "std": lambda xp, a: xp.std(a(A), keepdims=True),
    "max over none": lambda xp, a: xp.max(a(A), axis=()),
    "min": lambda xp, a: xp.min(a(N), axis=(0, 1)),
    "all over two": lambda xp, a: xp.all(a(N), axis=(0, 1)),
    "any over none": lambda xp, a: xp.any(a(N), axis=()),
    "count_nonzero": lambda xp, a: xp.count_nonzero(a(N), axis=0, keepdims=True),
    "cumulative_sum": lambda xp, a: xp.cumulative_sum(a(A), axis=1, include_initial=True),
    "cumulative_sum, empty": lambda xp, a: xp.cumulative_sum(
        a(A[:0]), axis=0, include_initial=True
    ),
    "cumulative_prod": lambda xp, a: xp.cumulative_prod(a(A[0]), include_initial=True),
    "diff": lambda xp, a: xp.diff(a(A), axis=0, n=2, prepend=a(B)),
    "concat all": lambda xp, a: xp.concat([a(A), a(A[0])], axis=None),
    "concat mixed": lambda xp, a: xp.concat([a(A), a(N)]),
    "flip": lambda xp, a: xp.flip(a(A)),
    "moveaxis": lambda xp, a: xp.moveaxis(a(A), 0, -1),
    "permute_dims": lambda xp, a: xp.permute_dims(a(A), (1, 0)),
    "repeat": lambda xp, a: xp.repeat(a(A), a(np.array([1, 0, 2], np.int8)), axis=0),
    "repeat all": lambda xp, a: xp.repeat(a(A), 2),
    "roll": lambda xp, a: xp.roll(a(A), 1, axis=(0, 1)),
    "tile": lambda xp, a: xp.tile(a(A), (2, 1, 2)),
    "unstack": lambda xp, a: xp.unstack(a(A), axis=1),
    "squeeze": lambda xp, a: xp.squeeze(a(A[None]), axis=0),
    "sort": lambda xp, a: xp.sort(a(A), axis=0),
    "argsort": lambda xp, a: xp.argsort(a(N), axis=-1, stable=True),
    "argmax": lambda xp, a: xp.argmax(a(A), axis=1, keepdims=True),
    "nonzero": lambda xp, a: xp.nonzero(a(N)),
    "searchsorted": lambda xp, a: xp.searchsorted(
        a(A[0]), a(B[0]), side="right", sorter=a(np.argsort(A[0]))
    ),
    "take": lambda xp, a: xp.take(a(A), a(np.array([0, -1])), axis=1),
    "take_along_axis": lambda xp, a: xp.take_along_axis(a(A), a(np.array([[-1], [0], [1]]))),
    "unique_all": lambda xp, a: xp.unique_all(a(N)),
    "unique_counts": lambda xp, a: xp.unique_counts(a(np.array([2 + 1j, 1, 2 + 1j]))),
    "unique_inverse": lambda xp, a: xp.unique_inverse(a(N)),
    "where": lambda xp, a: xp.where(a(N > 0), a(A), a(np.array(1, np.float32))),
    "where, a number": lambda xp, a: xp.where(a(N > 0), a(A), 2),
    "clip": lambda xp, a: xp.clip(a(A), a(B[0]), 1.0),
    "matmul mixed": lambda xp, a: xp.matmul(a(A), a(B.T.astype(np.float32))),
    "tensordot": lambda xp, a: xp.tensordot(a(A), a(B), axes=((1,), (1,))),
    "vecdot": lambda xp, a: xp.vecdot(a(Z), a(Z * 1j)),
    "vecdot along 0": lambda xp, a: xp.vecdot(a(A), a(B), axis=0),
    "add mixed": lambda xp, a: xp.add(a(np.ones(3, np.float32)), a(np.array(1.0))),
    "less mixed": lambda xp, a: xp.less(a(np.array(127, np.int8)), a(np.array([128, 0], np.int16))),
    "nextafter, a number": lambda xp, a: xp.nextafter(a(A), 1.0),
    "a number, nextafter": lambda xp, a: xp.nextafter(1.0, a(A)),
    "cross, broadcast": lambda xp, a: xp.linalg.cross(a(A[:, :3]), a(B[0, :3])),
    "remainder": lambda xp, a: xp.remainder(a(A), a(B)),
    "pow": lambda xp, a: xp.pow(a(np.abs(A)), 2),
    "sign": lambda xp, a: xp.sign(a(SPECIAL)),
    "sign, complex": lambda xp, a: xp.sign(a(np.array([3 + 4j, 0, -2]))),
    "expm1": lambda xp, a: xp.expm1(a(Z)),
    "conj": lambda xp, a: xp.conj(a(Z)),
}


def flat(result: Any) -> list[Any]:
    return (
        [r for part in result for r in flat(part)] if isinstance(result, tuple | list) else [result]
    )


def test_names() -> None:
    """Everything that the standard asks for, except the unsigned dtypes that there are not."""
    assert [name for name in NAMES if not hasattr(xp, name)] == []
    assert set(NAMES) <= set(dir(xp))


@pytest.mark.parametrize("call", CALLS.values(), ids=CALLS)
def test_as_numpy(call: Any) -> None:
    """Values, shapes and dtypes."""
    with np.errstate(all="ignore"):
        theirs = flat(call(np, lambda value: np.asarray(value)))
    ours = flat(call(xp, lambda value: xp.asarray(value, copy=True)))
    assert len(ours) == len(theirs)
    for got, wanted in zip(ours, theirs, strict=True):
        assert isinstance(got, ut.Tensor)
        assert got.dtype.name == wanted.dtype.name
        np.testing.assert_allclose(got.numpy(), wanted, rtol=1e-6, atol=1e-12)


def test_outer_keeps_the_signs_of_zeros() -> None:
    """It multiplies, and adds nothing."""
    found = xp.linalg.outer(xp.asarray([-0.0, 1.0]), xp.asarray([2.0, -0.0]))
    assert xp.signbit(found).tolist() == [[True, False], [False, True]]


def test_floor_divide_with_infinities() -> None:
    """The quotient itself: NaN only where that is NaN."""
    x, y = PAIRS
    got = xp.floor_divide(xp.asarray(x), xp.asarray(y)).numpy()
    with np.errstate(all="ignore"):
        wanted = np.where(np.isfinite(x) & np.isfinite(y), np.floor_divide(x, y), x / y)
    np.testing.assert_array_equal(got, wanted)
    np.testing.assert_array_equal(np.signbit(got[got == 0]), np.signbit(wanted[got == 0]))
    assert xp.floor_divide(xp.asarray([7]), 2).tolist() == [3]
    assert xp.floor_divide(7.0, xp.asarray([2.0, -np.inf])).tolist() == [3.0, -0.0]


@pytest.mark.parametrize(
    "z, wanted",
    [
        (complex(0, 0), complex(0, 0)),
        (complex(np.inf, 0), complex(np.inf, 0)),
        (complex(-np.inf, np.inf), complex(-1, 0)),
        (complex(-np.inf, np.nan), complex(-1, 0)),
        (complex(np.inf, np.inf), complex(np.inf, np.nan)),
        (complex(np.inf, np.nan), complex(np.inf, np.nan)),
        (complex(np.nan, 0), complex(np.nan, 0)),
        (complex(1e-12, 1e-12), complex(1e-12, 1e-12)),
    ],
)
def test_expm1_of_complex_limits(z: complex, wanted: complex) -> None:
    """The standard's table."""
    got = xp.expm1(xp.asarray([z], dtype=xp.complex128))[0].item()
    np.testing.assert_allclose([got.real, got.imag], [wanted.real, wanted.imag], rtol=1e-11)


@pytest.mark.parametrize("real", [0.0, -0.0])
def test_expm1_of_complex_zero(real: float) -> None:
    got = xp.expm1(xp.asarray([complex(real, 0.0)]))[0].item()
    assert math.copysign(1, got.real) == math.copysign(1, got.imag) == 1


@pytest.mark.parametrize("real", [math.inf, -math.inf])
@pytest.mark.parametrize("imag", [0.0, -0.0, 1.0, -1.0, 2.0, -2.0])
def test_tanh_of_complex_limits(real: float, imag: float) -> None:
    """The standard's table: the sign of zero is that of the imaginary part."""
    got = xp.tanh(xp.asarray([complex(real, imag)], dtype=xp.complex128))[0].item()
    assert got.real == math.copysign(1, real)
    assert got.imag == 0
    assert math.copysign(1, got.imag) == math.copysign(1, imag)


def test_tanh_has_a_gradient() -> None:
    x = xp.asarray([0.3 + 0.4j, -1.0 + 2.0j], dtype=xp.complex128).requires_grad_()
    assert ut.autograd.gradcheck(xp.tanh, [x])
    big = xp.asarray([complex(math.inf, 2.0)]).requires_grad_()
    xp.real(xp.tanh(big)).sum().backward()
    assert big.grad is not None


def test_copies() -> None:
    """asarray, reshape and astype share and copy as they are told."""
    x = ut.arange(4.0, requires_grad=True)
    assert xp.asarray(x) is x
    assert xp.asarray(x, copy=False) is x
    copied = xp.asarray(x, copy=True)
    assert copied.data_ptr() != x.data_ptr()
    assert copied.requires_grad
    assert xp.reshape(x, (2, 2), copy=False).data_ptr() == x.data_ptr()
    assert xp.reshape(x, (2, 2), copy=True).data_ptr() != x.data_ptr()
    assert xp.astype(x, xp.float32, copy=False) is x
    assert xp.astype(x, xp.float32).data_ptr() != x.data_ptr()
    host = np.zeros(2)
    assert xp.asarray(host, copy=False).data_ptr() == host.ctypes.data
    with pytest.raises(ut.errors.ArgumentError, match="copying"):
        xp.asarray(x, dtype=xp.float64, copy=False)
    with pytest.raises(ut.errors.UndertowError, match=r"\[view\]"):
        xp.reshape(ut.ones(2, 3).T, (6,), copy=False)


def test_dtypes_and_limits() -> None:
    """Kinds, casts, promotion without regard to dimensions."""
    assert xp.isdtype(xp.float32, "real floating")
    assert xp.isdtype(xp.int8, ("bool", "signed integer"))
    assert not xp.isdtype(xp.complex64, ("integral", xp.float32))
    assert xp.can_cast(xp.ones(2, dtype=xp.int8), xp.int64)
    assert not xp.can_cast(xp.int64, xp.int8)
    assert xp.result_type(xp.ones(2, dtype=xp.int8), xp.asarray(1), 2) is xp.int64
    assert xp.result_type(xp.float32, 1j) is xp.complex64
    assert xp.finfo(xp.float64).dtype is xp.float64
    assert xp.iinfo(xp.uint8).max == 255
    info = xp.__array_namespace_info__()
    assert info.dtypes(kind="complex floating") == {
        "complex64": xp.complex64,
        "complex128": xp.complex128,
    }
    assert info.default_dtypes()["real floating"] is xp.float32
    assert info.default_device() in info.devices()


@pytest.mark.parametrize(
    "call, word",
    [
        (lambda: ut.ones(1).__array_namespace__(api_version="1999.12"), "1999.12"),
        (lambda: ut.ones(1).to_device("cpu", stream=3), "stream"),
        (lambda: xp.isdtype(xp.int8, "whole"), "whole"),
        (lambda: xp.astype(xp.ones(2, dtype=xp.complex64), xp.float32), "real"),
        (lambda: xp.squeeze(xp.ones((2, 1)), axis=0), "size 2"),
        (lambda: xp.nonzero(xp.asarray(1)), "dimensions"),
        (lambda: xp.take(xp.ones((2, 2)), xp.asarray([0])), "axis"),
        (lambda: xp.cumulative_sum(xp.ones((2, 2))), "axis"),
        (lambda: xp.clip(xp.asarray([1]), 0.5, 1), "integer"),
        (lambda: xp.vecdot(xp.ones(2), xp.ones(1)), "size"),
        (lambda: xp.tile(xp.ones(2), [2]), "tuple"),
        (lambda: xp.fourier, "fourier"),
    ],
)
def test_errors(call: Any, word: str) -> None:
    """What cannot be done is said."""
    with pytest.raises((ut.errors.UndertowError, AttributeError), match=word):
        call()


def test_namespace_of_a_tensor() -> None:
    """On any device."""
    x = ut.ones(2, device="reference")
    assert x.__array_namespace__(api_version="2023.12") is xp
    assert x.to_device("cpu").device == ut.device("cpu")
    assert xp.std(xp.stack([x, x + 2]), axis=0).tolist() == [1.0, 1.0]


def test_gradients_flow_through_the_namespace() -> None:
    """A function that knows the standard only, differentiated twice."""

    def score(x: Any) -> Any:
        space = x.__array_namespace__()
        y = space.asarray(x, copy=True)
        z = space.where(y > 0, space.exp(-y), space.expm1(y))
        z = space.concat([z, space.cumulative_sum(z, axis=0)], axis=None)
        return space.std(z) * space.prod(space.clip(y, 0.1, 10.0), axis=(0,))

    x = ut.tensor([0.5, 1.5, 0.7], dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(score, x)
    assert ut.autograd.gradgradcheck(score, x)


SCIPY = """
import numpy as np, undertow as ut
from scipy import special, stats
x = ut.tensor([1.0, 2.0, 4.0], dtype=ut.float64, requires_grad=True)
y = stats.zscore(x)
assert isinstance(y, ut.Tensor)
np.testing.assert_allclose(y.detach().numpy(), stats.zscore(np.array([1.0, 2.0, 4.0])))
total = special.logsumexp(x) + stats.gmean(x)
(grad,) = ut.autograd.grad(total, x)
wanted = special.softmax(x.detach().numpy()) + 2 / (3 * x.detach().numpy())
np.testing.assert_allclose(grad.numpy(), wanted)
"""
SCIKIT_LEARN = """
import numpy as np, undertow as ut
from sklearn import config_context
from sklearn.metrics.pairwise import rbf_kernel
from sklearn.preprocessing import StandardScaler
data = np.random.default_rng(0).standard_normal((9, 3))
x = ut.tensor(data, requires_grad=True)
with config_context(array_api_dispatch=True):
    scaled = StandardScaler().fit_transform(x)
    (grad,) = ut.autograd.grad(rbf_kernel(x, gamma=0.5).sum(), x)
assert isinstance(scaled, ut.Tensor)
np.testing.assert_allclose(scaled.detach().numpy(), StandardScaler().fit_transform(data))
apart = data[:, None] - data
wanted = -2 * (apart * np.exp(-0.5 * (apart**2).sum(-1))[..., None]).sum(1)
np.testing.assert_allclose(grad.numpy(), wanted, atol=1e-12)
"""


@pytest.mark.parametrize("library, program", [("scipy", SCIPY), ("sklearn", SCIKIT_LEARN)])
def test_libraries_take_tensors(library: str, program: str) -> None:
    """SciPy and scikit-learn compute on tensors, and gradients come back through them."""
    if importlib.util.find_spec(library) is None:
        pytest.skip(f"{library} is not installed")
    environment = {**os.environ, "SCIPY_ARRAY_API": "1"}  # read when they are imported
    done = subprocess.run(
        [sys.executable, "-c", program],
        env=environment,
        capture_output=True,
        text=True,
        timeout=300,
    )
    assert done.returncode == 0, done.stderr
