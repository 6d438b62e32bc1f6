"""normflows: flows, their densities and inverses."""

from __future__ import annotations

from typing import Any

from part import Numbers, compare, fill, normal, part


def densities(flows: Any, size: int = 2) -> Numbers:
    """The log density of points under a flow, and where the flow sends points."""
    import normflows as nf

    model = fill(nf.NormalizingFlow(nf.distributions.DiagGaussian(size, trainable=False), flows))
    model.eval()

    def run(x: Any, z: Any) -> list[Any]:
        return [model.log_prob(x), *model.forward_and_log_det(z)]

    return compare(
        run, normal(6, size), normal(6, size, seed=1), parameters=model.named_parameters()
    )


@part("RealNVP", quick=True)
def real_nvp() -> Numbers:
    import normflows as nf

    flows: list[Any] = []
    for _ in range(3):
        flows += [nf.flows.AffineCouplingBlock(nf.nets.MLP([1, 8, 2], init_zeros=True))]
        flows += [nf.flows.Permute(2, mode="swap")]
    return densities(flows)


@part("neural splines", quick=True)
def neural_splines() -> Numbers:
    import normflows as nf

    flows: list[Any] = []
    for _ in range(2):
        flows += [nf.flows.CoupledRationalQuadraticSpline(4, 2, 8), nf.flows.LULinearPermute(4)]
    return densities(flows, 4)


@part("autoregressive splines")
def autoregressive() -> Numbers:
    import normflows as nf

    return densities([nf.flows.AutoregressiveRationalQuadraticSpline(3, 1, 8)], 3)


@part("masked affine autoregressive")
def masked_autoregressive() -> Numbers:
    import normflows as nf

    return densities([nf.flows.MaskedAffineAutoregressive(3, 8, num_blocks=1)], 3)


@part("residual flow")
def residual() -> Numbers:
    import normflows as nf

    net = nf.nets.LipschitzMLP([2, 8, 2], init_zeros=True, lipschitz_const=0.9)
    flow = fill(nf.flows.Residual(net, reduce_memory=False)).eval()
    return compare(lambda x: flow.inverse(x)[0], normal(6, 2), parameters=flow.named_parameters())


@part("Glow")
def glow() -> Numbers:
    import normflows as nf

    flow = fill(nf.flows.GlowBlock(4, 8, split_mode="channel", scale=True)).eval()
    return compare(lambda x: flow(x), normal(2, 4, 4, 4), parameters=flow.named_parameters())
