"""Hooks that average gradients: as they are, or with fewer bits on the way."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ....core.tensor import Tensor
from ....dtypes import DType, bfloat16, float16
from ... import groups
from ...reducer import GradBucket, average
from ...work import Future


def allreduce_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Average the gradients, as without a hook."""
    group = groups.resolved("allreduce_hook", process_group)
    work = average(bucket.buffer(), group, 0, f"bucket {bucket.index()}")
    return _first(work.get_future())


def fp16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Average the gradients as float16."""
    return _compressed(float16, process_group, bucket)


def bf16_compress_hook(process_group: Any, bucket: GradBucket) -> Future:
    """Average the gradients as bfloat16."""
    return _compressed(bfloat16, process_group, bucket)


def fp16_compress_wrapper(hook: Callable[[Any, GradBucket], Future]) -> Any:
    """A hook that works on float16 gradients, for any."""
    return _wrapped(float16, hook)


def bf16_compress_wrapper(hook: Callable[[Any, GradBucket], Future]) -> Any:
    """A hook that works on bfloat16 gradients, for any."""
    return _wrapped(bfloat16, hook)


def _first(future: Future) -> Future:
    return future.then(lambda f: f.value()[0])


def _compressed(dtype: DType, process_group: Any, bucket: GradBucket) -> Future:
    return _wrapped(dtype, allreduce_hook)(process_group, bucket)


def _wrapped(dtype: DType, hook: Callable[[Any, GradBucket], Future]) -> Any:
    def compress(state: Any, bucket: GradBucket) -> Future:
        buffer = bucket.buffer()
        bucket.set_buffer(buffer.to(dtype))

        def back(future: Future) -> Tensor:
            found: Tensor = future.value()
            return found.to(buffer.dtype)

        return hook(state, bucket).then(back)

    return compress
