# SPDX-License-Identifier: Apache-2.0
"""A Gaussian fitted by the divergence from another one, and a step of REINFORCE."""

from __future__ import annotations

import weft
from weft import distributions as D
from weft import nn, optim


class Policy(nn.Module):
    def __init__(self) -> None:
        super().__init__()
        self.scores = nn.Linear(3, 2)

    def forward(self, x: weft.Tensor) -> D.Categorical:
        return D.Categorical(logits=self.scores(x))


def reinforce(policy: Policy, x: weft.Tensor) -> weft.Tensor:
    chosen = policy.forward(x)
    action = chosen.sample()
    reward: weft.NDArray = (action == 1).astype("float32")
    log_prob: weft.Tensor = chosen.log_prob(action)
    return -(log_prob * reward).mean()


def main() -> None:
    weft.manual_seed(1)
    loc, scale = nn.Parameter(weft.zeros(4)), nn.Parameter(weft.ones(4))
    optimizer = optim.Adam([loc, scale], lr=0.1)
    target: D.Distribution = D.Normal(weft.ones(4), 0.5)
    gaps: list[float] = []
    for _ in range(20):
        optimizer.zero_grad()
        gap = D.kl_divergence(D.Normal(loc, scale), target).sum()
        gap.backward()
        optimizer.step()
        gaps.append(gap.item())
    drawn = D.Independent(D.Normal(loc, scale), 1).rsample((5,))
    shape: tuple[int, ...] = D.Normal(loc, scale).batch_shape
    loss = reinforce(Policy(), weft.Tensor(weft.ones((6, 3))))
    loss.backward()
    print(gaps[-1] < gaps[0], drawn.shape, shape, target.stddev, D.Gamma(2.0, 1.0).entropy())


if __name__ == "__main__":
    main()
