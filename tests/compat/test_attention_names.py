"""`nn.attention`: the choice of kernels, and causal masks that are not square."""

from __future__ import annotations

import numpy as np
import pytest

import undertow as ut
from undertow.nn.attention import SDPBackend, sdpa_kernel
from undertow.nn.attention.bias import CausalBias, causal_lower_right, causal_upper_left
from undertow.nn.functional import scaled_dot_product_attention


def test_a_choice_lasts_as_long_as_its_block() -> None:
    flags = ut.backends.cuda
    with sdpa_kernel(SDPBackend.MATH):
        assert flags.math_sdp_enabled()
        assert not flags.flash_sdp_enabled()
        with sdpa_kernel([SDPBackend.FLASH_ATTENTION, SDPBackend.CUDNN_ATTENTION]):
            assert flags.cudnn_sdp_enabled()
            assert not flags.math_sdp_enabled()
        assert flags.math_sdp_enabled()
        assert not flags.flash_sdp_enabled()
    assert flags.flash_sdp_enabled()
    assert flags.mem_efficient_sdp_enabled()
    with pytest.raises(ValueError, match="expects an SDPBackend"), sdpa_kernel("math"):  # type: ignore[arg-type]
        pass


@pytest.mark.parametrize(("queries", "keys"), [(3, 5), (4, 4), (1, 3)])
def test_causal_masks(queries: int, keys: int) -> None:
    q, k, v = ut.randn(2, queries, 4), ut.randn(2, keys, 4), ut.randn(2, keys, 3)
    upper, lower = causal_upper_left(queries, keys), causal_lower_right(queries, keys)
    assert isinstance(lower, CausalBias)
    assert lower.shape == (queries, keys)
    ut.testing.assert_close(
        scaled_dot_product_attention(q, k, v, upper),
        scaled_dot_product_attention(q, k, v, is_causal=True),
    )
    triangle = np.tri(queries, keys, keys - queries, dtype=bool)
    np.testing.assert_array_equal(lower.numpy(), triangle)
    ut.testing.assert_close(
        scaled_dot_product_attention(q, k, v, lower),
        scaled_dot_product_attention(q, k, v, ut.from_numpy(triangle)),
    )


def test_queries_that_see_nothing_are_told() -> None:
    with pytest.warns(UserWarning, match="first 2 of 5 queries"):
        causal_lower_right(5, 3)
    with pytest.raises(ValueError, match="lengths of queries and keys"):
        causal_lower_right(5)
