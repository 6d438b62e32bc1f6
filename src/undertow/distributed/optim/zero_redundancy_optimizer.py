"""`ZeroRedundancyOptimizer`: each process keeps the optimiser's state of some parameters only."""

from __future__ import annotations

from typing import Any

from ...core.modes import no_grad
from ...core.tensor import Tensor
from ...errors import ArgumentError, UnsupportedError
from ...optim.optimizer import Optimizer
from .. import functions, groups

__all__ = ["ZeroRedundancyOptimizer"]


class ZeroRedundancyOptimizer(Optimizer):
    """An optimiser whose state is spread over the processes.

    Parameters are dealt out by their sizes. A process steps its own, and gives the new values to
    the others; so the state takes 1/n of the memory, and the parameters are those that the
    optimiser would give in one process, to the bit.
    """

    def __init__(
        self,
        params: Any,
        optimizer_class: type[Optimizer],
        process_group: Any = None,
        parameters_as_bucket_view: bool = False,
        overlap_with_ddp: bool = False,
        **defaults: Any,
    ) -> None:
        if overlap_with_ddp:
            raise UnsupportedError(
                "[ZeroRedundancyOptimizer] overlap_with_ddp=True is not supported; step after the "
                "backward pass"
            )
        self.process_group = groups.resolved("ZeroRedundancyOptimizer", process_group)
        self._class, self._defaults = optimizer_class, defaults
        self._complete: list[Any] | None = None
        self._begun = False
        super().__init__(params, defaults)
        self._begun = True
        self._make()

    def add_param_group(self, param_group: Any) -> None:
        """Add parameters, which are dealt out as well."""
        super().add_param_group(param_group)
        if self._begun:
            state = self.optim.state
            self._make()
            for p, values in state.items():
                if p in self._mine:
                    self.optim.state[p] = values

    def _make(self) -> None:
        """Deal the parameters out: the largest first, each to who has least."""
        group = self.process_group
        loads = [0] * group.members
        everything = [p for g in self.param_groups for p in g["params"]]
        self._owned: list[list[Tensor]] = [[] for _ in loads]
        for p in sorted(everything, key=lambda p: -p.numel()):
            owner = min(range(group.members), key=lambda r: (loads[r], r))
            loads[owner] += p.numel()
            self._owned[owner].append(p)
        self._mine = set(self._owned[group.me])
        self._numbers = {p: i for i, p in enumerate(everything)}
        own = [
            {**g, "params": [p for p in g["params"] if p in self._mine]} for g in self.param_groups
        ]
        self._filled = [i for i, g in enumerate(own) if g["params"]]
        if not self._filled:
            raise ArgumentError(
                f"[ZeroRedundancyOptimizer] {len(everything)} parameters cannot be dealt to "
                f"{group.members} processes: rank {group.me} would have none"
            )
        self.optim = self._class([own[i] for i in self._filled], **self._defaults)
        for i, local in zip(self._filled, self.optim.param_groups, strict=True):
            for key, value in local.items():
                if key != "params":
                    self.param_groups[i].setdefault(key, value)

    def step(self, closure: Any = None, **kwargs: Any) -> Any:
        """Step the parameters of this process, and get those of the others."""
        for i, local in zip(self._filled, self.optim.param_groups, strict=True):
            for key, value in self.param_groups[i].items():
                if key != "params":
                    local[key] = value
        loss = self.optim.step(closure, **kwargs) if closure is not None else self.optim.step()
        with no_grad():
            values = [[p.detach() for p in some] for some in self._owned]
            functions.share(values, self.process_group, "parameters")
        return loss

    def consolidate_state_dict(self, to: int = 0) -> None:
        """Bring the whole state to one process, for `state_dict` there; every process calls it."""
        group = self.process_group
        own = {self._numbers[p]: dict(values) for p, values in self.optim.state.items()}
        found: list[Any] = [None] * group.members
        functions.all_gather_object(found, own, group)
        self._complete = found if group.ranks[group.me] == to else None

    def state_dict(self) -> Any:
        """The whole state, after `consolidate_state_dict`, as the optimiser itself has it."""
        if self._complete is None:
            raise ArgumentError(
                "[ZeroRedundancyOptimizer] call consolidate_state_dict(to=rank) on every process "
                "first; state_dict is there on that rank only"
            )
        merged = {key: value for part in self._complete for key, value in part.items()}
        place, packed = 0, []
        for g in self.param_groups:
            count = len(g["params"])
            packed.append({**g, "params": list(range(place, place + count))})
            place += count
        return {"state": dict(sorted(merged.items())), "param_groups": packed}

    def load_state_dict(self, state_dict: Any) -> None:
        """Take a whole state, of which each process keeps its part."""
        for own, given in zip(self.param_groups, state_dict["param_groups"], strict=True):
            own.update({k: v for k, v in given.items() if k != "params"})
        local = {
            p: i for i, p in enumerate(p for g in self.optim.param_groups for p in g["params"])
        }
        state = {
            local[p]: state_dict["state"][self._numbers[p]]
            for p in local
            if self._numbers[p] in state_dict["state"]
        }
        groups_ = self.optim.state_dict()["param_groups"]
        self.optim.load_state_dict({"state": state, "param_groups": groups_})
        self._complete = None
