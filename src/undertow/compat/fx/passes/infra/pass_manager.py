"""`PassManager`: passes one after the other, until nothing changes or for some rounds."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...graph_module import GraphModule
from .pass_base import PassResult, named

__all__ = ["PassManager", "pass_result_wrapper", "this_before_that_pass_constraint"]


def pass_result_wrapper(fn: Callable[..., Any]) -> Callable[..., Any]:
    """A pass that returns a PassResult, given one that changes the module and returns nothing."""

    def wrapped(gm: GraphModule) -> Any:
        result = fn(gm)
        return result if isinstance(result, PassResult) else PassResult(result or gm, True)

    wrapped.__name__ = named(fn)
    return wrapped


def this_before_that_pass_constraint(
    this: Callable[..., Any], that: Callable[..., Any]
) -> Callable[[Any, Any], bool]:
    """A constraint: `this` stands before `that` in the list."""
    return lambda a, b: not (a == that and b == this)


class PassManager:
    """Passes and constraints on their order; called with a module it runs them all."""

    def __init__(
        self,
        passes: list[Callable[..., Any]] | None = None,
        constraints: list[Callable[[Any, Any], bool]] | None = None,
        steps: int | None = None,
        run_checks_after_each_pass: bool = False,
        suppress_check_failures: bool = False,
    ) -> None:
        self.passes = list(passes or [])
        self.constraints = list(constraints or [])
        self.steps = steps if steps is not None else 1

    def add_pass(self, _pass: Callable[..., Any]) -> None:
        """Add a pass at the end."""
        self.passes.append(_pass)

    def add_constraint(self, constraint: Callable[[Any, Any], bool]) -> None:
        """Add a constraint."""
        self.constraints.append(constraint)

    def validate_constraints(self) -> None:
        """Raise if the order breaks a constraint."""
        for i, before in enumerate(self.passes):
            for after in self.passes[i + 1 :]:
                for constraint in self.constraints:
                    if not constraint(before, after):
                        raise RuntimeError(
                            f"pass schedule constraint violated: {named(before)} stands before "
                            f"{named(after)}"
                        )

    def __call__(self, module: GraphModule) -> PassResult:
        self.validate_constraints()
        ever = False
        for _ in range(self.steps):
            changed = False
            for fn in self.passes:
                result = fn(module)
                if not isinstance(result, PassResult):
                    raise TypeError(
                        f"The result of the pass {named(fn)} should be type PassResult. Please "
                        "wrap it with pass_result_wrapper()"
                    )
                module, changed = result.graph_module, changed or result.modified
                module.recompile()
            ever |= changed
            if not changed:
                break
        return PassResult(module, ever)
