"""Complex samples out of real ones: for the ops below, the table has their float samples again.

`op_samples.add` asks `complex_samples`. A real array of a sample becomes a complex one with the
same real parts, in the same layout. Ops that take operands of different dtypes get one more
sample, where only the first array is complex.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

MIXED = """
add sub rsub mul div true_divide pow float_power addcmul addcdiv cat
"""
COMPLEX = """
where subtract multiply divide neg negative positive reciprocal square sqrt rsqrt lerp ldexp sgn abs
absolute exp exp2 expm1 log log2 log10 log1p logaddexp logsumexp logcumsumexp sigmoid sinc sin cos
tan asin acos atan sinh cosh tanh asinh acosh atanh nn.functional.sigmoid nn.functional.tanh
nn.functional.softsign nn.functional.tanhshrink sum mean prod var std var_mean std_mean norm dist
Tensor.sum_to_size cumsum cumprod diff trapezoid cumulative_trapezoid trace nn.functional.normalize
pairwise_distance nn.functional.l1_loss matmul mm bmm mv dot vdot inner outer addmm addmv baddbmm
addbmm addr chain_matmul kron cross einsum tensordot nn.functional.linear conv1d conv2d
conv_transpose1d conv_transpose2d clone diagonal diag_embed diag diagflat tril triu stack hstack
vstack dstack column_stack block_diag meshgrid cartesian_prod split chunk unbind tensor_split
reshape Tensor.view flatten unflatten squeeze permute transpose t adjoint movedim Tensor.expand
narrow select Tensor.contiguous nn.functional.pad flip roll rot90 Tensor.repeat tile
diagonal_scatter as_strided Tensor.unfold nn.functional.unfold nn.functional.fold pixel_shuffle
gather take_along_dim scatter scatter_add index_select index_add index_copy index_fill index_put
take put masked_fill masked_select masked_scatter repeat_interleave
"""
_FEW = 2  # samples of an op; the shapes are the same code


def complex_samples(name: str, samples: list[Any], make: Callable[..., Any]) -> list[Any]:
    """The samples that an op gets besides `samples`; `make` is the class of a sample."""
    mixed = name in MIXED.split()
    if not mixed and name not in COMPLEX.split():
        return []
    real = [s for s in samples if _count(s.args) + _count(s.kwargs)]
    found = [
        make(*_complex(s.args, [99]), **_complex(s.kwargs, [99]))
        for s in (real[:_FEW] if len(real) > _FEW else real)
    ]
    if mixed:
        found += [make(*_complex(s.args, [1]), **s.kwargs) for s in real[:1]]
    return found


def _count(value: Any) -> int:
    """How many arrays of a sample's value are differentiated."""
    if isinstance(value, np.ndarray):
        return int(value.dtype == np.float64)
    if isinstance(value, dict):
        return sum(map(_count, value.values()))
    return sum(map(_count, value)) if isinstance(value, (list, tuple)) else 0


def _complex(value: Any, left: list[int]) -> Any:
    """A sample's value with its first arrays, as many as are left, made complex."""
    if isinstance(value, np.ndarray) and value.dtype == np.float64 and left[0]:
        left[0] -= 1
        made = np.empty_like(value, np.complex128)
        made.real = value
        made.imag = np.random.default_rng(value.size + left[0]).uniform(-1.5, 1.5, value.shape)
        return made
    if isinstance(value, dict):
        return {k: _complex(v, left) for k, v in value.items()}
    return type(value)(_complex(v, left) for v in value) if type(value) in (list, tuple) else value
