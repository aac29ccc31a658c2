# SPDX-License-Identifier: Apache-2.0
"""Run by a launcher: parallel training beside one process, meshes, checkpoints. Arguments: folder [device]."""

import os
import sys

import numpy as np

import weft
from weft import distributed as dist
from weft import nn, optim

folder = sys.argv[1]
dist.init()
r, n = dist.rank(), dist.size()
device = sys.argv[2] if len(sys.argv) > 2 else "cpu"
if device == "cuda":
    device = dist.device().name
ROWS = 12 // n


def network():
    weft.random.seed(3)
    layers = [nn.Linear(10, 64), nn.ReLU(), nn.Linear(64, 64), nn.LayerNorm(64), nn.Linear(64, 4)]
    return nn.Sequential(*layers).to(device)


def batch(step):
    rng = np.random.default_rng(step)
    return rng.standard_normal((12, 10)).astype("float32"), rng.integers(0, 4, 12)


def loss_of(model, x, y):
    x = weft.Tensor(weft.asarray(x).to(device), requires_grad=False)
    return nn.functional.cross_entropy(model(x), weft.asarray(y).to(device))


def step(model, optimizer, number, rows=None):
    x, y = batch(number)
    if rows is not None:
        x, y = x[r * rows : (r + 1) * rows], y[r * rows : (r + 1) * rows]
    loss = loss_of(model, x, y)
    loss.backward()
    optimizer.step()
    optimizer.zero_grad()
    return (
        float(loss.item()) if rows is None else float(dist.all_reduce(loss.detach(), "mean").item())
    )


alone = network()
optimizer = optim.Adam(alone.parameters(), lr=1e-2)
wanted = [step(alone, optimizer, i) for i in range(8)]


def compare(model):
    mine, want = model.state_dict(), alone.state_dict()
    assert set(mine) == set(want), set(mine) ^ set(want)
    for name, array in mine.items():
        np.testing.assert_allclose(array.numpy(), want[name].numpy(), rtol=5e-3, atol=5e-5)


def data_parallel():
    model = network()
    for p in model.parameters():
        p.data = p.data * float(r == 0)  # the others get rank 0's
    model = dist.DataParallel(model, bucket_bytes=3000)
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    np.testing.assert_allclose(
        [step(model, optimizer, i, ROWS) for i in range(8)], wanted, rtol=5e-4
    )
    compare(model)
    with model.no_sync():  # two halves on this rank alone, then the mean of both
        x, y = batch(1)
        loss_of(model, x[:4], y[:4]).backward()
        own = [p.grad.numpy().copy() for p in model.parameters()]
    loss_of(model, x[:4], y[:4]).backward()
    for p, g in zip(model.parameters(), own):
        np.testing.assert_allclose(p.grad.numpy(), 2 * g, rtol=2e-4, atol=1e-6)


def sharded(stage):
    model = dist.ShardedParallel(
        network(), stage=stage, resident_bytes=0 if stage == 3 else 1 << 12
    )
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    path = os.path.join(folder, f"stage{stage}")
    got = []
    for i in range(8):
        got.append(step(model, optimizer, i, ROWS))
        if i == 4:
            model.save(path, optimizer, {"step": 5})
    np.testing.assert_allclose(got, wanted, rtol=5e-4)
    compare(model)
    held = sum(p.data.nbytes for p in model.parameters())
    whole = sum(p.data.nbytes for p in alone.parameters())
    assert held <= whole / n + 4096, (held, whole)
    resume(path, stage)


def resume(path, stage):
    """Goes on from a checkpoint, whatever number of ranks has written it."""
    model = dist.ShardedParallel(
        network(), stage=stage, resident_bytes=0 if stage == 3 else 1 << 12
    )
    optimizer = optim.Adam(model.parameters(), lr=1e-2)
    assert model.load(path, optimizer) == {"step": 5}
    got = [step(model, optimizer, i, ROWS) for i in range(5, 8)]
    np.testing.assert_allclose(got, wanted[5:], rtol=5e-4)


def tensor_parallel():
    weft.random.seed(4)
    up, down = nn.Linear(8, 12 * n), nn.Linear(12 * n, 8)
    table = nn.Embedding(6 * n, 8)
    attention = [nn.Linear(8 * n, 8 * n) for _ in range(4)]
    index = np.random.default_rng(0).integers(0, 6 * n, (5, 3))

    class Whole(nn.Module):
        def __init__(self):
            super().__init__()
            self.table, self.up, self.down = table, up, down

        def forward(self, i):
            return self.down(nn.functional.relu(self.up(self.table(i))))

    class Parallel(nn.Module):
        def __init__(self):
            super().__init__()
            self.table = dist.ParallelEmbedding(table)
            self.up, self.down = dist.ColumnParallelLinear(up), dist.RowParallelLinear(down)

        def forward(self, i):
            return self.down(nn.functional.relu(self.up(self.table(i))))

    whole, parallel = Whole().to(device), Parallel().to(device)
    a, b = (m(weft.asarray(index).to(device)) for m in (whole, parallel))
    np.testing.assert_allclose(b.numpy(), a.numpy(), rtol=1e-4, atol=1e-5)
    (a * a).sum().backward()
    (b * b).sum().backward()
    k = 12
    np.testing.assert_allclose(
        parallel.up.weight.grad.numpy(),
        whole.up.weight.grad.numpy()[:, r * k : (r + 1) * k],
        rtol=1e-3,
        atol=1e-4,
    )
    np.testing.assert_allclose(
        parallel.table.weight.grad.numpy(),
        whole.table.weight.grad.numpy()[r * 6 : r * 6 + 6],
        rtol=1e-3,
        atol=1e-4,
    )
    x = np.random.default_rng(1).standard_normal((2, 7, 8 * n)).astype("float32")
    layer = dist.ParallelAttention(*attention, heads=2 * n).to(device)
    got = layer(weft.Tensor(weft.asarray(x).to(device))).numpy()
    q, key, v, o = ([w.numpy() for w in (m.weight.data, m.bias.data)] for m in attention)

    def heads(w):
        return (x @ w[0] + w[1]).reshape(2, 7, 2 * n, 4).transpose(0, 2, 1, 3)

    scores = heads(q) @ heads(key).transpose(0, 1, 3, 2) / 2 + np.triu(np.full((7, 7), -np.inf), 1)
    e = np.exp(scores - scores.max(-1, keepdims=True))
    y = (e / e.sum(-1, keepdims=True)) @ heads(v)
    want = y.transpose(0, 2, 1, 3).reshape(2, 7, 8 * n) @ o[0] + o[1]
    np.testing.assert_allclose(got, want, rtol=2e-3, atol=1e-4)


def meshes():
    mesh = dist.Mesh((n,), ("model",))
    rng = np.random.default_rng(2)
    a, b = rng.standard_normal((4 * n, 6 * n)), rng.standard_normal((6 * n, 2 * n))
    places = [dist.Shard(0), dist.Shard(1), dist.Replicate()]
    for p in places:
        for q in places:
            x, y = (
                dist.shard(weft.asarray(a).to(device), mesh, [p]),
                dist.shard(weft.asarray(b).to(device), mesh, [q]),
            )
            product = x @ y
            np.testing.assert_allclose(product.full().numpy(), a @ b, rtol=1e-9, atol=1e-9)
            for to in places:
                again = product.redistribute([to])
                np.testing.assert_allclose(again.full().numpy(), a @ b, rtol=1e-9, atol=1e-9)
    if n % 2 == 0:
        mesh = dist.Mesh((2, n // 2), ("data", "model"))
        x = dist.shard(weft.asarray(a).to(device), mesh, (dist.Shard(0), dist.Shard(1)))
        y = dist.shard(weft.asarray(b).to(device), mesh, (dist.Replicate(), dist.Shard(0)))
        np.testing.assert_allclose((x @ y).full().numpy(), a @ b, rtol=1e-9, atol=1e-9)


data_parallel()
for stage in (1, 2, 3):
    sharded(stage)
other = os.path.join(folder, "other")
if os.path.exists(other):
    resume(other, 3)
tensor_parallel()
meshes()
dist.barrier()
print(f"training rank {r} of {n}: ok", flush=True)
