"""Run PyTorch's own samples of its operators (OpInfo) on Undertow, and compare with genuine torch.

    python tools/opinfo.py                     float64: values, dtypes and first gradients
    python tools/opinfo.py --dtype complex128
    python tools/opinfo.py linalg. nn.functional.pad --verbose

It needs the development environment with torch. An entry agrees if all of its samples do; entries
that draw random numbers are compared by shapes and dtypes.
"""

from __future__ import annotations

import argparse
import dataclasses
import signal
import sys
import types
import warnings
from collections import Counter
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import undertow as ut
from undertow.core.other_kinds import OtherKind

OURS = (ut.Tensor, OtherKind)
SPACES = ("", "nn.functional", "linalg", "fft", "special", "masked", "signal.windows", "Tensor")
LIMIT = 60  # seconds for an entry
# Entries whose elements are random, or what memory holds.
UNDEFINED = {
    *("empty", "empty_like", "empty_permuted", "empty_strided", "new_empty", "new_empty_strided"),
    *("bernoulli", "cauchy", "exponential", "geometric", "log_normal", "multinomial", "normal"),
    *("rand_like", "randint", "randint_like", "randn", "randn_like", "uniform", "rrelu"),
    *("dropout", "dropout2d", "dropout3d", "alpha_dropout", "feature_alpha_dropout"),
    *("fractional_max_pool2d", "fractional_max_pool3d", "svd_lowrank", "pca_lowrank"),
    "multi_head_attention_forward",  # with dropout
}


class Skipped(Exception):
    """A sample that says nothing here: sparse or quantised, or torch itself refuses it."""


# Torch's values and functions, here -----------------------------------------------------------
def reach(root: Any, path: str) -> Any:
    """What stands at a path with dots, or None."""
    for name in filter(None, path.split(".")):
        root = getattr(root, name, None)
        if root is None:
            return None
    return root


def _paths() -> dict[int, str]:
    """Where torch's functions stand, by their identity."""
    found: dict[int, str] = {}
    for space in SPACES:
        for name, value in vars(reach(torch, space)).items():
            if callable(value) and not isinstance(value, types.ModuleType):
                found.setdefault(id(value), f"{space}.{name}".lstrip("."))
    return found


PATHS = _paths()


def with_names_of_ours(f: Callable[..., Any]) -> Callable[..., Any]:
    """A small function of the table, in which `torch` means Undertow."""
    if not isinstance(f, types.FunctionType):
        return f
    names = {**f.__globals__, "torch": ut}
    return types.FunctionType(f.__code__, names, f.__name__, f.__defaults__, f.__closure__)


def function_of(op: Any) -> Callable[..., Any] | None:
    """Undertow's function for that of an entry."""
    f = op.op
    if isinstance(f, types.FunctionType) and f.__module__.startswith("torch.testing"):
        return with_names_of_ours(f)
    if isinstance(f, torch._ops.OpOverload):
        return reach(ut.ops, str(f))  # type: ignore[no-any-return]
    for path in (PATHS.get(id(f), ""), op.name, f"Tensor.{op.name}"):
        found = reach(ut, path) if path else None
        if callable(found):
            return found  # type: ignore[no-any-return]
    return None


def here(value: Any) -> Any:
    """A value of torch's as one of Undertow's."""
    if isinstance(value, torch.Tensor):
        if value.layout is torch.sparse_csr:
            parts = (value.crow_indices(), value.col_indices(), value.detach().values())
            found = ut.sparse_csr_tensor(*map(here, parts), here(value.shape))
            return found.requires_grad_() if value.requires_grad else found
        if value.layout is not torch.strided or value.is_quantized:
            raise Skipped("sparse or quantised")
        plain = value.detach().resolve_conj().resolve_neg()
        whole = plain.as_strided((plain.untyped_storage().nbytes() // plain.itemsize,), (1,), 0)
        memory = (  # also what the tensor does not look at
            ut.from_numpy(whole.float().numpy()).to(ut.bfloat16)
            if value.dtype is torch.bfloat16
            else ut.from_numpy(whole.clone().numpy())
        )
        found = memory.as_strided(plain.shape, plain.stride(), plain.storage_offset())
        return found.requires_grad_() if value.requires_grad else found
    if isinstance(value, torch.dtype):
        return getattr(ut, str(value).removeprefix("torch."))
    if isinstance(value, torch.device):
        return ut.device(str(value))
    if isinstance(value, torch.Size):
        return ut.Size(value)
    if isinstance(value, (torch.layout, torch.memory_format)):
        return reach(ut, str(value).removeprefix("torch."))
    if isinstance(value, slice):
        return slice(here(value.start), here(value.stop), here(value.step))
    if isinstance(value, (list, tuple)):
        items = [here(v) for v in value]
        return type(value)(*items) if hasattr(value, "_fields") else type(value)(items)
    if isinstance(value, dict):
        return {k: here(v) for k, v in value.items()}
    if callable(value) and id(value) in PATHS:
        return reach(ut, PATHS[id(value)])
    if isinstance(value, torch.nn.Module):  # of samples without parameters
        made = reach(ut.nn, type(value).__name__)()
        vars(made).update({k: v for k, v in vars(value).items() if not k.startswith("_")})
        return made
    if dataclasses.is_dataclass(value) and type(value).__module__.startswith("torch.nn"):
        options = {f.name: getattr(value, f.name) for f in dataclasses.fields(value)}
        return reach(ut.nn, type(value).__name__)(**options)
    return value


def tensors(value: Any, kind: Any) -> Iterator[Any]:
    """The tensors in nested containers, in order."""
    if isinstance(value, kind):
        yield value
    elif isinstance(value, (list, tuple)):
        for item in value:
            yield from tensors(item, kind)
    elif isinstance(value, dict):
        for item in value.values():
            yield from tensors(item, kind)


# Comparing -------------------------------------------------------------------------------------
def array(t: Any) -> np.ndarray:
    """The elements of a tensor of either library."""
    if str(t.layout).split(".")[-1] != "strided":
        t = t.to_dense()
    if isinstance(t, torch.Tensor):
        t = t.detach().resolve_conj().resolve_neg()
        return (t.to(torch.float64) if t.dtype is torch.bfloat16 else t).numpy(force=True)
    return np.asarray(t.detach().to(ut.float64) if t.dtype is ut.bfloat16 else t.detach())


def differ(found: list[Any], expected: list[Any], what: str, values: bool) -> str | None:
    """In what results differ, or None."""
    if len(found) != len(expected):
        return f"{len(found)} {what}s, torch has {len(expected)}"
    for f, e in zip(found, expected, strict=True):
        if tuple(f.shape) != tuple(e.shape):
            return f"{what} of shape {tuple(f.shape)}, torch's {tuple(e.shape)}"
        if str(f.dtype).split(".")[-1] != str(e.dtype).split(".")[-1]:
            return f"{what} of {f.dtype}, torch's {e.dtype}"
        if not values or not e.numel():
            continue
        a, b = array(f), array(e)
        with np.errstate(all="ignore"):
            finite = np.abs(b[np.isfinite(b)])
            rtol = 1e-5 if b.dtype.itemsize <= 4 else 1e-6
            atol = rtol / 10 * max(1.0, finite.max(initial=0))
            if not np.allclose(a, b, rtol=rtol, atol=atol, equal_nan=True):
                apart = np.nanmax(np.abs(a.astype(complex) - b.astype(complex)))
                return f"{what} differs by {apart:.3g}"
    return None


def gradients(library: Any, outputs: list[Any], inputs: list[Any], seeds: list[Any]) -> list[Any]:
    """The gradient of what depends on the inputs; zeros where nothing does."""
    pairs = [(o, s) for o, s in zip(outputs, seeds, strict=True) if o.requires_grad]
    wanted = [i for i in inputs if i.requires_grad]
    if not pairs or not wanted:
        return []
    grads = library.autograd.grad(
        [o for o, _ in pairs], wanted, [s for _, s in pairs], allow_unused=True
    )
    return [library.zeros_like(i) if g is None else g for g, i in zip(grads, wanted, strict=True)]


def compare(op: Any, ours: Callable[..., Any], sample: Any) -> str | None:
    """In what a sample differs, or None."""
    args, kwargs = (sample.input, *sample.args), sample.kwargs
    our_args, our_kwargs = here(args), here(kwargs)  # before torch may change them in place
    try:
        theirs = op.op(*args, **kwargs)
    except Exception as error:
        raise Skipped(f"torch refuses: {error}") from error
    expected = list(tensors(theirs, torch.Tensor))
    result = ours(*our_args, **our_kwargs)
    found = list(tensors(result, OURS))
    undefined = op.name.split(".")[-1] in UNDEFINED or kwargs.get("dropout_p", 0) > 0
    why = differ(found, expected, "result", values=False)
    if why is not None or undefined:
        return why
    if sample.output_process_fn_grad is not None:  # such as: only what no phase changes
        theirs = sample.output_process_fn_grad(theirs)
        result = with_names_of_ours(sample.output_process_fn_grad)(result)
        expected, found = list(tensors(theirs, torch.Tensor)), list(tensors(result, OURS))
    why = differ(found, expected, "result", values=True)
    if why is not None:
        return why
    if not expected and result != theirs:
        return f"result is {result}, torch's {theirs}"
    if [f.requires_grad for f in found] != [e.requires_grad for e in expected]:
        return f"requires_grad {[f.requires_grad for f in found]}, torch's the other way"
    seeds = [torch.randn_like(e.detach()) if e.requires_grad else None for e in expected]
    inputs = list(tensors((args, kwargs), torch.Tensor))
    our_inputs = list(tensors((our_args, our_kwargs), OURS))
    try:
        wanted = gradients(torch, expected, inputs, seeds)
    except Exception as error:
        raise Skipped(f"torch has no gradient: {error}") from error
    got = gradients(ut, found, our_inputs, [None if s is None else here(s) for s in seeds])
    return differ(got, wanted, "gradient", values=True)


def judged(op: Any, dtype: torch.dtype, verbose: bool) -> tuple[str, str]:
    """What became of an entry: agrees, differs, missing or skipped, and why."""
    ours = function_of(op)
    if ours is None:
        return "missing", "there is no such function"
    count, skipped = 0, ""
    grad = dtype in op.supported_backward_dtypes("cpu") and op.supports_autograd
    for sample in op.sample_inputs("cpu", dtype, requires_grad=grad):
        try:
            why = compare(op, ours, sample)
        except Skipped as error:
            skipped = str(error)
            continue
        except TimeoutError:
            raise
        except Exception as error:
            why = f"{type(error).__name__}: {error}"
        count += 1
        if why is not None:
            if verbose:
                why += f"\n      {sample}"
            return "differs", why
    return ("agrees", "") if count else ("skipped", skipped or "no samples")


def _ended(*_: Any) -> None:
    raise TimeoutError(f"took longer than {LIMIT} seconds")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("names", nargs="*", help="beginnings of names of entries")
    parser.add_argument("--dtype", default="float64")
    parser.add_argument("--verbose", action="store_true", help="print the samples that differ")
    options = parser.parse_args()
    dtype = getattr(torch, options.dtype)
    warnings.simplefilter("ignore")
    signal.signal(signal.SIGALRM, _ended)
    outcomes: Counter[str] = Counter()
    for op in op_db:
        name = op.name + (f" ({op.variant_test_name})" if op.variant_test_name else "")
        if options.names and not name.startswith(tuple(options.names)):
            continue
        if dtype not in op.supported_dtypes("cpu"):
            continue
        signal.alarm(LIMIT)
        try:
            outcome, why = judged(op, dtype, options.verbose)
        except TimeoutError as error:
            outcome, why = "differs", str(error)
        finally:
            signal.alarm(0)
        outcomes[outcome] += 1
        if outcome != "agrees":
            print(f"{outcome:8} {name}: {why}", flush=True)
    total = sum(outcomes.values())
    print(f"{outcomes['agrees']} of {total} entries agree ({options.dtype}):", dict(outcomes))
    return 0


if __name__ == "__main__":
    sys.exit(main())
