"""A device for the tests of this folder."""

from __future__ import annotations

from typing import Any

import pytest

import undertow as ut


@pytest.fixture(scope="module")
def runtime() -> Any:
    """The first WebGPU adapter, or a skipped test."""
    pytest.importorskip("wgpu")
    if not ut.webgpu.is_available():
        pytest.skip("there is no WebGPU adapter here")
    from undertow.backends.webgpu.runtime import WebGpuRuntime

    return WebGpuRuntime(0)
