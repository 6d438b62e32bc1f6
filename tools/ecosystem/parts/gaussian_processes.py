"""gpytorch and linear_operator: Gaussian processes, their marginal likelihoods and predictions."""

from __future__ import annotations

from typing import Any

import torch
from part import Numbers, compare, fill, normal, part, uniform


def regression(kernel: Any, *, likelihood: Any = None) -> Numbers:
    """The marginal likelihood of an exact process with its gradients, and what it predicts."""
    import gpytorch

    class Process(gpytorch.models.ExactGP):
        def __init__(self, x: Any, y: Any, likelihood: Any) -> None:
            super().__init__(x, y, likelihood)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = kernel

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    x = uniform(20, 2, grad=False)
    y = torch.sin(6 * x[:, 0]) + x[:, 1]
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = fill(Process(x, y, likelihood))
    model.train()
    marginal = gpytorch.mlls.ExactMarginalLogLikelihood(likelihood, model)
    found = compare(lambda: marginal(model(x), y), parameters=model.named_parameters())
    model.eval()
    likelihood.eval()
    at = uniform(5, 2, seed=1)

    def predict(at: Any) -> list[Any]:
        said = likelihood(model(at))
        return [said.mean, said.variance]

    found |= {f"predicted {k}": v for k, v in compare(predict, at).items()}
    return found


@part("exact RBF", quick=True)
def exact_rbf() -> Numbers:
    import gpytorch

    return regression(gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel(ard_num_dims=2)))


@part("exact Matern and linear")
def exact_matern() -> Numbers:
    import gpytorch

    kernels = gpytorch.kernels
    return regression(kernels.ScaleKernel(kernels.MaternKernel(nu=2.5)) + kernels.LinearKernel())


@part("exact periodic times RBF")
def exact_periodic() -> Numbers:
    import gpytorch

    return regression(gpytorch.kernels.PeriodicKernel() * gpytorch.kernels.RBFKernel())


@part("variational")
def variational() -> Numbers:
    import gpytorch

    class Process(gpytorch.models.ApproximateGP):
        def __init__(self, inducing: Any) -> None:
            chosen = gpytorch.variational.CholeskyVariationalDistribution(inducing.size(0))
            strategy = gpytorch.variational.VariationalStrategy(self, inducing, chosen)
            super().__init__(strategy)
            self.mean_module = gpytorch.means.ConstantMean()
            self.covar_module = gpytorch.kernels.ScaleKernel(gpytorch.kernels.RBFKernel())

        def forward(self, x: Any) -> Any:
            return gpytorch.distributions.MultivariateNormal(
                self.mean_module(x), self.covar_module(x)
            )

    x = uniform(20, 2, grad=False)
    y = torch.sin(6 * x[:, 0])
    likelihood = gpytorch.likelihoods.GaussianLikelihood()
    model = fill(Process(uniform(6, 2, seed=2, grad=False)))
    with torch.no_grad():  # the factor of a covariance
        for name, p in model.named_parameters():
            if name.endswith("chol_variational_covar"):
                p.copy_(torch.eye(6) + 0.1 * torch.tril(p))
    model.variational_strategy.variational_params_initialized.fill_(1)
    model.train()
    bound = gpytorch.mlls.VariationalELBO(likelihood, model, num_data=20)
    return compare(lambda: bound(model(x), y), parameters=model.named_parameters())


@part("linear operators", quick=True)
def linear_operators() -> Numbers:
    from linear_operator import to_linear_operator
    from linear_operator.operators import DiagLinearOperator, KroneckerProductLinearOperator

    a, b = normal(3, 3), normal(4, 4, seed=1)

    def run(a: Any, b: Any, d: Any, v: Any) -> list[Any]:
        left, right = a @ a.mT + torch.eye(3), b @ b.mT + torch.eye(4)
        both = KroneckerProductLinearOperator(to_linear_operator(left), to_linear_operator(right))
        sum_ = both + DiagLinearOperator(d.exp())
        quadratic, logdet = sum_.inv_quad_logdet(v, logdet=True)
        return [both.to_dense(), sum_ @ v, sum_.solve(v), quadratic, logdet, sum_.diagonal()]

    return compare(run, a, b, normal(12, seed=2), normal(12, 2, seed=3))
