"""Small kernels of the loop IR as WGSL, run on the first adapter."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from undertow.backends.generated.render import render
from undertow.kernel.ir import Function, Value
from undertow.kernel.ir_check import check

NUMPY = {
    "bool": np.bool_,
    "f16": np.float16,
    "f32": np.float32,
    **{f"i{n}": np.dtype(f"int{n}").type for n in (8, 16, 32, 64)},
    **{f"u{n}": np.dtype(f"uint{n}").type for n in (8, 16, 32, 64)},
}


def run(runtime: Any, compute: Callable[..., Value], ins: list[Any], out: str) -> Any:
    """A kernel of one value per element, of arrays of one length."""
    count = len(ins[0])
    kinds = {np.dtype(t): name for name, t in NUMPY.items()}
    f = Function("probe", "i32", False)
    y = f.buffer("y", out, True)
    xs = [f.buffer(f"x{i}", kinds[a.dtype]) for i, a in enumerate(ins)]
    n = f.param("n")
    with f.parallel(n) as _, f.vector(n) as i:
        f.store(y, i, compute(f, *[f.load(x, i) for x in xs]))
    check(f)
    text = render(f, runtime.dialect, range(len(ins) + 1), 64)
    kernel = runtime.compile(text.text, text.entry, text.bindings, 64, text.words)
    buffers = [runtime.alloc(8 * count + 8)]
    for a in ins:
        buffers.append(runtime.alloc(8 * count + 8))
        padded = np.zeros(-(-a.nbytes // 4) * 4, np.uint8)
        padded[: a.nbytes] = a.view(np.uint8)
        runtime.upload(buffers[-1], 0, padded)
    params = text.pack.pack(*[0] * len(buffers), count) + runtime.dialect.tail
    runtime.launch(kernel, buffers, params, (1, 1, 1))
    nbytes = count * np.dtype(NUMPY[out]).itemsize
    found = runtime.download(buffers[0], 0, nbytes).view(NUMPY[out])
    for buffer in buffers:
        runtime.free(buffer)
    return found
