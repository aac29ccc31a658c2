# SPDX-License-Identifier: Apache-2.0
"""Samplers, sets of samples and loaders by PyTorch's names."""

import collections

import numpy as np
import pytest
from refusal import refused

import weft
from weft import data as D


class Seven(D.Dataset):
    def __len__(self):
        return 7

    def __getitem__(self, i):
        return {"x": np.full(3, float(i)), "y": i, "name": str(i)}


class Pairs(D.Dataset):
    def __len__(self):
        return 5

    def __getitem__(self, i):
        return weft.ones(2) * i, i


class Steps(D.IterableDataset):
    def __iter__(self):
        yield from range(5)


def test_batches_of_any_samples():
    loader = D.DataLoader(Seven(), batch_size=3, num_workers=2, pin_memory=True, persistent_workers=True)  # fmt: skip
    batches = list(loader)
    assert len(loader) == len(batches) == 3
    assert batches[1]["y"].tolist() == [3, 4, 5] and batches[1]["name"] == ["3", "4", "5"]
    assert batches[2]["x"].shape == (1, 3) and isinstance(batches[2]["x"], weft.Tensor)
    x, y = next(iter(D.DataLoader(Pairs(), 4)))
    assert x.tolist() == [[0, 0], [1, 1], [2, 2], [3, 3]] and y.tolist() == [0, 1, 2, 3]
    Point = collections.namedtuple("Point", "a b")
    found = D.default_collate([Point(1, 2.0), Point(3, 4.0)])
    assert found.a.tolist() == [1, 3] and found.b.tolist() == [2.0, 4.0]
    refused(weft.ShapeError, "data.collate.length", D.default_collate, [(1,), (1, 2)])


def test_own_batches_and_single_samples():
    assert [b for b in D.DataLoader(Seven(), 3, collate_fn=lambda s: [x["y"] for x in s])] == [[0, 1, 2], [3, 4, 5], [6]]  # fmt: skip
    assert [s["y"] for s in D.DataLoader(Seven(), batch_size=None)] == [*range(7)]
    assert [b.tolist() for b in D.DataLoader(Steps(), 2)] == [[0, 1], [2, 3], [4]]
    assert [b.tolist() for b in D.DataLoader(Steps(), 2, drop_last=True)] == [[0, 1], [2, 3]]
    assert list(D.DataLoader(Steps(), batch_size=None)) == [*range(5)]
    arrays = D.TensorDataset(np.arange(6.0), np.arange(6))
    order = D.BatchSampler(D.SequentialSampler(arrays), 4, False)
    assert [b[1].tolist() for b in D.DataLoader(arrays, batch_sampler=order)] == [
        [0, 1, 2, 3],
        [4, 5],
    ]
    assert D.get_worker_info() is None


def test_orders():
    assert sorted(D.RandomSampler(range(9))) == [*range(9)]
    again = [list(D.RandomSampler(range(9), key=weft.random.Key(3))) for _ in range(2)]
    assert again[0] == again[1]
    sampler = D.RandomSampler(range(9), key=weft.random.Key(3))
    assert list(sampler) != list(sampler)
    assert len(list(D.RandomSampler(range(3), num_samples=8))) == 8
    drawn = list(D.RandomSampler(range(3), replacement=True, num_samples=200))
    assert len(drawn) == 200 and set(drawn) == {0, 1, 2}
    assert sorted(D.SubsetRandomSampler([4, 6, 8])) == [4, 6, 8]
    counts = collections.Counter(D.WeightedRandomSampler([1.0, 3.0, 0.0], 4000))
    assert counts[2] == 0 and 2700 < counts[1] < 3300
    assert sorted(D.WeightedRandomSampler([1.0, 3.0, 1.0], 3, replacement=False)) == [0, 1, 2]
    assert [list(D.BatchSampler(range(5), 2, d)) for d in (False, True)] == [[[0, 1], [2, 3], [4]], [[0, 1], [2, 3]]]  # fmt: skip
    batches = D.DataLoader(Seven(), batch_size=4, sampler=D.WeightedRandomSampler([1.0] * 7, 10))
    assert len(batches) == 3 and [len(b["y"]) for b in batches] == [4, 4, 2]


def test_shares_of_ranks():
    shares = [D.DistributedSampler(range(10), 3, r, shuffle=True, seed=5) for r in range(3)]
    assert [len(s) for s in shares] == [4, 4, 4]
    first = [list(s) for s in shares]
    assert {i for share in first for i in share} == set(range(10))
    for s in shares:
        s.set_epoch(1)
    assert [list(s) for s in shares] != first
    even = [list(D.DistributedSampler(range(10), 3, r, shuffle=False, drop_last=True)) for r in range(3)]  # fmt: skip
    assert even == [[0, 3, 6], [1, 4, 7], [2, 5, 8]]
    refused(weft.ArgumentError, "data.sampler.rank", D.DistributedSampler, range(3), 2, 2)


def test_sets_joined():
    both = Seven() + Seven()
    assert len(both) == 14 and both[9]["y"] == 2 and both[-1]["y"] == 6
    refused(weft.IndexError, "data.index", both.__getitem__, 14)
    assert list(D.ChainDataset([Steps(), Steps()])) == [*range(5)] * 2
    refused(weft.ArgumentError, "data.concat.empty", D.ConcatDataset, [])


def test_refusals():
    error = refused(weft.ArgumentError, "data.loader.order", lambda: D.DataLoader(Seven(), shuffle=True, sampler=[1]))  # fmt: skip
    assert "shuffle and sampler" in str(error)
    refused(weft.ArgumentError, "data.loader.order", lambda: D.DataLoader(Steps(), shuffle=True))
    refused(weft.ArgumentError, "data.batch_size", lambda: D.DataLoader(Seven(), 0))
    for make in (lambda: D.BatchSampler(range(3), 0), lambda: D.WeightedRandomSampler([1.0], 0), lambda: D.RandomSampler([])):  # fmt: skip
        refused(weft.ArgumentError, "data.sampler.count", make)
    with pytest.raises(weft.Error):
        iter(D.Sampler())


def test_fractions_of_a_data_set():
    for n in (1, 7, 10, 11, 13):
        data = weft.data.ArrayDataset(weft.arange(n))
        parts = weft.data.random_split(data, [0.5, 0.25, 0.25])
        least = [int(n * f) for f in (0.5, 0.25, 0.25)]
        lengths = [m + (i < n - sum(least)) for i, m in enumerate(least)]
        assert [len(p) for p in parts] == lengths
        seen = sorted(int(p[k][0]) for p in parts for k in range(len(p)))
        assert seen == list(range(n))


@pytest.mark.parametrize("n, ranks", [(5, 3), (7, 4), (2, 5), (9, 2), (6, 3)])
def test_ranks_begin_again_at_the_first_samples(n, ranks):
    data = weft.data.ArrayDataset(weft.arange(n))
    each = -(-n // ranks)
    order = (list(range(n)) * (each * ranks // n + 1))[: each * ranks]
    for rank in range(ranks):
        sampler = weft.data.DistributedSampler(data, ranks, rank, shuffle=False)
        assert list(sampler) == order[rank::ranks] and len(sampler) == each
