"""Mixed precision beside torch: dtypes of all results, gradients of layers, the scaler."""

from __future__ import annotations

import math
import warnings
from typing import Any

import numpy as np
import pytest

import undertow as ut
from conformance.test_torch_ops import torch_function
from op_cases import flat, resolve
from op_samples import Const, OpInfo, load
from undertow.core.autocast import POLICIES
from undertow.core.register import FUNCTIONAL, FUNCTIONS, SPACES

torch = pytest.importorskip("torch")
pytestmark = pytest.mark.conformance
F = ut.nn.functional
# In half precision torch answers these in another dtype outside of autocast, too.
OTHERWISE = {"ldexp"}
# Half precision is refused here; torch lets matrices without elements pass.
OTHERWISE |= {f"linalg.{n}" for n in ("det", "lu", "lu_factor", "ldl_factor", "ldl_factor_ex")}


def given(value: Any, lib: Any, half: bool) -> Any:
    """A sample's value for a library, floating arrays in float32 or bfloat16."""
    if isinstance(value, Const):
        value = value.array
    if isinstance(value, np.ndarray):
        floating = value.dtype == np.float64
        with np.errstate(over="ignore"):
            t = lib.from_numpy(value.astype(np.float32) if floating else value.copy())
        return t.to(lib.bfloat16) if floating and half else t
    if isinstance(value, (list, tuple)):
        return type(value)(given(v, lib, half) for v in value)
    if isinstance(value, dict):
        return {k: given(v, lib, half) for k, v in value.items()}
    if isinstance(value, ut.dtypes.DType) and lib is torch:
        return getattr(torch, value.name)
    return value


def broadcast_sum(info: OpInfo, sample: Any) -> bool:
    """Whether einsum may sum over a size that is 1: torch's lists then see a multiplication."""
    return info.name == "einsum" and any(1 in a.shape for a in sample.args if hasattr(a, "shape"))


def named(outputs: Any) -> list[str]:
    return [
        str(t.dtype).rpartition(".")[2]
        for t in flat(outputs)
        if isinstance(t, (torch.Tensor, ut.Tensor))
    ]


@pytest.mark.parametrize(
    "info", [pytest.param(i, id=n) for n, i in load().items() if isinstance(i.torch, str)]
)
@pytest.mark.parametrize("half", [False, True], ids=["float32", "bfloat16"])
def test_dtypes_of_results(info: OpInfo, half: bool) -> None:
    """Under autocast every function answers in torch's dtype, whatever list it is on."""
    if info.name in OTHERWISE and half:
        pytest.skip("differs outside of autocast")
    if info.name == "lstm" and torch.ops.mkldnn._is_mkldnn_bf16_supported():
        pytest.skip("on processors with instructions for bfloat16 torch has another kernel for it")
    if info.name == "lobpcg" and half:
        pytest.skip("linear algebra takes no halves here, outside of autocast either")
    steps = {"niter": 2} if info.name == "lobpcg" else {}  # in halves it would never end
    for sample in info.samples:
        options = {**sample.kwargs, **steps}
        try:
            if broadcast_sum(info, sample):
                continue
            with warnings.catch_warnings(), torch.autocast("cpu"):
                warnings.simplefilter("ignore")
                arguments = given(sample.args, torch, half), given(options, torch, half)
                expected = named(torch_function(info)(*arguments[0], **arguments[1]))
        except (RuntimeError, TypeError, NotImplementedError):
            continue  # torch has no such kernel in half precision
        with ut.autocast("cpu"):
            args, kwargs = given(sample.args, ut, half), given(options, ut, half)
            assert named(resolve(info.name)(*args, **kwargs)) == expected, sample


def test_lists_name_published_functions() -> None:
    """Nothing on the lists is misspelt; what torch lists and we lack is added with the function."""
    spaces = {f"{space}.{n}" for space, table in SPACES.items() for n in table}
    assert set(POLICIES) - {*FUNCTIONS, *FUNCTIONAL, *spaces} <= {"conv_tbc"}


def test_a_layer_after_another() -> None:
    """Mixed operands, as from the second layer on: values and gradients, roughly."""
    random = np.random.default_rng(0)
    arrays = {
        "x": random.standard_normal((4, 6), np.float32),
        "w1": random.standard_normal((8, 6), np.float32),
        "b1": random.standard_normal(8, np.float32),
        "w2": random.standard_normal((3, 8), np.float32),
    }
    found: dict[str, Any] = {}
    for lib in (torch, ut):
        t = {n: lib.from_numpy(a.copy()).requires_grad_(n != "x") for n, a in arrays.items()}
        functional = lib.nn.functional
        with lib.autocast("cpu"):
            hidden = functional.relu(functional.linear(t["x"], t["w1"], t["b1"]))
            out = functional.linear(hidden, t["w2"])
            loss = functional.cross_entropy(out, lib.tensor([0, 1, 2, 0]))
        assert str(out.dtype).endswith("bfloat16")
        assert str(loss.dtype).endswith("float32")
        loss.backward()
        found[lib.__name__] = [loss.item()] + [t[n].grad.tolist() for n in ("w1", "b1", "w2")]
    for ours, theirs in zip(found["undertow"], found["torch"], strict=True):
        np.testing.assert_allclose(ours, theirs, rtol=0.05, atol=0.05)


class Descent:
    """An optimiser as both libraries' scalers expect it."""

    def __init__(self, params: list[Any]) -> None:
        self.param_groups = [{"params": params}]
        self.steps = 0

    def step(self) -> None:
        self.steps += 1


def history(lib: Any, gradients: list[float]) -> list[Any]:
    """What a scaler does with gradients that sometimes overflow."""
    scaler = lib.amp.GradScaler(
        "cpu", init_scale=8.0, growth_interval=2, growth_factor=3.0, backoff_factor=0.25
    )
    x = lib.ones(2, requires_grad=True)
    optimizer = Descent([x])
    seen = []
    for g in gradients:
        x.grad = None
        scaler.scale((x * g).sum()).backward()
        if len(seen) % 2:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        scaler.update()
        seen.append((scaler.get_scale(), optimizer.steps, x.grad.tolist(), scaler.state_dict()))
    return seen


def test_scalers_do_the_same() -> None:
    """Growth, backoff and left-out steps follow torch's."""
    gradients = [1.0, 2.0, 3.0, math.inf, 4.0, 5.0, 0.5, 1e38, 6.0, 7.0, 8.0]
    assert repr(history(ut, gradients)) == repr(history(torch, gradients))


@pytest.mark.parametrize("device_type", ["cuda", "xpu"])
def test_autocast_for_an_absent_device_warns(device_type: str) -> None:
    """As in torch it is switched off, and the program goes on."""
    for lib in (torch, ut):
        with pytest.warns(UserWarning, match="Disabling"):
            region = lib.amp.GradScaler("cuda")
        assert not region.is_enabled()
    with pytest.warns(UserWarning, match="Disabling"):
        region = ut.autocast(device_type)
    with region:
        assert (ut.ones(2, 2) @ ut.ones(2, 2)).dtype is ut.float32


@pytest.mark.parametrize("unscaled", [False, True])
@pytest.mark.parametrize("overflow", [False, True])
def test_an_optimizer_that_scales_by_itself(unscaled: bool, overflow: bool) -> None:
    def run(lib: Any) -> list[Any]:
        seen: list[Any] = []

        class Own(lib.optim.SGD):  # type: ignore[misc]
            _step_supports_amp_scaling = True

            def step(self, closure: Any = None) -> Any:
                scale = self.grad_scale
                seen.append((None if scale is None else float(scale), float(self.found_inf)))
                if not self.found_inf:
                    for p in self.param_groups[0]["params"]:
                        p.data.sub_(0.5 * p.grad / (1.0 if scale is None else scale))

        p = lib.nn.Parameter(lib.ones(2))
        optimizer = Own([p], lr=0.5)
        scaler = lib.amp.GradScaler("cpu", init_scale=4.0, growth_interval=1)
        scaler.scale((p * (float("inf") if overflow else 3.0)).sum()).backward()
        if unscaled:
            scaler.unscale_(optimizer)
        scaler.step(optimizer)
        gone = not hasattr(optimizer, "grad_scale") and not hasattr(optimizer, "found_inf")
        with pytest.raises(RuntimeError):
            scaler.step(optimizer)
        scaler.update()
        return [seen, gone, p.tolist(), scaler.get_scale()]

    assert run(ut) == run(torch)
