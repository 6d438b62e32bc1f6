"""Gradients through complex numbers, beyond the table: the convention, errors, parts in place."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import undertow as ut
from undertow.autograd.check import GradcheckError
from undertow.errors import GradientError


def complexes(*shape: int, seed: int = 0) -> ut.Tensor:
    random = np.random.default_rng(seed)
    values = random.standard_normal(shape) + 1j * random.standard_normal(shape)
    return ut.tensor(values, requires_grad=True)


def check(function: Any, *inputs: ut.Tensor) -> None:
    """First and second derivatives, both ways."""
    assert ut.autograd.gradcheck(function, inputs, check_forward_ad=True)
    assert ut.autograd.gradgradcheck(function, inputs, fast_mode=True)


def test_the_gradient_descends() -> None:
    """It is dL/dx + i dL/dy: of |z - 1j| squared, twice z - 1j."""
    z = complexes(3)
    ((z - 1j).abs() ** 2).sum().backward()
    np.testing.assert_allclose(z.grad.numpy(), 2 * (z.detach().numpy() - 1j))
    for _ in range(50):
        (gradient,) = ut.autograd.grad(((z - 1j).abs() ** 2).sum(), z)
        z = (z - 0.1 * gradient).detach().requires_grad_()
    np.testing.assert_allclose(z.detach().numpy(), np.full(3, 1j), atol=1e-4)


def test_holomorphic_functions_get_the_conjugate_slope() -> None:
    z = complexes(4)
    seed = complexes(4, seed=1).detach()
    (found,) = ut.autograd.grad(z.exp() * z, z, seed)
    value = z.detach().numpy()
    np.testing.assert_allclose(found.numpy(), seed.numpy() * np.conj(np.exp(value) * (value + 1)))


def test_a_real_operand_gets_a_real_gradient() -> None:
    x = ut.tensor([1.0, -2.0], requires_grad=True)
    z = complexes(3, 2)
    out = x * z + x**1j + ut.complex(x, x)
    out.backward(ut.ones(3, 2, dtype=ut.complex128))
    assert (x.grad.dtype, x.grad.shape) == (ut.float32, (2,))
    assert (z.grad.dtype, z.grad.shape) == (ut.complex128, (3, 2))


def test_casts_drop_and_add_imaginary_parts() -> None:
    x = ut.tensor([1.0, 2.0], dtype=ut.float64, requires_grad=True)
    z = complexes(2)
    check(lambda x: x.to(ut.complex128) * 1j, x)
    check(lambda z: ut.view_as_real(z)[..., 0] * z.real, z)
    (gradient,) = ut.autograd.grad(z.to(ut.complex64).abs().sum(), z)
    assert gradient.dtype is ut.complex128


def test_seeds_have_the_kind_of_the_output() -> None:
    z = complexes(1)
    message = "only for real scalar outputs but got complex128"
    with pytest.raises(GradientError, match=message):
        (z * z).backward()
    with pytest.raises(GradientError, match=message):
        ut.autograd.grad(z.sum(), z)
    with pytest.raises(GradientError, match=r"float64.*complex128"):
        (z * z).backward(ut.ones(1, dtype=ut.float64))
    with pytest.raises(GradientError, match=r"complex128.*float64"):
        z.abs().backward(ut.ones(1, dtype=ut.complex128))
    with pytest.raises(GradientError, match=r"floating and complex.*int64"):
        ut.ones(1, dtype=ut.int64).requires_grad_()


def test_parts_change_in_place() -> None:
    def through_parts(z: ut.Tensor, x: ut.Tensor) -> ut.Tensor:
        y = z * 1
        y.real.mul_(x)
        y.imag[0] = 3 * x[1]
        return y * y

    def through_pairs(x: ut.Tensor, z: ut.Tensor) -> ut.Tensor:
        y = x * 1
        ut.view_as_complex(y).mul_(z)
        return y * y

    x = ut.tensor([0.5, -1.0, 2.0], dtype=ut.float64, requires_grad=True)
    pairs = ut.tensor([[0.5, -1.0], [2.0, 1.0]], dtype=ut.float64, requires_grad=True)
    check(through_parts, complexes(3), x)
    check(through_pairs, pairs, complexes(2))


def test_writing_and_reading_rows() -> None:
    """What torch has no complex derivative of."""
    check(lambda a, b: ut.select_scatter(a, b, 0, 1) ** 2, complexes(2, 3), complexes(3, seed=1))
    rows = ut.tensor([0, 2, 0])
    check(lambda w: ut.nn.functional.embedding(rows, w) ** 2, complexes(3, 2))


def test_zero_has_no_direction() -> None:
    """abs, sgn and angle have the derivative zero there, as in torch."""
    for function in (ut.abs, ut.angle, lambda z: ut.sgn(z).real, lambda z: (z**0).real):
        z = ut.zeros(2, dtype=ut.complex128, requires_grad=True)
        function(z).sum().backward()  # type: ignore[operator]
        assert z.grad is not None
        np.testing.assert_array_equal(z.grad.numpy(), np.zeros(2))


def test_polar_of_negative_sizes() -> None:
    """The slope is that of size * exp(1j * angle) on either side of zero."""
    size = ut.tensor([-1.5, 2.0, -0.3, 0.0], dtype=ut.float64, requires_grad=True)
    angle = ut.tensor([0.3, 1.0, -2.0, 0.5], dtype=ut.float64, requires_grad=True)
    assert ut.autograd.gradcheck(ut.polar, (size, angle))
    assert ut.autograd.gradgradcheck(ut.polar, (size, angle))


def test_custom_functions_and_hooks() -> None:
    class Square(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: ut.Tensor) -> ut.Tensor:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> ut.Tensor:
            (z,) = ctx.saved_tensors
            return g * 2 * z.conj()

    z = complexes(3)
    check(Square.apply, z)
    out = z * 1
    out.register_hook(lambda g: g * 1j)
    out.sum().backward(ut.tensor(1.0 + 0j, dtype=ut.complex128))
    np.testing.assert_allclose(z.grad.numpy(), np.full(3, 1j))


def test_gradcheck_finds_a_forgotten_conjugate() -> None:
    class Wrong(ut.autograd.Function):
        @staticmethod
        def forward(ctx: Any, z: ut.Tensor) -> ut.Tensor:
            ctx.save_for_backward(z)
            return z * z

        @staticmethod
        def backward(ctx: Any, g: ut.Tensor) -> ut.Tensor:
            (z,) = ctx.saved_tensors
            return g * 2 * z

    with pytest.raises(GradcheckError, match=r"\.imag"):
        ut.autograd.gradcheck(Wrong.apply, complexes(2))


def test_gradients_of_complex_products_are_the_same_by_both_ways() -> None:
    """Bare rules and rules as written (create_graph) conjugate alike."""
    a, b = complexes(3, 4), complexes(4, 2, seed=1)
    seed = complexes(3, 2, seed=2).detach()
    plain = ut.autograd.grad(a @ b, (a, b), seed)
    recorded = ut.autograd.grad(a @ b, (a, b), seed, create_graph=True)
    left, right, g = a.detach().numpy(), b.detach().numpy(), seed.numpy()
    expected = (g @ right.conj().T, left.conj().T @ g)
    for p, r, e in zip(plain, recorded, expected, strict=True):
        np.testing.assert_allclose(p.numpy(), e)
        np.testing.assert_allclose(r.detach().numpy(), e)


if __name__ == "__main__":
    raise SystemExit(pytest.main([__file__, "-q"]))


def test_a_part_can_be_set_to_a_number() -> None:
    x = ut.tensor([1 + 2j, 3 + 4j])
    x.real = 0
    x.imag = 0.5
    assert x.tolist() == [0.5j, 0.5j]


def test_logarithms_of_zero_add_up() -> None:
    """Whatever the angles of the zeros are; it was NaN."""
    zero, other = complex(-math.inf, 0.0), complex(-math.inf, 2.0)
    found = ut.logaddexp(ut.tensor([zero]), ut.tensor([other]))
    assert found.real.tolist() == [-math.inf]
    total = ut.tensor([zero, other, 1 + 1j]).logcumsumexp(0)
    assert total.real.tolist() == [-math.inf, -math.inf, 1.0]
    assert total[2].item() == 1 + 1j


def test_far_logarithms_have_all_or_nothing() -> None:
    """The smaller one's share is zero, whether the rule is traced or runs as written."""
    a = ut.tensor([1 + 2j, 1e4 + 1j], dtype=ut.complex128, requires_grad=True)
    b = ut.tensor([1e4 + 0j, 2 + 3j], dtype=ut.complex128, requires_grad=True)
    for create_graph in (False, True):
        out = a.logaddexp(b)
        seed = ut.ones_like(out)
        shares = ut.autograd.grad(out, (a, b), seed, create_graph=create_graph)
        assert [s.tolist() for s in shares] == [[0, 1], [1, 0]]


def test_pairs_in_a_dimension_of_size_one() -> None:
    """The stride of a single element says nothing about where elements are."""
    x = ut.arange(6.0).reshape(3, 2, 1).transpose(1, 2)
    assert x.stride() == (2, 1, 1)
    assert ut.view_as_complex(x).tolist() == [[1j], [2 + 3j], [4 + 5j]]


def test_masked_variance_is_that_of_distances() -> None:
    x = np.array([1 + 2j, 3 - 1j, 0.5 + 1j, 9.0])
    mask = ut.tensor([True, True, True, False])
    for name in ("var", "std"):
        found = getattr(ut.masked, name)(ut.tensor(x), 0, mask=mask)
        assert found.dtype == ut.complex128
        np.testing.assert_allclose(found.numpy(), getattr(np, name)(x[:3], ddof=1))


def test_each_part_has_its_own_replacement() -> None:
    """`nan_to_num` of complex numbers: also their slopes, which torch does not have."""
    x = ut.tensor([complex(np.nan, 2), complex(3, -np.inf), 1 - 1j], dtype=ut.complex128)
    x.requires_grad_()
    found = ut.nan_to_num(x, 5.0, neginf=-7.0)
    assert found.tolist() == [5 + 2j, 3 - 7j, 1 - 1j]
    (found.real + 2 * found.imag).sum().backward()
    assert x.grad.tolist() == [2j, 1, 1 + 2j]
