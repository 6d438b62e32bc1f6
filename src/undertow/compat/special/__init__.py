"""Special functions: torch's `special`, published by `undertow.ops`."""

from ...core.register import FUNCTIONS as _functions
from ...core.register import SPACES as _spaces
from ...ops.elementwise import bessel as _bessel  # noqa: F401
from ...ops.elementwise import normal as _normal  # noqa: F401
from ...ops.elementwise import orthogonal_polynomials as _polynomials  # noqa: F401

# Functions that stand at the top too, the first under the same name.
_names = """
digamma erf erfc erfinv exp2 expm1 i0 log1p log_softmax logit logsumexp polygamma round sinc softmax
xlogy psi=digamma expit=sigmoid gammaln=lgamma gammainc=igamma gammaincc=igammac
modified_bessel_i0=i0 multigammaln=mvlgamma
"""
_spaces["special"] |= {
    here: _functions[there or here]
    for here, _, there in (name.partition("=") for name in _names.split())
}
_spaces["special"]["modified_bessel_i1"] = _spaces["special"]["i1"]
globals().update(_spaces["special"])
__all__ = sorted(_spaces["special"])
