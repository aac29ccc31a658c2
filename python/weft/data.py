# SPDX-License-Identifier: Apache-2.0
"""Data sets from memory and local files, and loaders."""

from __future__ import annotations

import bisect
import gzip
import itertools
import os
import struct

import weft

from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._errors import error as _error
from ._errors import unwritten as _unwritten
from ._loaders import (  # noqa: F401
    BatchSampler,
    DataLoader,
    DistributedSampler,
    RandomSampler,
    Sampler,
    SequentialSampler,
    SubsetRandomSampler,
    WeightedRandomSampler,
    default_collate,
)


class Dataset:
    """Indexable samples; transforms apply to the first part of each. a + b is the samples of both."""

    def __init__(self, transforms=None):
        self.transforms = transforms or []

    def __len__(self):
        raise _unwritten(self, "__len__")

    def __getitem__(self, index):
        raise _unwritten(self, "__getitem__")

    def __add__(self, other):
        return ConcatDataset([self, other])

    def transform(self, x):
        for f in self.transforms:
            x = f(x)
        return x


class ArrayDataset(Dataset):
    """Samples along the first axis of arrays of equal length."""

    def __init__(self, *arrays, transforms=None):
        super().__init__(transforms)
        self.arrays = [weft.asarray(a) for a in arrays]
        lengths = [a.shape[0] if a.ndim else None for a in self.arrays]
        if len(set(lengths)) != 1 or None in lengths:
            raise _error(
                weft.ShapeError,
                "data.arrays.length",
                f"arrays of a data set have the shapes {[a.shape for a in self.arrays]}",
                note="rule: one array or more, of equal length along the first axis",
            )

    def __len__(self):
        return self.arrays[0].shape[0]

    def __getitem__(self, index):
        first, *rest = (a[index] for a in self.arrays)
        return (self.transform(first), *rest)


class TensorDataset(ArrayDataset):
    """PyTorch's name of ArrayDataset."""


class Subset(Dataset):
    """Some samples of another set, by their positions in it."""

    def __init__(self, dataset, indices):
        super().__init__()
        self.dataset, self.indices = dataset, weft.asarray(indices, dtype="int64")

    def __len__(self):
        return self.indices.shape[0]

    def __getitem__(self, index):
        at = self.indices[index]
        return self.dataset[int(at) if at.ndim == 0 else at]


class IterableDataset:
    """Samples one after another, as __iter__ gives them."""

    def __init__(self):
        pass

    def __iter__(self):
        raise _unwritten(self, "__iter__")


class ConcatDataset(Dataset):
    """Sets one behind the other."""

    def __init__(self, datasets):
        super().__init__()
        self.datasets = list(datasets)
        ends = list(itertools.accumulate(len(d) for d in self.datasets))
        if not ends:
            raise _error(
                weft.ArgumentError, "data.concat.empty", "a ConcatDataset of 0 data sets", ["legal: 1 and more"]
            )  # fmt: skip
        self.cumulative_sizes = ends

    def __len__(self):
        return self.cumulative_sizes[-1]

    def __getitem__(self, index):
        n = len(self)
        if not -n <= index < n:
            raise _error(
                weft.IndexError,
                "data.index",
                f"sample {index} of a data set of {n}",
                [f"legal: {-n} to {n - 1}"],
            )
        index %= n
        which = bisect.bisect_right(self.cumulative_sizes, index)
        return self.datasets[which][index - ([0, *self.cumulative_sizes])[which]]


class ChainDataset(IterableDataset):
    """Iterable sets one after the other."""

    def __init__(self, datasets):
        self.datasets = list(datasets)

    def __iter__(self):
        return itertools.chain.from_iterable(self.datasets)


def get_worker_info():
    """None: samples are read in the process that asks for them."""
    return None


def random_split(dataset, lengths, key=None):
    """Disjoint subsets of these lengths, or fractions that add up to 1, in random order. Raises ArgumentError."""
    n = len(dataset)
    if lengths and all(isinstance(m, float) for m in lengths) and abs(sum(lengths) - 1.0) < 1e-9:
        parts = [int(n * m) for m in lengths]
        lengths = [m + (i < n - sum(parts)) for i, m in enumerate(parts)]
    if sum(lengths) != n or min(lengths) < 0:
        raise _error(
            weft.ArgumentError,
            "data.split.lengths",
            f"lengths {list(lengths)} of a data set of {n} samples",
            ["rule: they add up to the number of samples, or are fractions that add up to 1"],
        )
    order, out, at = weft.random.permutation(n, key=key), [], 0
    for m in lengths:
        out.append(Subset(dataset, order[at : at + m]))
        at += m
    return out


class IdxDataset(ArrayDataset):
    """Images and labels from local files in the IDX format of MNIST, plain or gzipped."""

    def __init__(self, images, labels, transforms=None):
        x = _read_idx(images).astype(weft.float32) * (1.0 / 255.0)
        super().__init__(x, _read_idx(labels), transforms=transforms)


def _read_idx(path):
    path = os.fspath(path)
    opener = gzip.open if str(path).endswith(".gz") else open
    with opener(path, "rb") as f:
        raw = f.read()
    if len(raw) < 4 or raw[:2] != b"\0\0" or raw[2] != 8 or len(raw) < 4 + 4 * raw[3]:
        raise _error(
            weft.IOError,
            "data.idx.header",
            f"{path} does not begin like an IDX file of bytes",
            help="unpack it first, and name the file of images or labels (IDX, type 0x08)",
        )
    shape = struct.unpack(f">{raw[3]}I", raw[4 : 4 + 4 * raw[3]])
    body = raw[4 + 4 * raw[3] :]
    need = 1
    for n in shape:
        need *= n
    if len(body) != need:
        raise _error(
            weft.IOError,
            "data.idx.size",
            f"{path} announces {need} bytes and has {len(body)}",
            help="fetch the file again; it is cut off",
        )
    return weft._core._from_bytes(body, shape, weft.uint8)


def synthetic_images(n, classes=10, shape=(3, 32, 32), noise=0.5, seed=0):
    """Images of `classes` random patterns with noise, and their labels: something that can be learnt."""
    patterns = weft.random.normal((classes, *shape), key=weft.random.Key(seed))
    labels = weft.random.integers(0, classes, (n,), key=weft.random.Key(seed + 1))
    x = weft.take(patterns, labels, axis=0) + noise * weft.random.normal(
        (n, *shape), key=weft.random.Key(seed + 2)
    )
    return ArrayDataset(x, labels)


_publish(__name__)
_publish_classes(__name__)
