"""e3nn: networks whose outputs turn with their inputs."""

from __future__ import annotations

from typing import Any

from part import Numbers, compare, fill, normal, part, step


@part("spherical harmonics", quick=True)
def spherical_harmonics() -> Numbers:
    from e3nn import o3

    return compare(
        lambda x: o3.spherical_harmonics(
            [0, 1, 2, 3], x, normalize=True, normalization="component"
        ),
        normal(5, 3),
    )


@part("Wigner matrices")
def wigner() -> Numbers:
    from e3nn import o3

    def run(angles: Any) -> list[Any]:
        return [o3.wigner_D(2, *angles), o3.wigner_3j(1, 2, 1), o3.angles_to_matrix(*angles)]

    return compare(run, normal(3, 4))


@part("linear of irreps", quick=True)
def linear() -> Numbers:
    from e3nn import o3

    return step(o3.Linear("4x0e+2x1o", "3x0e+2x1o"), normal(5, 10))


@part("tensor product")
def tensor_product() -> Numbers:
    from e3nn import o3

    layer = o3.FullyConnectedTensorProduct("2x0e+2x1o", "1x0e+1x1o", "3x0e+2x1o+1x2e")
    return step(layer, normal(5, 8), normal(5, 4, seed=1))


@part("gate")
def gate() -> Numbers:
    import torch
    from e3nn.nn import Gate

    layer = Gate("2x0e", [torch.tanh], "2x0e", [torch.sigmoid], "2x1o")
    return step(layer, normal(5, 10))


@part("fully connected")
def fully_connected() -> Numbers:
    import torch
    from e3nn.nn import FullyConnectedNet

    return step(fill(FullyConnectedNet([4, 8, 3], torch.relu)), normal(5, 4))
