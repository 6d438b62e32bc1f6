"""The table of distributions: for each class, parameters, and values to ask about.

`test_distributions.py` draws from them, `conformance/test_torch_distributions.py` holds them beside
torch's.
"""

from __future__ import annotations

from typing import Any

import numpy as np


def spd(n: int, seed: int = 0) -> Any:
    """A positive definite matrix."""
    a = np.random.default_rng(seed).normal(size=(n, n))
    return a @ a.T + n * np.eye(n)


R = np.random.default_rng(3)
PROBS = np.array([[0.2, 0.3, 0.5], [0.6, 0.3, 0.1]])
CHOL = np.linalg.cholesky(spd(3))
SIMPLEX = np.array([[0.2, 0.3, 0.5], [0.5, 0.25, 0.25]])
# name: (parameters, a value)
TABLE: dict[str, list[tuple[dict[str, Any], Any]]] = {
    "Bernoulli": [
        ({"probs": np.array([0.2, 0.7])}, np.array([1.0, 0.0])),
        ({"logits": np.array([-0.5, 2.0])}, np.array([1.0, 1.0])),
    ],
    "Beta": [
        (
            {"concentration1": np.array([0.6, 2.5]), "concentration0": np.array([1.7, 3.0])},
            np.array([0.3, 0.8]),
        )
    ],
    "Binomial": [
        ({"total_count": 5, "probs": np.array([0.2, 0.7])}, np.array([1.0, 4.0])),
        ({"total_count": 5, "logits": np.array([0.2, -0.7])}, np.array([0.0, 5.0])),
    ],
    "Categorical": [
        ({"probs": PROBS}, np.array([0, 2])),
        ({"logits": np.log(PROBS) + 1}, np.array([1, 1])),
    ],
    "Cauchy": [
        ({"loc": np.array([0.0, 1.0]), "scale": np.array([1.0, 2.0])}, np.array([0.3, -2.0]))
    ],
    "Chi2": [({"df": np.array([1.5, 4.0])}, np.array([0.7, 2.0]))],
    "ContinuousBernoulli": [
        ({"probs": np.array([0.2, 0.4995])}, np.array([0.3, 0.6])),
        ({"logits": np.array([-0.5, 2.0])}, np.array([0.3, 0.6])),
    ],
    "Dirichlet": [({"concentration": np.array([[0.5, 1.5, 2.0], [3.0, 1.0, 2.5]])}, SIMPLEX)],
    "Exponential": [({"rate": np.array([0.5, 2.0])}, np.array([0.3, 2.0]))],
    "FisherSnedecor": [
        ({"df1": np.array([3.0, 5.0]), "df2": np.array([6.0, 5.0])}, np.array([0.3, 2.0]))
    ],
    "Gamma": [
        (
            {"concentration": np.array([0.6, 3.5]), "rate": np.array([1.0, 2.0])},
            np.array([0.3, 2.0]),
        )
    ],
    "GeneralizedPareto": [
        (
            {
                "loc": np.array([0.0, 1.0, 0.5]),
                "scale": np.array([1.0, 2.0, 1.5]),
                "concentration": np.array([0.3, -0.5, 0.1]),
            },
            np.array([0.7, 2.5, 0.9]),
        )
    ],
    "Geometric": [
        ({"probs": np.array([0.2, 0.7])}, np.array([3.0, 0.0])),
        ({"logits": np.array([0.2, -0.7])}, np.array([3.0, 0.0])),
    ],
    "Gumbel": [
        ({"loc": np.array([0.0, 1.0]), "scale": np.array([1.0, 2.0])}, np.array([0.3, -2.0]))
    ],
    "HalfCauchy": [({"scale": np.array([1.0, 2.0])}, np.array([0.3, 2.0]))],
    "HalfNormal": [({"scale": np.array([1.0, 2.0])}, np.array([0.3, 2.0]))],
    "InverseGamma": [
        (
            {"concentration": np.array([2.6, 3.5]), "rate": np.array([1.0, 2.0])},
            np.array([0.3, 2.0]),
        )
    ],
    "Kumaraswamy": [
        (
            {"concentration1": np.array([1.6, 2.5]), "concentration0": np.array([1.7, 3.0])},
            np.array([0.3, 0.8]),
        )
    ],
    "LKJCholesky": [
        (
            {"dim": 3, "concentration": np.array([0.8, 1.5])},
            np.array([[1.0, 0, 0], [0.6, 0.8, 0], [0.0, 0.6, 0.8]]),
        )
    ],
    "Laplace": [
        ({"loc": np.array([0.0, 1.0]), "scale": np.array([1.0, 2.0])}, np.array([0.3, -2.0]))
    ],
    "LogNormal": [
        ({"loc": np.array([0.0, 0.5]), "scale": np.array([0.5, 0.7])}, np.array([0.3, 2.0]))
    ],
    "LogisticNormal": [
        ({"loc": np.array([[0.0, 1.0]]), "scale": np.array([[0.5, 0.7]])}, SIMPLEX[:1])
    ],
    "LowRankMultivariateNormal": [
        (
            {
                "loc": np.array([0.0, 1.0, 2.0]),
                "cov_factor": R.normal(size=(3, 2)),
                "cov_diag": np.array([1.0, 2.0, 0.5]),
            },
            np.array([[0.3, 0.2, 0.1], [1.0, 2.0, 3.0]]),
        )
    ],
    "Multinomial": [
        ({"total_count": 4, "probs": PROBS}, np.array([[1.0, 1.0, 2.0], [0.0, 4.0, 0.0]])),
        ({"total_count": 4, "logits": np.log(PROBS)}, np.array([[1.0, 1.0, 2.0]])),
    ],
    "MultivariateNormal": [
        ({"loc": np.array([0.0, 1.0, 2.0]), "covariance_matrix": spd(3)}, np.array([0.3, 0.2, 1])),
        ({"loc": np.array([0.0, 1.0, 2.0]), "precision_matrix": spd(3)}, np.array([0.3, 0.2, 1])),
        ({"loc": np.zeros((2, 3)), "scale_tril": CHOL}, np.array([0.3, 0.2, 1.0])),
    ],
    "NegativeBinomial": [
        (
            {"total_count": np.array([2.0, 4.5]), "probs": np.array([0.2, 0.6])},
            np.array([1.0, 4.0]),
        ),
        (
            {"total_count": np.array([2.0, 4.5]), "logits": np.array([0.2, -0.6])},
            np.array([1.0, 4.0]),
        ),
    ],
    "Normal": [
        ({"loc": np.array([0.0, 1.0]), "scale": np.array([1.0, 2.0])}, np.array([0.3, -2.0]))
    ],
    "OneHotCategorical": [({"probs": PROBS}, np.array([[0.0, 1, 0], [1, 0, 0]]))],
    "OneHotCategoricalStraightThrough": [
        ({"logits": np.log(PROBS)}, np.array([[0.0, 1, 0], [1, 0, 0]]))
    ],
    "Pareto": [
        ({"scale": np.array([1.0, 2.0]), "alpha": np.array([2.5, 3.0])}, np.array([1.3, 2.5]))
    ],
    "Poisson": [({"rate": np.array([0.5, 4.0])}, np.array([0.0, 3.0]))],
    "RelaxedBernoulli": [
        ({"temperature": np.array(0.7), "probs": np.array([0.2, 0.6])}, np.array([0.3, 0.6]))
    ],
    "RelaxedOneHotCategorical": [({"temperature": np.array(0.7), "probs": PROBS}, SIMPLEX)],
    "StudentT": [
        (
            {"df": np.array([3.0, 5.0]), "loc": np.array([0.0, 1.0]), "scale": np.array([1.0, 2])},
            np.array([0.3, -2.0]),
        )
    ],
    "Uniform": [
        ({"low": np.array([0.0, -1.0]), "high": np.array([1.0, 2.0])}, np.array([0.3, 1.0]))
    ],
    "VonMises": [
        (
            {"loc": np.array([0.0, 1.0, 0.5]), "concentration": np.array([0.5, 4.0, 80.0])},
            np.array([0.3, -2.0, 0.4]),
        )
    ],
    "Weibull": [
        (
            {"scale": np.array([1.0, 2.0]), "concentration": np.array([1.5, 0.8])},
            np.array([0.3, 2.0]),
        )
    ],
    "Wishart": [
        ({"df": np.array([3.5, 5.0]), "covariance_matrix": spd(3)}, spd(3, 1)),
        ({"df": np.array(4.0), "scale_tril": CHOL}, spd(3, 1)),
    ],
}
CASES = [(name, params, value) for name, cases in TABLE.items() for params, value in cases]
IDS = [f"{name}-{'-'.join(params)}" for name, params, _ in CASES]


def made(lib: Any, name: str, params: dict[str, Any], grad: bool = False) -> tuple[Any, list[Any]]:
    """The distribution of a library, and the parameters of it that are tensors."""
    given = {}
    leaves = []
    for key, value in params.items():
        if isinstance(value, np.ndarray):
            given[key] = lib.tensor(value.astype(np.float64), dtype=lib.float64)
            if grad:
                given[key].requires_grad_()
                leaves.append(given[key])
        else:
            given[key] = value
    return getattr(lib.distributions, name)(**given), leaves
