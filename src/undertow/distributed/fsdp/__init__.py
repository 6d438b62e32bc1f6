"""`fully_shard`: parameters, gradients and optimiser state in pieces, one per process."""

from __future__ import annotations

from .module import FSDPModule as FSDPModule
from .module import MixedPrecisionPolicy as MixedPrecisionPolicy
from .module import fully_shard as fully_shard
from .module import summon_full_params as summon_full_params
from .state import load_optim_state_dict as load_optim_state_dict
from .state import optim_state_dict as optim_state_dict
