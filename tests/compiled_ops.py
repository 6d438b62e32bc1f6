"""The op table compiled: forward and backward of every sample, as a program, beside eager calls.

    UNDERTOW_KERNELS=always PYTHONPATH=src:tests python tests/compiled_ops.py [PART/PARTS]

Then bits are compared, and the program's memory is filled with ones (which is NaN) before each
call. `compiled/test_compile.py` runs a part of it in every mode.
"""

from __future__ import annotations

import sys
import warnings
from typing import Any

import numpy as np

import undertow as ut
from op_samples import Const, OpInfo, Sample, load
from undertow.backends.cpu.calls.choice import MODE
from undertow.utils._pytree import tree_flatten

EXACT = MODE == "always"


def function(name: str) -> Any:
    """The public function of that name."""
    found: Any = ut
    for part in name.split("."):
        found = getattr(found, part)
    return found


def tensors(value: Any, made: list[Any]) -> Any:
    """The arguments of a sample, with tensors for arrays, which are also listed."""
    if isinstance(value, Const):
        made.append(ut.tensor(value.array.copy()))
        return made[-1]
    if isinstance(value, np.ndarray):
        t = ut.from_numpy(value.copy(order="K"))
        made.append(t)
        return t
    if isinstance(value, (list, tuple)):
        return type(value)(tensors(v, made) for v in value)
    return value


def same(a: Any, b: Any) -> bool:
    """Whether two results are: bit for bit, if the kernels are the same ones."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    x, y = a.detach().numpy(), b.detach().numpy()
    if EXACT or x.dtype.kind in "biu":
        return bool(np.ascontiguousarray(x).tobytes() == np.ascontiguousarray(y).tobytes())
    return bool(np.allclose(x, y, 1e-4, 1e-6, equal_nan=True))


def check(info: OpInfo, sample: Sample) -> str:
    """ "program", or why it runs eagerly; an AssertionError if results differ."""
    call = function(info.name)
    made: list[Any] = []
    args = tensors(list(sample.args), made)
    kwargs = {k: tensors(v, made) for k, v in sample.kwargs.items()}
    leaves = [
        t for t in made if t.dtype in (ut.float64, ut.float32) and info.grad and t.numel() < 10**5
    ]
    for t in leaves:
        t.requires_grad_()

    def step() -> Any:
        for t in leaves:
            t.grad = None
        out = call(*args, **kwargs)
        found = [o for o in tree_flatten(out)[0] if isinstance(o, ut.Tensor)]
        wanted = [o for o in found if o.requires_grad and not o.is_complex()]
        if wanted:
            total = sum([(o * 0.5).sum() for o in wanted])
            total.backward()
        return [o.detach() for o in found]

    ut.manual_seed(0)
    try:
        expected = [o.clone() for o in step()]
    except Exception as error:
        return f"eager raises {type(error).__name__}"
    grads = [None if t.grad is None else t.grad.clone() for t in leaves]
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        run = ut.compile(step)
        reason = "never"
        for i in range(7):
            entries = list(run._entries.values())
            if entries and entries[0].program is not None:
                entries[0].program.table.fill(255)
                reason = "program"
            ut.manual_seed(0)
            found = run()
            assert len(found) == len(expected)
            for j, (a, b) in enumerate(zip(found, expected, strict=True)):
                assert same(a, b), f"call {i}: result {j}: {a} instead of {b}"
            for t, g in zip(leaves, grads, strict=True):
                assert (t.grad is None) == (g is None), f"call {i}: a gradient is missing"
                assert g is None or same(t.grad, g), f"call {i}: gradient {t.grad}, not {g}"
    if reason != "program":
        reason = str(entries[0].refused or entries[0].difference)
    return reason


def main() -> None:
    """Check all samples, or a part of them."""
    number, count = map(int, (sys.argv[1:] or ["0/1"])[0].split("/"))
    reasons: dict[str, list[str]] = {}
    failed = []
    n = 0
    for name, info in sorted(load().items()):
        if name.endswith("_"):  # changes its arguments
            continue
        for i, sample in enumerate(info.samples):
            n += 1
            if n % count != number:
                continue
            try:
                reason = check(info, sample)
            except AssertionError as error:
                failed.append(f"{name}[{i}] {sample!r}: {str(error)[:300]}")
                print("FAILED", failed[-1], flush=True)
                continue
            except Exception as error:
                failed.append(f"{name}[{i}] {sample!r}: {type(error).__name__} {error}")
                print("ERROR", failed[-1][:400], flush=True)
                continue
            reasons.setdefault(reason, []).append(name)
    for reason, names in sorted(reasons.items(), key=lambda p: -len(p[1])):
        print(f"{len(names):6} {reason[:120]}  {', '.join(dict.fromkeys(names))[:160]}")
    print(f"{len(failed)} failed")


if __name__ == "__main__":
    main()
