"""pyro-ppl: log densities of traced models, the ELBO, and enumeration of a discrete variable."""

from __future__ import annotations

from typing import Any

import torch
from part import Numbers, compare, normal, part, uniform


@part("traced model", quick=True)
def traced_model() -> Numbers:
    import pyro.distributions as dist
    from pyro import plate, poutine, sample

    x, y = normal(10, 3, grad=False), normal(10, seed=1, grad=False)

    def model(weight: Any) -> None:
        scale = sample("scale", dist.LogNormal(0.0, 1.0))
        with plate("data", 10):
            sample("y", dist.Normal(x @ weight, scale), obs=y)

    def run(weight: Any, scale: Any) -> Any:
        fixed = poutine.condition(model, {"scale": scale.exp()})
        trace = poutine.trace(fixed).get_trace(weight)
        return trace.log_prob_sum()

    return compare(run, normal(3, seed=2), normal(seed=3))


@part("ELBO")
def elbo() -> Numbers:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import Trace_ELBO

    data = normal(8, grad=False)
    pyro.clear_param_store()

    def model() -> None:
        mean = pyro.sample("mean", dist.Normal(0.0, 2.0))
        with pyro.plate("data", 8):
            pyro.sample("x", dist.Normal(mean, 1.0), obs=data)

    def guide() -> None:
        loc = pyro.param("loc", torch.tensor(0.3))
        scale = pyro.param("scale", torch.tensor(0.7), constraint=dist.constraints.positive)
        pyro.sample("mean", dist.Delta(loc * scale))

    loss = Trace_ELBO().differentiable_loss(model, guide)
    parameters = dict(pyro.get_param_store().named_parameters())
    return compare(lambda: loss, parameters=parameters)


@part("enumeration")
def enumeration() -> Numbers:
    import pyro
    import pyro.distributions as dist
    from pyro.infer import TraceEnum_ELBO, config_enumerate

    data = normal(6, grad=False)
    pyro.clear_param_store()
    pyro.enable_validation(False)

    @config_enumerate
    def model() -> None:
        weights = pyro.param("weights", torch.tensor([0.2, -0.3, 0.5])).softmax(-1)
        means = pyro.param("means", torch.tensor([-1.0, 0.0, 1.0]))
        with pyro.plate("data", 6):
            k = pyro.sample("k", dist.Categorical(weights))
            pyro.sample("x", dist.Normal(means[k], 0.5), obs=data)

    loss = TraceEnum_ELBO(max_plate_nesting=1).differentiable_loss(model, lambda: None)
    parameters = dict(pyro.get_param_store().named_parameters())
    return compare(lambda: loss, parameters=parameters)


@part("distributions")
def distributions() -> Numbers:
    import pyro.distributions as dist

    def run(a: Any, b: Any) -> list[Any]:
        return [
            dist.AffineBeta(a, b, loc=-1.0, scale=2.0).log_prob(torch.tensor(0.3)),
            dist.VonMises3D(torch.stack([a[0], b[0], a[1]])).log_prob(
                torch.tensor([0.6, 0.0, 0.8])
            ),
            dist.Stable(1.5, 0.1).sample().detach() * 0 + a.sum(),
            dist.ZeroInflatedPoisson(rate=a, gate=b / 3).log_prob(torch.tensor([0.0, 2.0])),
            dist.MixtureOfDiagNormals(
                torch.stack([a, b]), torch.stack([b, a]), torch.zeros(2)
            ).log_prob(torch.tensor([0.1, 0.2])),
        ]

    return compare(run, uniform(2), uniform(2, seed=1))
