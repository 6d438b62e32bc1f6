"""The steps of random programs, as templates of Python.

In a template {x} is a value, {y} one that broadcasts with it, {into} one that broadcasts to it,
{like} one of its shape, {any} any; {d} and {e} are dimensions of x, {n} is the size of {d}, {a} and
{b} are places in it, {k} is a small number. {places:3} are indices into {d}, {rows} distinct ones
into dimension 0, {all} and {order} one for each place of {d}, {gather} one for each element;
{anywhere} are indices of elements, {mask} booleans, {right} and {vector} factors of a product,
{gram} is the product of x with itself, {eye} the identity of that shape.
What torch refuses is left out of a program, so no template says when it applies.
"""

from __future__ import annotations

import re


def listed(text: str) -> list[str]:
    """The entries of a text, which stand on lines of their own or between bars."""
    return [entry.strip() for entry in re.split(r"[|\n]", text) if entry.strip()]


GROUPS: dict[str, tuple[float, list[str]]] = {}  # how often a group is drawn, and its templates


def group(name: str, weight: float, text: str) -> None:
    """Enter a group."""
    GROUPS[name] = (weight, listed(text))


group(
    "unary",
    2.0,
    """
    lib.sin({x}) | lib.cos({x}) | lib.tanh({x}) | lib.sigmoid({x}) | lib.neg({x}) | lib.square({x})
    lib.erf({x}) | lib.erfc({x}) | lib.atan({x}) | lib.asinh({x}) | lib.abs({x}) | lib.relu({x})
    lib.exp(lib.tanh({x})) | lib.exp2(lib.tanh({x})) | lib.expm1(lib.tanh({x}))
    lib.log({x} * {x} + 0.5) | lib.log1p({x} * {x}) | lib.log2({x} * {x} + 1)
    lib.log10({x} * {x} + 1) | lib.sqrt({x} * {x} + 0.3) | lib.rsqrt({x} * {x} + 0.4)
    lib.tan(lib.tanh({x})) | lib.asin(lib.tanh({x}) * 0.9) | lib.acos(lib.tanh({x}) * 0.9)
    lib.acosh({x} * {x} + 1.5) | lib.atanh(lib.tanh({x}) * 0.8) | lib.reciprocal({x} * {x} + 0.5)
    lib.lgamma({x} * {x} + 0.6) | lib.digamma({x} * {x} + 0.8) | lib.logit(lib.sigmoid({x}))
    lib.cosh(lib.tanh({x})) | lib.sinh(lib.tanh({x})) | lib.erfinv(lib.tanh({x}) * 0.9)
    lib.i0(lib.tanh({x})) | lib.sinc({x}) | lib.deg2rad({x}) | lib.nan_to_num({x})
    lib.clamp({x}, -0.5, 0.7) | lib.clamp({x}, min=0.1) | lib.clamp_max({x}, 0.2)
    lib.threshold({x}, 0.1, 0.5) | lib.positive({x}) | lib.clone({x}) | {x}.contiguous()
    {x} ** 2 | {x} ** 3 | ({x}.abs() + 0.3) ** 1.7 | 2.0 ** lib.tanh({x}) | {x} - 1 | 3 - {x}
    {x} * 2.5 | {x} / 3 | 1.0 / ({x} * {x} + 1)
    """,
)
group(
    "jump",
    0.15,
    """
    lib.floor({x}) | lib.ceil({x}) | lib.round({x}) | lib.sign({x}) | lib.trunc({x}) | lib.frac({x})
    lib.remainder({x}, 0.7) | lib.fmod({x}, 0.7) | lib.floor_divide({x}, 0.7)
    """,
)
group(
    "layer",
    1.0,
    """
    F.gelu({x}) | F.gelu({x}, approximate="tanh") | F.silu({x}) | F.softplus({x}) | F.elu({x})
    F.leaky_relu({x}, 0.1) | F.mish({x}) | F.hardtanh({x}) | F.hardswish({x}) | F.selu({x})
    F.logsigmoid({x}) | F.softsign({x}) | F.tanhshrink({x}) | F.hardsigmoid({x}) | F.relu6({x})
    F.celu({x}, 0.5) | F.softshrink({x}, 0.3) | F.hardshrink({x}, 0.3)
    F.softmax({x}, {d}) | F.log_softmax({x}, {d}) | F.softmin({x}, {d})
    F.normalize({x} + 0.1, dim={d}) | F.layer_norm({x}, {x}.shape[-1:])
    F.rms_norm({x}, {x}.shape[-1:], eps=1e-5) | F.batch_norm({x}, None, None, training=True)
    F.mse_loss({x}, {like}) | F.smooth_l1_loss({x}, {like}) | F.pad({x}, ({k}, 1))
    F.glu(lib.cat([{x}, {x}], {d}), {d})
    """,
)
group(
    "binary",
    1.8,
    """
    {x} + {y} | {x} - {y} | {x} * {y} | {y} * {x} | {x} / ({y} * {y} + 0.5) | ({x} > {y}) * {x}
    lib.maximum({x}, {y}) | lib.minimum({x}, {y}) | lib.fmax({x}, {y}) | lib.fmin({x}, {y})
    lib.atan2({x}, {y} * {y} + 0.5) | lib.hypot({x}, {y} + 3) | lib.copysign({x}, {y})
    lib.where({x} > {y}, {x}, {y} * 2) | lib.lerp({x}, {y}, 0.3) | lib.logaddexp({x}, {y})
    lib.xlogy({x}, {y} * {y} + 0.5) | ({x} * {x} + 0.4) ** lib.tanh({y})
    lib.addcmul({x}, {x}, {y}, value=0.5) | lib.addcdiv({x}, {x}, {y} * {y} + 1)
    lib.add({x}, {y}, alpha=0.5) | lib.sub({y}, {x}, alpha=2)
    """,
)
group(
    "reduction",
    1.2,
    """
    {x}.sum({d}, keepdim={bool}) | {x}.mean({d}, keepdim={bool}) | {x}.amax({d}, keepdim={bool})
    {x}.var({d}, keepdim={bool}) | {x}.std({d}) | {x}.sum(({d}, {e})) | {x}.mean(({d}, {e}))
    {x}.amin(({d}, {e})) | {x}.var(({d}, {e})) | {x}.norm(dim=({d}, {e})) | {x}.logsumexp({d})
    lib.tanh({x}).prod({d}) | lib.tanh({x}).prod() | {x}.sum() | {x}.mean() | {x}.max() | {x}.amax()
    {x}.norm() | {x}.norm(p=3, dim={d})
    """,
)
group(
    "view",
    2.2,
    """
    {x}.transpose({d}, {e}) | {x}.unsqueeze({d}) | {x}.squeeze() | {x}.flip({d}) | {x}[None]
    {x}.narrow({d}, {a}, {b} - {a}) | {x}.select({d}, {a}) | {x}[{a}:{b}:{k}] | {x}[..., {a}:]
    {x}.expand(2, *{x}.shape) | {x}.reshape(-1) | {x}.view(-1) | {x}.flatten() | {x}.T
    {x}.diagonal({k} - 1, {d}, {e}) | {x}.unfold({d}, {k}, {k}) | lib.atleast_2d({x}).mT
    {x}.roll({k}, {d}) | {x}.movedim({d}, {e}) | {x}.split({k}, {d})[-1] | {x}.chunk(2, {d})[-1]
    {x}.view_as({like}) | {x}.unbind({d})[{a}] | {x}.swapaxes({d}, {e})[..., :1] | {x}.detach()
    {x}.unflatten({d}, (1, -1)) | {x}.as_strided({x}.shape, {x}.stride(), {x}.storage_offset())
    """,
)
group(
    "index",
    1.0,
    """
    {x}.index_select({d}, {places:3}) | {x}[{places:2,3}] | {x}[:, {places:4}] | {x}[{x} > 0]
    {x}.gather({d}, {gather}) | lib.take({x}, {anywhere}) | {x}[{mask}] | {x}[..., None, {a}]
    {x}.repeat_interleave({k}, {d}) | {x}[{a}, ..., {places:2}] | {x}.masked_select({x} < {y})
    lib.take_along_dim({x}, {gather}, {d})
    """,
)
group(
    "scatter",
    0.5,
    """
    {x}.index_add({d}, {all}, {like}) | {x}.scatter_add({d}, {gather}, {like})
    {x}.index_copy({d}, {order}, {like}) | {x}.index_fill({d}, {places:2}, 0.4)
    {x}.masked_fill({x} < 0, 0.25) | {x}.index_put(({rows},), {x}[:1].sum())
    {x}.index_put(({rows},), {x}[{rows}], accumulate=True) | {x}.scatter({d}, {gather}, 0.5)
    lib.tril({x}) | lib.triu({x}, {k} - 1) | {x}.slice_scatter({like} * 2, {d})
    {x}.diagonal_scatter({x}.diagonal() * 2) | {x}.masked_scatter({mask}, {y})
    {x}.select_scatter({x}.select({d}, {a}) * 3, {d}, {a})
    """,
)
group(
    "product",
    0.8,
    """
    {x} @ {right} | {x} @ {vector} | ({x} @ {x}.mT) / {n} | F.linear({x}, {right}.mT)
    lib.tensordot({x}, {right}, 1) | lib.einsum("...i,ij->j...", {x}, {right})
    lib.outer({x}.flatten()[:3], {x}.flatten()[:4])
    """,
)
group(
    "join",
    0.6,
    """
    lib.cat([{x}, {like}], {d}) | lib.stack([{x}, {like}], {d}) | {x}.tile((2,))
    lib.cat([{x}, {x}[:1]], 0) | lib.hstack([{x}, {like}])
    """,
)
group(
    "scan",
    0.5,
    """
    {x}.cumsum({d}) / 3 | lib.tanh({x}).cumprod({d}) | lib.logcumsumexp({x}, {d})
    {x}.cummax({d})[0] | {x}.cummin({d})[0] | lib.diff({x}, dim={d})
    """,
)
group(
    "sort",
    0.3,
    """
    {x}.sort(stable=True, dim={d})[0] | {x}.topk(1, {d})[0] | {x}.median({d})[0]
    {x}.max({d})[0] | {x}.min({d}, keepdim=True)[0] | {x}.kthvalue(1, {d})[0]
    """,
)
group(
    "complex",
    0.5,
    """
    lib.fft.rfft({x}, dim={d}).abs() | lib.view_as_real(lib.fft.fft({x}, dim={d})) / {n}
    lib.fft.irfft(lib.fft.rfft({x}, dim={d}), {n}, dim={d}) | lib.fft.ifft({x} * 1j, dim={d}).imag
    lib.fft.fft2({x}, norm="ortho").real | lib.fft.hfft({x}, {n}, {d}) / {n} | lib.fft.fftshift({x})
    lib.fft.rfftn({x}, norm="ortho").imag | lib.fft.ihfft({x}, dim={d}).real
    lib.complex({x}, {like}).tanh().real | lib.complex({x}, {like}).sin().imag / 100
    (lib.complex({x}, {like}) * lib.complex({like}, {x})).imag | lib.complex({x}, {like}).abs()
    (lib.complex({x}, {like}) / (lib.complex({like}, {x}) + 9)).real
    lib.complex({x}, {like} * {like} + 0.5).angle() | lib.complex({x}, {like} + 4).log().imag
    lib.polar({x}.abs() + 0.5, {like}).real | lib.complex({x}, {like} + 5).sqrt().imag
    lib.view_as_complex(lib.stack([{x}, {like}], -1)).conj().imag
    lib.complex({x}, {like}).sum({d}).real | lib.complex({x}, {like}).cumsum({d}).imag
    (lib.complex({x}, {x}) @ lib.complex({right}, {right})).imag
    lib.complex({x}, {like}).transpose({d}, {e}).resolve_conj().imag
    """,
)
group(
    "linalg",
    0.4,
    """
    lib.linalg.inv(lib.tanh({gram}) + 9 * {eye})
    lib.linalg.cholesky({gram} + 2 * {eye})
    lib.linalg.slogdet({gram} + 2 * {eye})[1]
    lib.linalg.solve({gram} + 2 * {eye}, {x}.mT)
    lib.linalg.solve_triangular(lib.tril({gram}) + 9 * {eye}, {x}.mT, upper=False)
    lib.linalg.matrix_exp(lib.tanh({gram}) / 4) | lib.linalg.svdvals({x})
    lib.linalg.eigvalsh({gram} + lib.diag(lib.arange({x}.shape[-1], dtype=real)))
    lib.linalg.matrix_norm({x}, "nuc") | lib.linalg.matrix_norm({x}, 2)
    lib.linalg.vector_norm({x}, 3, {d}) | lib.linalg.det({gram})
    lib.linalg.matrix_power({gram} / {n}, 2) | lib.linalg.multi_dot([{x}, {right}])
    lib.linalg.pinv({x}) / 9 | lib.linalg.qr({x}, mode="r")[1].abs() | lib.trace({x})
    lib.linalg.vecdot({x}, {like}) | lib.cov({x}) | lib.kron({x}, {like})
    """,
)
group(
    "special",
    0.3,
    """
    lib.special.ndtr({x}) | lib.special.log_ndtr({x}) | lib.special.erfcx({x}.abs())
    lib.special.i1(lib.tanh({x})) | lib.special.i0e({x}) | lib.special.entr({x} * {x} + 0.1)
    lib.special.xlog1py({x}, {y} * {y}) | lib.polygamma(1, {x} * {x} + 0.7)
    lib.special.i1e({x}) | lib.mvlgamma({x} * {x} + 1.5, 2) | lib.special.ndtri(lib.sigmoid({x}))
    """,
)
group("cast", 0.15, "{x}.to(lib.float32) | {x}.to(lib.float64)")

# Changes in place: methods of {x}.
CHANGES = listed(
    """
    add_(0.5) | mul_(0.7) | sub_(0.2) | div_(1.5) | neg_() | abs_() | square_() | sin_() | tanh_()
    sigmoid_() | relu_() | clamp_(-0.6, 0.8) | zero_() | fill_(0.3) | exp_().tanh_() | cumsum_(0)
    copy_({into}) | mul_({into}) | add_({into}) | addcmul_({into}, {into}) | lerp_({into}, 0.3)
    masked_fill_({x} > 0.2, 0.1) | index_fill_({d}, {all}, 0.2) | index_add_({d}, {all}, {like})
    scatter_({d}, {gather}, 0.3) | __setitem__({a}, 0.5) | __setitem__({a}, {x}[{a}] * 2)
    __setitem__(slice(1, None), {x}[:-1] * 0.5) | __setitem__({x} > 0.2, 0.1)
    __setitem__(slice(None, None, 2), {x}[::2] * 2) | __setitem__((..., {a}), {y})
    transpose_({d}, {e}) | unsqueeze_({d}) | t().mul_(1.5) | view(-1)[1:].add_(1)
    requires_grad_() | clone().mul_({into}) | detach().add_(0)
    """
)
# Steps that are often errors; then nothing may have changed.
REFUSED = listed("{x}.add_({any}) | {x}.copy_({any}) | {x}.view(-1, 7) | {x} + {any} | {x} @ {any}")
