"""The docstrings of in-place methods, whose functions have long ones of their own."""

from __future__ import annotations

# A tensor, what the method is given, and what the tensor holds then.
_EXAMPLES = {
    "abs": ("ut.tensor([-1.5, 2.0])", "", "tensor([1.5000, 2.0000])"),
    "acos": ("ut.tensor([1.0, 0.0])", "", "tensor([0.0000, 1.5708])"),
    "acosh": ("ut.tensor([1.0, 2.0])", "", "tensor([0.0000, 1.3170])"),
    "add": ("ut.tensor([1.0, 2.0])", "ut.tensor([10.0, 20.0]), alpha=0.5", "tensor([ 6., 12.])"),
    "addbmm": ("ut.zeros(1, 2)", "ut.ones(3, 1, 4), ut.ones(3, 4, 2)", "tensor([[12., 12.]])"),
    "addcdiv": (
        "ut.tensor([1.0, 1.0])",
        "ut.tensor([1.0, 2.0]), ut.tensor([2.0, 4.0]), value=-1",
        "tensor([0.5000, 0.5000])",
    ),
    "addcmul": (
        "ut.tensor([1.0, 1.0])",
        "ut.tensor([1.0, 2.0]), ut.tensor([3.0, 4.0]), value=0.1",
        "tensor([1.3000, 1.8000])",
    ),
    "addmm": (
        "ut.zeros(2, 2)",
        "ut.ones(2, 3), ut.ones(3, 2)",
        "tensor([[3., 3.],\n        [3., 3.]])",
    ),
    "addmv": ("ut.tensor([10.0, 20.0])", "ut.ones(2, 3), ut.ones(3)", "tensor([13., 23.])"),
    "addr": (
        "ut.zeros(2, 2)",
        "ut.tensor([1.0, 2.0]), ut.tensor([3.0, 4.0])",
        "tensor([[3., 4.],\n        [6., 8.]])",
    ),
    "asin": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 1.5708])"),
    "asinh": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 0.8814])"),
    "atan": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 0.7854])"),
    "atan2": ("ut.tensor([1.0, -1.0])", "ut.tensor([1.0, -1.0])", "tensor([ 0.7854, -2.3562])"),
    "atanh": ("ut.tensor([0.0, 0.5])", "", "tensor([0.0000, 0.5493])"),
    "baddbmm": (
        "ut.zeros(2, 1, 1)",
        "ut.ones(2, 1, 3), ut.ones(2, 3, 1)",
        "tensor([[[3.]],\n\n        [[3.]]])",
    ),
    "bitwise_and": ("ut.tensor([5, 6])", "3", "tensor([1, 2])"),
    "bitwise_left_shift": ("ut.tensor([1, 5])", "2", "tensor([ 4, 20])"),
    "bitwise_not": ("ut.tensor([0, 5])", "", "tensor([-1, -6])"),
    "bitwise_or": ("ut.tensor([5, 6])", "3", "tensor([7, 7])"),
    "bitwise_right_shift": ("ut.tensor([20, -8])", "2", "tensor([ 5, -2])"),
    "bitwise_xor": ("ut.tensor([5, 6])", "3", "tensor([6, 5])"),
    "ceil": ("ut.tensor([1.2, -1.7])", "", "tensor([ 2., -1.])"),
    "clamp": ("ut.tensor([-2.0, 0.5, 3.0])", "0, 1", "tensor([0.0000, 0.5000, 1.0000])"),
    "clamp_max": ("ut.tensor([-2.0, 0.5, 3.0])", "1", "tensor([-2.0000,  0.5000,  1.0000])"),
    "clamp_min": ("ut.tensor([-2.0, 0.5, 3.0])", "0", "tensor([0.0000, 0.5000, 3.0000])"),
    "conj_physical": ("ut.tensor([1 + 2j])", "", "tensor([1.-2.j])"),
    "copysign": ("ut.tensor([1.0, -2.0])", "ut.tensor([-0.0, 3.0])", "tensor([-1.,  2.])"),
    "cos": ("ut.tensor([0.0, 1.0])", "", "tensor([1.0000, 0.5403])"),
    "cosh": ("ut.tensor([0.0, 1.0])", "", "tensor([1.0000, 1.5431])"),
    "cumprod": ("ut.tensor([1, 2, 3, 4])", "0", "tensor([ 1,  2,  6, 24])"),
    "cumsum": ("ut.tensor([1, 2, 3, 4])", "0", "tensor([ 1,  3,  6, 10])"),
    "deg2rad": ("ut.tensor([180.0, 90.0])", "", "tensor([3.1416, 1.5708])"),
    "digamma": ("ut.tensor([1.0, 2.0])", "", "tensor([-0.5772,  0.4228])"),
    "div": ("ut.tensor([7.0, -7.0])", "2, rounding_mode='floor'", "tensor([ 3., -4.])"),
    "eq": ("ut.tensor([1.0, 2.0, 3.0])", "2", "tensor([0., 1., 0.])"),
    "erf": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 0.8427])"),
    "erfc": ("ut.tensor([0.0, 1.0])", "", "tensor([1.0000, 0.1573])"),
    "erfinv": ("ut.tensor([0.0, 0.5])", "", "tensor([0.0000, 0.4769])"),
    "exp": ("ut.tensor([0.0, 1.0])", "", "tensor([1.0000, 2.7183])"),
    "exp2": ("ut.tensor([0.0, 3.0])", "", "tensor([1., 8.])"),
    "expm1": ("ut.tensor([0.0, 1e-8])", "", "tensor([0.0000e+00, 1.0000e-08])"),
    "float_power": (
        "ut.tensor([2.0, 3.0], dtype=ut.float64)",
        "2",
        "tensor([4., 9.], dtype=undertow.float64)",
    ),
    "floor": ("ut.tensor([1.7, -1.2])", "", "tensor([ 1., -2.])"),
    "floor_divide": ("ut.tensor([7, -7])", "2", "tensor([ 3, -4])"),
    "fmod": ("ut.tensor([7.0, -7.0])", "3", "tensor([ 1., -1.])"),
    "frac": ("ut.tensor([1.25, -1.25])", "", "tensor([ 0.2500, -0.2500])"),
    "gcd": ("ut.tensor([12, 18])", "ut.tensor([8, 27])", "tensor([4, 9])"),
    "ge": ("ut.tensor([1.0, 2.0, 3.0])", "2", "tensor([0., 1., 1.])"),
    "gt": ("ut.tensor([1.0, 2.0, 3.0])", "2", "tensor([0., 0., 1.])"),
    "heaviside": (
        "ut.tensor([-1.0, 0.0, 2.0])",
        "ut.tensor(0.5)",
        "tensor([0.0000, 0.5000, 1.0000])",
    ),
    "hypot": ("ut.tensor([3.0, 5.0])", "ut.tensor([4.0, 12.0])", "tensor([ 5., 13.])"),
    "i0": ("ut.tensor([0.0, 1.0])", "", "tensor([1.0000, 1.2661])"),
    "igamma": ("ut.tensor([1.0, 2.0])", "ut.tensor([1.0, 1.0])", "tensor([0.6321, 0.2642])"),
    "igammac": ("ut.tensor([1.0, 2.0])", "ut.tensor([1.0, 1.0])", "tensor([0.3679, 0.7358])"),
    "index_add": (
        "ut.zeros(3)",
        "0, ut.tensor([0, 0, 2]), ut.tensor([1.0, 2.0, 3.0])",
        "tensor([3., 0., 3.])",
    ),
    "index_copy": (
        "ut.zeros(3)",
        "0, ut.tensor([2, 0]), ut.tensor([1.0, 2.0])",
        "tensor([2., 0., 1.])",
    ),
    "index_fill": ("ut.zeros(3)", "0, ut.tensor([0, 2]), 7", "tensor([7., 0., 7.])"),
    "index_put": (
        "ut.zeros(3)",
        "(ut.tensor([0, 2]),), ut.tensor([1.0, 2.0])",
        "tensor([1., 0., 2.])",
    ),
    "index_reduce": (
        "ut.ones(2)",
        "0, ut.tensor([0, 0]), ut.tensor([2.0, 3.0]), 'prod'",
        "tensor([6., 1.])",
    ),
    "lcm": ("ut.tensor([4, 6])", "ut.tensor([6, 9])", "tensor([12, 18])"),
    "ldexp": ("ut.tensor([1.0, 3.0])", "ut.tensor([2, -1])", "tensor([4.0000, 1.5000])"),
    "le": ("ut.tensor([1.0, 2.0, 3.0])", "2", "tensor([1., 1., 0.])"),
    "lerp": (
        "ut.tensor([0.0, 10.0])",
        "ut.tensor([10.0, 20.0]), 0.25",
        "tensor([ 2.5000, 12.5000])",
    ),
    "lgamma": ("ut.tensor([1.0, 5.0])", "", "tensor([0.0000, 3.1781])"),
    "log": ("ut.tensor([1.0, 10.0])", "", "tensor([0.0000, 2.3026])"),
    "log10": ("ut.tensor([1.0, 1000.0])", "", "tensor([0.0000, 3.0000])"),
    "log1p": ("ut.tensor([0.0, 1e-8])", "", "tensor([0.0000e+00, 1.0000e-08])"),
    "log2": ("ut.tensor([1.0, 8.0])", "", "tensor([0., 3.])"),
    "logical_and": ("ut.tensor([0, 1, 2])", "ut.tensor([True, True, False])", "tensor([0, 1, 0])"),
    "logical_not": ("ut.tensor([0.0, 1.5])", "", "tensor([1., 0.])"),
    "logical_or": ("ut.tensor([0, 0, 2])", "ut.tensor([False, True, False])", "tensor([0, 1, 1])"),
    "logical_xor": ("ut.tensor([0, 1, 2])", "ut.tensor([True, True, False])", "tensor([1, 0, 1])"),
    "logit": ("ut.tensor([0.5, 0.9])", "", "tensor([0.0000, 2.1972])"),
    "lt": ("ut.tensor([1.0, 2.0, 3.0])", "2", "tensor([1., 0., 0.])"),
    "masked_fill": (
        "ut.tensor([1.0, -2.0, 3.0])",
        "ut.tensor([False, True, False]), 0",
        "tensor([1., 0., 3.])",
    ),
    "masked_scatter": (
        "ut.zeros(3)",
        "ut.tensor([True, False, True]), ut.tensor([1.0, 2.0])",
        "tensor([1., 0., 2.])",
    ),
    "mul": ("ut.tensor([1.0, 2.0])", "10", "tensor([10., 20.])"),
    "mvlgamma": ("ut.tensor([2.0, 3.0])", "2", "tensor([0.4516, 1.5502])"),
    "nan_to_num": ('ut.tensor([float("nan"), 1.0])', "", "tensor([0., 1.])"),
    "ne": ("ut.tensor([1.0, 2.0, 3.0])", "2", "tensor([1., 0., 1.])"),
    "neg": ("ut.tensor([1.0, -2.0])", "", "tensor([-1.,  2.])"),
    "nextafter": ("ut.tensor([0.0])", "ut.tensor([1.0])", "tensor([1.4013e-45])"),
    "polygamma": ("ut.tensor([1.0, 2.0])", "1", "tensor([1.6449, 0.6449])"),
    "pow": ("ut.tensor([2.0, 3.0])", "2", "tensor([4., 9.])"),
    "put": (
        "ut.zeros(2, 2)",
        "ut.tensor([0, 3]), ut.tensor([9.0, 8.0])",
        "tensor([[9., 0.],\n        [0., 8.]])",
    ),
    "rad2deg": ("ut.tensor([0.0, 3.14159265])", "", "tensor([  0., 180.])"),
    "reciprocal": ("ut.tensor([2.0, 4.0])", "", "tensor([0.5000, 0.2500])"),
    "remainder": ("ut.tensor([7.0, -7.0])", "3", "tensor([1., 2.])"),
    "renorm": (
        "ut.tensor([[3.0, 4.0], [0.3, 0.4]])",
        "2, 0, 1.0",
        "tensor([[0.6000, 0.8000],\n        [0.3000, 0.4000]])",
    ),
    "round": ("ut.tensor([1.5, 2.5, -0.4])", "", "tensor([2., 2., -0.])"),
    "rsqrt": ("ut.tensor([4.0, 16.0])", "", "tensor([0.5000, 0.2500])"),
    "scatter": (
        "ut.zeros(2, 3)",
        "1, ut.tensor([[2], [0]]), 1.0",
        "tensor([[0., 0., 1.],\n        [1., 0., 0.]])",
    ),
    "scatter_add": (
        "ut.zeros(3)",
        "0, ut.tensor([0, 0, 2]), ut.tensor([1.0, 2.0, 5.0])",
        "tensor([3., 0., 5.])",
    ),
    "scatter_reduce": (
        "ut.zeros(3)",
        "0, ut.tensor([0, 0, 1]), ut.tensor([1.0, 5.0, 2.0]), 'amax'",
        "tensor([5., 2., 0.])",
    ),
    "sgn": ("ut.tensor([-3.0, 0.0, 5.0])", "", "tensor([-1.,  0.,  1.])"),
    "sigmoid": ("ut.tensor([0.0, 2.0])", "", "tensor([0.5000, 0.8808])"),
    "sign": ("ut.tensor([-3.0, 0.0, 5.0])", "", "tensor([-1.,  0.,  1.])"),
    "sin": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 0.8415])"),
    "sinc": ("ut.tensor([0.0, 0.5])", "", "tensor([1.0000, 0.6366])"),
    "sinh": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 1.1752])"),
    "sqrt": ("ut.tensor([4.0, 9.0])", "", "tensor([2., 3.])"),
    "square": ("ut.tensor([2.0, -3.0])", "", "tensor([4., 9.])"),
    "sub": ("ut.tensor([5.0, 6.0])", "ut.tensor([1.0, 2.0]), alpha=2", "tensor([3., 2.])"),
    "tan": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 1.5574])"),
    "tanh": ("ut.tensor([0.0, 1.0])", "", "tensor([0.0000, 0.7616])"),
    "tril": ("ut.ones(2, 2)", "", "tensor([[1., 0.],\n        [1., 1.]])"),
    "triu": ("ut.ones(2, 2)", "", "tensor([[1., 1.],\n        [0., 1.]])"),
    "true_divide": ("ut.tensor([1.0, 2.0])", "2", "tensor([0.5000, 1.0000])"),
    "trunc": ("ut.tensor([1.7, -1.7])", "", "tensor([ 1., -1.])"),
    "xlogy": ("ut.tensor([0.0, 2.0])", "ut.tensor([0.0, 2.0])", "tensor([0.0000, 1.3863])"),
}


def describe(name: str) -> str:
    """What the method `name_` does, and a run that shows its tensor afterwards."""
    base = name.removesuffix("_")
    summary = f"In-place form of `{base}`; returns the tensor itself."
    if base not in _EXAMPLES:
        return summary
    tensor, given, after = _EXAMPLES[base]
    shown = after.replace("\n\n", "\n<BLANKLINE>\n").replace("\n", "\n    ")
    return f"""{summary}

    >>> import undertow as ut
    >>> x = {tensor}
    >>> x.{base}_({given}) is x
    True
    >>> x
    {shown}
    """
