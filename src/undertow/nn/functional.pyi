# Written by tools/stubs.py: run `make stubs` instead of editing it.
"""Activations, losses and the rest of torch's `nn.functional`."""

from collections.abc import Callable, Sequence
from typing import Literal, overload

from ..core.tensor import Tensor
from ..dtypes import DTypeLike, Number
from ..ops.nn.linear_cross_entropy import LinearCrossEntropyOptions
from ..shapes import Ints

def relu_(input: Tensor) -> Tensor:
    """In-place form of `relu`; returns the tensor itself."""

def relu(input: Tensor, inplace: bool = False) -> Tensor:
    """`max(input, 0)`, elementwise; the gradient at zero is zero."""

def hardtanh_(input: Tensor, min_val: float = -1.0, max_val: float = 1.0) -> Tensor:
    """In-place form of `hardtanh`; returns the tensor itself."""

def hardtanh(
    input: Tensor,
    min_val: float = -1.0,
    max_val: float = 1.0,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`input` between `min_val` and `max_val`; the gradient at the bounds is zero."""

def relu6(input: Tensor, inplace: bool = False) -> Tensor:
    """`min(max(input, 0), 6)`, elementwise."""

def leaky_relu_(input: Tensor, negative_slope: float = 0.01) -> Tensor:
    """In-place form of `leaky_relu`; returns the tensor itself."""

def leaky_relu(
    input: Tensor, negative_slope: float = 0.01, inplace: bool = False, *, out: Tensor | None = None
) -> Tensor:
    """The positive elements as they are, the others times `negative_slope`."""

def prelu(input: Tensor, weight: Tensor) -> Tensor:
    """`leaky_relu` whose slope is a tensor of one element, or of one for each channel (dim 1)."""

def threshold_(input: Tensor, threshold: float, value: float) -> Tensor:
    """In-place form of `threshold`; returns the tensor itself."""

def threshold(
    input: Tensor,
    threshold: float,
    value: float,
    inplace: bool = False,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The elements above `threshold`, and `value` in place of the others."""

def hardshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The elements of size above `lambd`, and zero in place of the others."""

def softshrink(input: Tensor, lambd: float = 0.5, *, out: Tensor | None = None) -> Tensor:
    """The elements moved towards zero by `lambd`, at most to zero."""

def hardsigmoid(input: Tensor, inplace: bool = False, *, out: Tensor | None = None) -> Tensor:
    """0 below -3, 1 above 3, a straight line between."""

def hardswish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * hardsigmoid(input)`, elementwise."""

def elu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of `elu`; returns the tensor itself."""

def elu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive elements as they are, `alpha * expm1(input)` for the others."""

def celu_(input: Tensor, alpha: float = 1.0) -> Tensor:
    """In-place form of `celu`; returns the tensor itself."""

def celu(input: Tensor, alpha: float = 1.0, inplace: bool = False) -> Tensor:
    """The positive elements as they are, `alpha * expm1(input / alpha)` for the others."""

def selu_(input: Tensor) -> Tensor:
    """In-place form of `selu`; returns the tensor itself."""

def selu(input: Tensor, inplace: bool = False) -> Tensor:
    """`elu` with the slope and scale of self-normalising networks."""

def silu(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * sigmoid(input)`, elementwise; also known as swish."""

def softplus(
    input: Tensor, beta: float = 1.0, threshold: float = 20.0, *, out: Tensor | None = None
) -> Tensor:
    """`log(1 + exp(beta * input)) / beta`; the element itself where beyond `threshold`."""

def logsigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`log(sigmoid(input))` without overflow."""

def mish(input: Tensor, inplace: bool = False) -> Tensor:
    """`input * tanh(softplus(input))`, elementwise."""

def softsign(input: Tensor) -> Tensor:
    """`input / (1 + abs(input))`, elementwise."""

def tanhshrink(input: Tensor) -> Tensor:
    """`input - tanh(input)`, elementwise."""

def gelu(input: Tensor, *, approximate: str = "none", out: Tensor | None = None) -> Tensor:
    """`input` times the normal distribution function of it; 'tanh' approximates that."""

def glu(input: Tensor, dim: int = -1) -> Tensor:
    """The first half along `dim` times the sigmoid of the second half."""

def sigmoid(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """`1 / (1 + exp(-input))`, elementwise."""

def tanh(input: Tensor, *, out: Tensor | None = None) -> Tensor:
    """The hyperbolic tangent of each element."""

def grouped_mm(
    mat_a: Tensor,
    mat_b: Tensor,
    *,
    offs: Tensor | None = None,
    bias: Tensor | None = None,
    out_dtype: DTypeLike | None = None,
) -> Tensor:
    """The products of groups of matrices; group i ends at `offs[i]`, where the next one begins."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest element of each window of signals (N, C, L) or (C, L)."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The largest element of each window of signals (N, C, L) or (C, L)."""

@overload
def max_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of signals (N, C, L) or (C, L)."""

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`."""

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`."""

@overload
def max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of images (N, C, H, W) or (C, H, W); see `max_pool1d`."""

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`."""

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    *,
    return_indices: Literal[True],
) -> tuple[Tensor, Tensor]:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`."""

@overload
def max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest element of each window of (N, C, D, H, W) or (C, D, H, W); see `max_pool1d`."""

def avg_pool1d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of each window of signals (N, C, L) or (C, L)."""

def avg_pool2d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window of images (N, C, H, W) or (C, H, W); see `avg_pool1d`."""

def avg_pool3d(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """The mean of each window of (N, C, D, H, W) or (C, D, H, W); see `avg_pool2d`."""

def lp_pool1d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root `(Σ xᵖ)^(1/p)` of each window of signals (N, C, L) or (C, L), for p = `norm_type`."""

def lp_pool2d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root `(Σ xᵖ)^(1/p)` of each window of images (N, C, H, W) or (C, H, W); see `lp_pool1d`."""

def lp_pool3d(
    input: Tensor,
    norm_type: float,
    kernel_size: Ints,
    stride: Ints | None = None,
    ceil_mode: bool = False,
) -> Tensor:
    """The root `(Σ xᵖ)^(1/p)` of each window of (N, C, D, H, W) or (C, D, H, W); see `lp_pool1d`."""

def max_unpool1d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `input` at the places where `max_pool1d` found it."""

def max_unpool2d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `input` at the places where `max_pool2d` found it; see `max_unpool1d`."""

def max_unpool3d(
    input: Tensor,
    indices: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    output_size: Sequence[int] | None = None,
) -> Tensor:
    """Zeros, with `input` at the places where `max_pool3d` found it; see `max_unpool1d`."""

def adaptive_avg_pool1d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of `output_size` windows that cover signals (N, C, L) or (C, L)."""

def adaptive_avg_pool2d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover images (N, C, H, W) or (C, H, W), as many as `output_size`."""

def adaptive_avg_pool3d(input: Tensor, output_size: int | Sequence[int | None] | None) -> Tensor:
    """The means of windows that cover (N, C, D, H, W) or (C, D, H, W); see `adaptive_avg_pool2d`."""

@overload
def adaptive_max_pool1d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest elements of `output_size` windows that cover signals (N, C, L) or (C, L)."""

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """The largest elements of `output_size` windows that cover signals (N, C, L) or (C, L)."""

@overload
def adaptive_max_pool1d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of `output_size` windows that cover signals (N, C, L) or (C, L)."""

@overload
def adaptive_max_pool2d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest elements of windows that cover (N, C, H, W) or (C, H, W)."""

@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, H, W) or (C, H, W)."""

@overload
def adaptive_max_pool2d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, H, W) or (C, H, W)."""

@overload
def adaptive_max_pool3d(
    input: Tensor,
    output_size: int | Sequence[int | None] | None,
    return_indices: Literal[False] = False,
) -> Tensor:
    """The largest elements of windows that cover (N, C, D, H, W); see `adaptive_max_pool2d`."""

@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, *, return_indices: Literal[True]
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, D, H, W); see `adaptive_max_pool2d`."""

@overload
def adaptive_max_pool3d(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows that cover (N, C, D, H, W); see `adaptive_max_pool2d`."""

def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element becomes zero with probability `p`; the others are divided by 1 - p."""

def dropout1d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (N, C, L) or (C, L) become zero with probability `p`."""

def dropout2d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (N, C, H, W) become zero with probability `p`."""

def dropout3d(
    input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False
) -> Tensor:
    """Whole channels of (N, C, D, H, W) or (C, D, H, W) become zero with probability `p`."""

def alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """Dropout for SELU networks: it keeps the mean and the variance of standard normal input."""

def feature_alpha_dropout(
    input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False
) -> Tensor:
    """`alpha_dropout` of whole channels, the second dimension."""

def one_hot(tensor: Tensor, num_classes: int = -1) -> Tensor:
    """A 1 at the class of each element along a new last dimension, and zeros elsewhere."""

def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of the table `weight` at the indices `input`."""

def embedding_bag(
    input: Tensor,
    weight: Tensor,
    offsets: Tensor | None = None,
    max_norm: float | None = None,
    norm_type: float = 2,
    scale_grad_by_freq: bool = False,
    mode: str = "mean",
    sparse: bool = False,
    per_sample_weights: Tensor | None = None,
    include_last_offset: bool = False,
    padding_idx: int | None = None,
) -> Tensor:
    """The sum, mean or maximum of the rows in each bag of indices."""

def softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`exp(input)` divided by its sum along `dim`; never overflows."""

def log_softmax(
    input: Tensor,
    dim: int | None = None,
    dtype: DTypeLike | None = None,
    *,
    out: Tensor | None = None,
) -> Tensor:
    """`log(softmax(input, dim))`, accurate where the softmax itself would round to zero."""

def softmin(input: Tensor, dim: int | None = None, dtype: DTypeLike | None = None) -> Tensor:
    """`softmax(-input)`: the smallest element weighs most."""

def gumbel_softmax(
    logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1
) -> Tensor:
    """A random sample from the relaxed categorical distribution of `logits` along `dim`."""

def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> Tensor:
    """`softmax(query @ keyᵀ * scale + mask) @ value` over the last two dimensions."""

def layer_norm(
    input: Tensor,
    normalized_shape: Ints,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """`input` with mean 0 and variance 1 over its last dimensions, times `weight` plus `bias`."""

def rms_norm(
    input: Tensor, normalized_shape: Ints, weight: Tensor | None = None, eps: float | None = None
) -> Tensor:
    """`input` divided by the root of the mean of its squares over its last dimensions."""

def batch_norm(
    input: Tensor,
    running_mean: Tensor | None,
    running_var: Tensor | None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    training: bool = False,
    momentum: float | None = 0.1,
    eps: float = 1e-05,
    *,
    num_batches_tracked: Tensor | None = None,
) -> Tensor:
    """Each channel of (N, C, …) with mean 0 and variance 1, times `weight` plus `bias`."""

def instance_norm(
    input: Tensor,
    running_mean: Tensor | None = None,
    running_var: Tensor | None = None,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    use_input_stats: bool = True,
    momentum: float = 0.1,
    eps: float = 1e-05,
) -> Tensor:
    """Each channel of each element of (N, C, L, …) with mean 0 and variance 1."""

def mse_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The squared error; with `weight` its mean is the weighted mean."""

def l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    weight: Tensor | None = None,
) -> Tensor:
    """The absolute error; with `weight` its mean is the weighted mean."""

def smooth_l1_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    beta: float = 1.0,
) -> Tensor:
    """The absolute error, rounded off to a parabola where it is below `beta`."""

def huber_loss(
    input: Tensor,
    target: Tensor,
    reduction: str = "mean",
    delta: float = 1.0,
    weight: Tensor | None = None,
) -> Tensor:
    """Half the squared error up to `delta`, and beyond it a line of slope `delta`."""

def binary_cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`-(target * log(input) + (1 - target) * log(1 - input))` of probabilities."""

def binary_cross_entropy_with_logits(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    pos_weight: Tensor | None = None,
) -> Tensor:
    """`binary_cross_entropy(sigmoid(input), target)`, accurate for logits of any size."""

def kl_div(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
    log_target: bool = False,
) -> Tensor:
    """`target * (log(target) - input)`, where `input` holds log-probabilities."""

def poisson_nll_loss(
    input: Tensor,
    target: Tensor,
    log_input: bool = True,
    full: bool = False,
    size_average: bool | None = None,
    eps: float = 1e-08,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of counts `target` whose rate is `exp(input)` or `input`."""

def gaussian_nll_loss(
    input: Tensor,
    target: Tensor,
    var: Tensor | Number,
    full: bool = False,
    eps: float = 1e-06,
    reduction: str = "mean",
) -> Tensor:
    """The negative log-likelihood of `target` under normals with mean `input`, variance `var`."""

def nll_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The negative of `input`, log-probabilities of shape (N, C, …), at the target classes."""

def cross_entropy(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    ignore_index: int = -100,
    reduce: bool | None = None,
    reduction: str = "mean",
    label_smoothing: float = 0.0,
) -> Tensor:
    """The cross entropy of logits (N, C, …) with class indices (N, …) or probabilities (N, C, …)."""

def multi_margin_loss(
    input: Tensor,
    target: Tensor,
    p: int = 1,
    margin: float = 1.0,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far each other class comes within `margin` of the target's, to the power `p`."""

def multilabel_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the classes that are no target come within 1 of those that are."""

def multilabel_soft_margin_loss(
    input: Tensor,
    target: Tensor,
    weight: Tensor | None = None,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """The binary cross entropy of each class's logit, averaged over the classes."""

def linear(
    input: Tensor, weight: Tensor, bias: Tensor | None = None, *, out: Tensor | None = None
) -> Tensor:
    """`input @ weight.T + bias`, for a weight of shape (out, in) or (in)."""

def bilinear(input1: Tensor, input2: Tensor, weight: Tensor, bias: Tensor | None = None) -> Tensor:
    """`input1ᵀ W input2 + bias` for each matrix W of `weight`, shape (out, in1, in2)."""

def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-08) -> Tensor:
    """The cosine of the angle between vectors along `dim`; norms count as at least `eps`."""

def normalize(input: Tensor, p: float = 2.0, dim: Ints = 1, eps: float = 1e-12) -> Tensor:
    """`input` divided by its p-norm along `dim`, or by `eps` where the norm is smaller."""

def pairwise_distance(
    x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-06, keepdim: bool = False
) -> Tensor:
    """The p-norm of `x1 - x2 + eps` along the last dimension."""

def pdist(input: Tensor, p: float = 2) -> Tensor:
    """The p-norm distances of all pairs of rows i < j, in order."""

def pad(
    input: Tensor, pad: Sequence[int], mode: str = "constant", value: Number | None = None
) -> Tensor:
    """`input` with elements added at both ends of its last dimensions, or cut off."""

def conv1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate signals (N, C, L) or (C, L) with kernels (O, C / groups, K)."""

def conv2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate images (N, C, H, W) or (C, H, W) with kernels (O, C / groups, kH, kW)."""

def conv3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints | str = 0,
    dilation: Ints = 1,
    groups: int = 1,
    *,
    padding_mode: str = "zeros",
    activation: str | None = None,
) -> Tensor:
    """Correlate volumes (N, C, D, H, W) or (C, D, H, W) with kernels (O, C / groups, kD, kH, kW)."""

def conv_transpose1d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv1d`: every input element adds the kernel to the output around it."""

def conv_transpose2d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv2d`, with a weight (C, O / groups, kH, kW); see `conv_transpose1d`."""

def conv_transpose3d(
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Ints = 1,
    padding: Ints = 0,
    output_padding: Ints = 0,
    groups: int = 1,
    dilation: Ints = 1,
) -> Tensor:
    """The transpose of `conv3d`, with a weight (C, O / groups, kD, kH, kW); see `conv_transpose1d`."""

def ctc_loss(
    log_probs: Tensor,
    targets: Tensor,
    input_lengths: Tensor | Sequence[int],
    target_lengths: Tensor | Sequence[int],
    blank: int = 0,
    reduction: str = "mean",
    zero_infinity: bool = False,
) -> Tensor:
    """The negative log-likelihood of label sequences, summed over all alignments with blanks."""

@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """The largest elements of windows at random places of images (N, C, H, W) or (C, H, W)."""

@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows at random places of images (N, C, H, W) or (C, H, W)."""

@overload
def fractional_max_pool2d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows at random places of images (N, C, H, W) or (C, H, W)."""

@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: Literal[False] = False,
    _random_samples: Tensor | None = None,
) -> Tensor:
    """The largest elements of windows at random places of volumes; see `fractional_max_pool2d`."""

@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    *,
    return_indices: Literal[True],
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """The largest elements of windows at random places of volumes; see `fractional_max_pool2d`."""

@overload
def fractional_max_pool3d(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> Tensor | tuple[Tensor, Tensor]:
    """The largest elements of windows at random places of volumes; see `fractional_max_pool2d`."""

def group_norm(
    input: Tensor,
    num_groups: int,
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-05,
) -> Tensor:
    """Each of `num_groups` groups of channels of each element of (N, C, …) with mean 0, variance 1."""

def local_response_norm(
    input: Tensor, size: int, alpha: float = 0.0001, beta: float = 0.75, k: float = 1.0
) -> Tensor:
    """`input / (k + alpha · m)^beta`, where m is the mean square of `size` neighbouring channels."""

def linear_cross_entropy(
    input: Tensor,
    linear_weight: Tensor,
    target: Tensor,
    *,
    linear_bias: Tensor | None = None,
    weight: Tensor | None = None,
    reduction: str = "mean",
    ignore_index: int | None = None,
    label_smoothing: float = 0.0,
    options: LinearCrossEntropyOptions | None = None,
) -> Tensor:
    """`cross_entropy(linear(input, linear_weight, linear_bias), target)`."""

def soft_margin_loss(
    input: Tensor,
    target: Tensor,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`log(1 + exp(-target * input))` for targets 1 and -1."""

def hinge_embedding_loss(
    input: Tensor,
    target: Tensor,
    margin: float = 1.0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """Distances of similar pairs (target 1); what dissimilar pairs (-1) lack to `margin`."""

def margin_ranking_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """What `input1` lacks to rank above `input2` by `margin` (target 1), or below (-1)."""

def cosine_embedding_loss(
    input1: Tensor,
    input2: Tensor,
    target: Tensor,
    margin: float = 0,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """`1 - cos` of similar vectors (target 1); how far `cos` of others (-1) exceeds `margin`."""

def triplet_margin_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    margin: float = 1.0,
    p: float = 2,
    eps: float = 1e-06,
    swap: bool = False,
    size_average: bool | None = None,
    reduce: bool | None = None,
    reduction: str = "mean",
) -> Tensor:
    """How far the positive is from being closer to the anchor than the negative, by `margin`."""

def triplet_margin_with_distance_loss(
    anchor: Tensor,
    positive: Tensor,
    negative: Tensor,
    *,
    distance_function: Callable[[Tensor, Tensor], Tensor] | None = None,
    margin: float = 1.0,
    swap: bool = False,
    reduction: str = "mean",
) -> Tensor:
    """`triplet_margin_loss` with a distance of your own."""

def multi_head_attention_forward(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    embed_dim_to_check: int,
    num_heads: int,
    in_proj_weight: Tensor | None,
    in_proj_bias: Tensor | None,
    bias_k: Tensor | None,
    bias_v: Tensor | None,
    add_zero_attn: bool,
    dropout_p: float,
    out_proj_weight: Tensor,
    out_proj_bias: Tensor | None,
    training: bool = True,
    key_padding_mask: Tensor | None = None,
    need_weights: bool = True,
    attn_mask: Tensor | None = None,
    use_separate_proj_weight: bool = False,
    q_proj_weight: Tensor | None = None,
    k_proj_weight: Tensor | None = None,
    v_proj_weight: Tensor | None = None,
    static_k: Tensor | None = None,
    static_v: Tensor | None = None,
    average_attn_weights: bool = True,
    is_causal: bool = False,
) -> tuple[Tensor, Tensor | None]:
    """What `nn.MultiheadAttention` computes, given its weights; inputs are (L, N, E) or (L, E)."""

def interpolate(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """Signals, images or volumes (N, C, …) in another size, or larger by a factor."""

def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """(…, C·r², H, W) as (…, C, H·r, W·r): r² channels become the pixels of a block."""

def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """(…, C, H·r, W·r) as (…, C·r², H, W): what `pixel_shuffle` undoes."""

def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """(N, C, …) with the channels of `groups` groups dealt out by turns."""

def grid_sample(
    input: Tensor,
    grid: Tensor,
    mode: str = "bilinear",
    padding_mode: str = "zeros",
    align_corners: bool | None = None,
) -> Tensor:
    """The values of images (N, C, H, W) or volumes (N, C, D, H, W) at the points of `grid`."""

def affine_grid(theta: Tensor, size: Sequence[int], align_corners: bool | None = None) -> Tensor:
    """The grid for `grid_sample` that maps an output of `size` through affine matrices."""

native_channel_shuffle = channel_shuffle

def max_pool1d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool1d(…, return_indices=True)`: the largest elements and where they are."""

def max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool2d(…, return_indices=True)`: the largest elements and where they are."""

def max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    stride: Ints | None = None,
    padding: Ints = 0,
    dilation: Ints = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> tuple[Tensor, Tensor]:
    """`max_pool3d(…, return_indices=True)`: the largest elements and where they are."""

def adaptive_max_pool1d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool1d(…, return_indices=True)`: the largest elements and where they are."""

def adaptive_max_pool2d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool2d(…, return_indices=True)`: the largest elements and where they are."""

def adaptive_max_pool3d_with_indices(
    input: Tensor, output_size: int | Sequence[int | None] | None, return_indices: bool = False
) -> tuple[Tensor, Tensor]:
    """`adaptive_max_pool3d(…, return_indices=True)`: the largest elements and where they are."""

def fractional_max_pool2d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool2d(…, return_indices=True)`: the largest elements and where they are."""

def fractional_max_pool3d_with_indices(
    input: Tensor,
    kernel_size: Ints,
    output_size: Ints | None = None,
    output_ratio: float | Sequence[float] | None = None,
    return_indices: bool = False,
    _random_samples: Tensor | None = None,
) -> tuple[Tensor, Tensor]:
    """`fractional_max_pool3d(…, return_indices=True)`: the largest elements and where they are."""

def upsample(
    input: Tensor,
    size: Ints | None = None,
    scale_factor: float | Sequence[float] | None = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
) -> Tensor:
    """`interpolate` under its old name."""

def upsample_nearest(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with mode 'nearest', under its old name."""

def upsample_bilinear(
    input: Tensor, size: Ints | None = None, scale_factor: float | Sequence[float] | None = None
) -> Tensor:
    """`interpolate` with mode 'bilinear' and `align_corners=True`, under its old name."""

def rrelu_(
    input: Tensor, lower: float = 0.125, upper: float = 0.3333333333333333, training: bool = False
) -> Tensor:
    """In-place form of `rrelu`; returns the tensor itself."""

def rrelu(
    input: Tensor,
    lower: float = 0.125,
    upper: float = 0.3333333333333333,
    training: bool = False,
    inplace: bool = False,
) -> Tensor:
    """`leaky_relu` whose slope is drawn between `lower` and `upper` for each element."""

def conv_tbc(input: Tensor, weight: Tensor, bias: Tensor, pad: int = 0) -> Tensor:
    """`conv1d` of (time, batch, channels) with a weight (width, channels in, channels out)."""

def unfold(
    input: Tensor, kernel_size: Ints, dilation: Ints = 1, padding: Ints = 0, stride: Ints = 1
) -> Tensor:
    """Every window of images (N, C, H, W) or (C, H, W), laid out as a column: (N, C·kH·kW, L)."""

def fold(
    input: Tensor,
    output_size: Ints,
    kernel_size: Ints,
    dilation: Ints = 1,
    padding: Ints = 0,
    stride: Ints = 1,
) -> Tensor:
    """Columns as `unfold` lays them out, added up where their windows were: its transpose."""

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool1d_with_indices",
    "adaptive_max_pool2d",
    "adaptive_max_pool2d_with_indices",
    "adaptive_max_pool3d",
    "adaptive_max_pool3d_with_indices",
    "affine_grid",
    "alpha_dropout",
    "avg_pool1d",
    "avg_pool2d",
    "avg_pool3d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "celu_",
    "channel_shuffle",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_tbc",
    "conv_transpose1d",
    "conv_transpose2d",
    "conv_transpose3d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "dropout3d",
    "elu",
    "elu_",
    "embedding",
    "embedding_bag",
    "feature_alpha_dropout",
    "fold",
    "fractional_max_pool2d",
    "fractional_max_pool2d_with_indices",
    "fractional_max_pool3d",
    "fractional_max_pool3d_with_indices",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "grouped_mm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hardtanh_",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "leaky_relu_",
    "linear",
    "linear_cross_entropy",
    "local_response_norm",
    "log_softmax",
    "logsigmoid",
    "lp_pool1d",
    "lp_pool2d",
    "lp_pool3d",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool1d_with_indices",
    "max_pool2d",
    "max_pool2d_with_indices",
    "max_pool3d",
    "max_pool3d_with_indices",
    "max_unpool1d",
    "max_unpool2d",
    "max_unpool3d",
    "mish",
    "mse_loss",
    "multi_head_attention_forward",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "native_channel_shuffle",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pdist",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "relu_",
    "rms_norm",
    "rrelu",
    "rrelu_",
    "scaled_dot_product_attention",
    "selu",
    "selu_",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "threshold_",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
    "upsample",
    "upsample_bilinear",
    "upsample_nearest",
]
