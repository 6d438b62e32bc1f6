"""The names that users of torch type are there, as functions and as methods."""

from __future__ import annotations

import pytest

import undertow as ut

FUNCTIONS = """
tensor as_tensor from_numpy zeros ones full empty eye arange linspace logspace zeros_like
ones_like full_like empty_like rand_like randn_like randint_like rand randn randint randperm
normal bernoulli multinomial scalar_tensor meshgrid tril_indices triu_indices complex add sub rsub
mul div true_divide floor_divide remainder fmod pow float_power neg positive abs sign sgn
reciprocal square sqrt rsqrt addcmul addcdiv lerp clamp clamp_min clamp_max maximum minimum fmax
fmin hypot copysign xlogy nan_to_num round floor ceil trunc frac heaviside ldexp exp exp2 expm1
log log2 log10 log1p sin cos tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid
logit erf erfc erfinv lgamma digamma logaddexp logaddexp2 sinc deg2rad rad2deg i0 eq ne lt le gt
ge isclose allclose equal isnan isinf isfinite isposinf isneginf isreal isin logical_and
logical_or logical_xor logical_not bitwise_and bitwise_or bitwise_xor bitwise_not
bitwise_left_shift bitwise_right_shift where any all count_nonzero signbit sum mean prod amax amin
max min argmax argmin aminmax var std var_mean std_mean norm logsumexp nansum nanmean median
nanmedian mode quantile nanquantile cumsum cumprod cummax cummin logcumsumexp diff trapezoid
cumulative_trapezoid dist reshape flatten unflatten ravel squeeze unsqueeze permute transpose t
movedim swapaxes broadcast_to broadcast_tensors tile flip fliplr flipud roll rot90 cat stack
hstack vstack dstack column_stack split split_with_sizes chunk tensor_split hsplit vsplit dsplit
unbind narrow select diagonal diag diag_embed diagflat tril triu as_strided clone atleast_1d
atleast_2d atleast_3d block_diag cartesian_prod combinations gather scatter scatter_add
scatter_reduce take take_along_dim index_select index_add index_copy index_fill index_put
index_reduce masked_fill masked_select masked_scatter select_scatter slice_scatter
diagonal_scatter nonzero argwhere repeat_interleave searchsorted bucketize sort argsort msort topk
kthvalue unique unique_consecutive histc bincount matmul mm bmm mv dot vdot inner outer addmm
addmv addbmm baddbmm addr kron tensordot einsum cross cdist trace manual_seed no_grad enable_grad
set_grad_enabled inference_mode is_grad_enabled is_tensor is_floating_point numel
get_default_dtype set_default_dtype promote_types result_type can_cast finfo iinfo from_dlpack
Generator set_num_threads get_num_threads set_printoptions conv1d conv2d conv3d conv_transpose1d
conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d avg_pool1d adaptive_avg_pool1d
pixel_shuffle pixel_unshuffle channel_shuffle
""".split()  # noqa: SIM905

METHODS_ONLY = """
view expand expand_as repeat unfold contiguous new_zeros new_ones new_full new_empty put mT T to
float double half bfloat16 int long short char byte bool cpu item tolist numpy copy_ fill_ zero_
detach detach_ requires_grad_ backward register_hook register_post_accumulate_grad_hook
retain_grad is_leaf grad_fn uniform_ normal_ bernoulli_ random_ __getitem__ __setitem__ __len__
__iter__ __bool__ __float__ __int__ __index__ __format__ __array__ __array_ufunc__ __dlpack__
__dlpack_device__ __deepcopy__ __contains__ type_as size dim stride numel element_size
""".split()  # noqa: SIM905

# Of the functions above, those that torch does not have as Tensor methods.
NOT_METHODS = """
tensor as_tensor from_numpy zeros ones full empty eye arange linspace logspace zeros_like
ones_like full_like empty_like rand_like randn_like randint_like rand randn randint randperm
normal scalar_tensor meshgrid tril_indices triu_indices complex rsub isin var_mean std_mean
trapezoid cumulative_trapezoid broadcast_tensors cat stack hstack vstack dstack column_stack
block_diag cartesian_prod combinations atleast_1d atleast_2d atleast_3d searchsorted bucketize
tensordot einsum cdist manual_seed no_grad enable_grad set_grad_enabled inference_mode
is_grad_enabled is_tensor get_default_dtype set_default_dtype promote_types result_type can_cast
finfo iinfo from_dlpack Generator set_num_threads get_num_threads set_printoptions conv1d conv2d
conv3d conv_transpose1d conv_transpose2d conv_transpose3d max_pool1d max_pool2d max_pool3d
avg_pool1d adaptive_avg_pool1d pixel_shuffle pixel_unshuffle channel_shuffle
""".split()  # noqa: SIM905

INPLACE = """
add sub mul div true_divide floor_divide remainder fmod pow float_power neg abs sign sgn
reciprocal square sqrt rsqrt addcmul addcdiv lerp clamp clamp_min clamp_max hypot copysign xlogy
nan_to_num round floor ceil trunc frac heaviside ldexp exp exp2 expm1 log log2 log10 log1p sin cos
tan asin acos atan atan2 sinh cosh tanh asinh acosh atanh sigmoid logit erf erfc erfinv lgamma
digamma sinc deg2rad rad2deg i0 eq ne lt le gt ge logical_and logical_or logical_xor logical_not
bitwise_and bitwise_or bitwise_xor bitwise_not cumsum cumprod squeeze unsqueeze transpose t
swapaxes tril triu scatter scatter_add scatter_reduce put index_add index_copy index_fill
index_put index_reduce masked_fill masked_scatter addmm addmv addbmm baddbmm addr relu
bitwise_left_shift bitwise_right_shift as_strided
""".split()  # noqa: SIM905

FUNCTIONAL = """
relu relu6 leaky_relu prelu elu celu selu gelu silu mish softplus softsign softshrink hardshrink
tanhshrink hardtanh hardsigmoid hardswish logsigmoid glu threshold softmax log_softmax softmin
gumbel_softmax normalize dropout dropout1d dropout2d alpha_dropout feature_alpha_dropout mse_loss
l1_loss smooth_l1_loss huber_loss cross_entropy nll_loss binary_cross_entropy
binary_cross_entropy_with_logits kl_div poisson_nll_loss gaussian_nll_loss cosine_embedding_loss
hinge_embedding_loss margin_ranking_loss triplet_margin_loss multi_margin_loss
multilabel_margin_loss multilabel_soft_margin_loss soft_margin_loss ctc_loss linear bilinear
embedding embedding_bag one_hot cosine_similarity pairwise_distance pdist
scaled_dot_product_attention layer_norm rms_norm grid_sample affine_grid conv1d conv2d conv3d
conv_transpose1d
conv_transpose2d conv_transpose3d pad max_pool1d max_pool2d max_pool3d avg_pool1d avg_pool2d
avg_pool3d lp_pool1d lp_pool2d lp_pool3d adaptive_avg_pool1d adaptive_avg_pool2d
adaptive_avg_pool3d adaptive_max_pool1d adaptive_max_pool2d adaptive_max_pool3d max_unpool1d
max_unpool2d max_unpool3d unfold fold interpolate pixel_shuffle pixel_unshuffle channel_shuffle
batch_norm instance_norm group_norm local_response_norm fractional_max_pool2d
fractional_max_pool3d
""".split()  # noqa: SIM905

AUTOGRAD = """
backward grad Function no_grad enable_grad set_grad_enabled inference_mode detect_anomaly
set_detect_anomaly gradcheck gradgradcheck set_workers get_workers checkpoint
graph.saved_tensors_hooks graph.save_on_cpu functional.vjp functional.jvp functional.jacobian
functional.hessian functional.hvp functional.vhp function.once_differentiable
set_multithreading_enabled is_multithreading_enabled graph.register_multi_grad_hook
graph.allow_mutation_on_saved_tensors graph.disable_saved_tensors_hooks graph.increment_version
graph.get_gradient_edge graph.Node.metadata graph.Node.__call__ graph.Node.next_functions
Function.boxed_grads_call Function.clear_saved_tensors_on_access
""".split()  # noqa: SIM905

CHECKPOINT = """
checkpoint checkpoint_sequential set_checkpoint_early_stop create_selective_checkpoint_contexts
CheckpointPolicy SelectiveCheckpointContext
""".split()  # noqa: SIM905


def has(thing: object, dotted: str) -> bool:
    for part in dotted.split("."):
        if not hasattr(thing, part):
            return False
        thing = getattr(thing, part)
    return True


@pytest.mark.parametrize(
    "thing, names",
    [
        pytest.param(ut, FUNCTIONS, id="functions"),
        pytest.param(ut.Tensor, METHODS_ONLY, id="methods"),
        pytest.param(ut.Tensor, sorted({*FUNCTIONS} - {*NOT_METHODS}), id="functions as methods"),
        pytest.param(ut.Tensor, [f"{n}_" for n in INPLACE], id="in place"),
        pytest.param(ut.nn.functional, FUNCTIONAL, id="nn.functional"),
        pytest.param(ut.autograd, AUTOGRAD, id="autograd"),
        pytest.param(ut.utils.checkpoint, CHECKPOINT, id="utils.checkpoint"),
        pytest.param(ut, ["is_inference"], id="questions"),
    ],
)
def test_names(thing: object, names: list[str]) -> None:
    """Nothing on the list is missing."""
    assert [name for name in names if not has(thing, name)] == []
