"""WebGPU: Vulkan, Metal or DX12 under the forms of `backends/generated`, through wgpu-native."""

from __future__ import annotations
