"""Settings of torch's compiler, which can be set and read, and change nothing here."""

from ..patching import patcher

allow_unspec_int_on_nn_module = False
assume_static_by_default = True
automatic_dynamic_shapes = True
cache_size_limit = recompile_limit = 8
accumulated_cache_size_limit = accumulated_recompile_limit = 256
capture_dynamic_output_shape_ops = False
capture_scalar_outputs = False
disable = False
force_parameter_static_shapes = True
inline_inbuilt_nn_modules = True
log_level = 0
optimize_ddp = True
raise_on_ctx_manager_usage = True
skip_fwd_side_effects_in_bwd_under_checkpoint = False
skip_nnmodule_hook_guards = True
specialize_int = False
suppress_errors = False
verbose = False
patch = patcher(globals())
