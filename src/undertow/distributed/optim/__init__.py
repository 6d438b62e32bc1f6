"""Optimisers whose state is spread over processes."""

from .zero_redundancy_optimizer import ZeroRedundancyOptimizer as ZeroRedundancyOptimizer

__all__ = ["ZeroRedundancyOptimizer"]
