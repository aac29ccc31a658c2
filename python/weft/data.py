# SPDX-License-Identifier: Apache-2.0
"""Data sets from memory and local files, and loaders."""

from __future__ import annotations

import gzip
import os
import struct

import weft

from ._boundary import publish as _publish
from ._boundary import publish_classes as _publish_classes
from ._core import Tensor
from ._errors import error as _error
from ._errors import unwritten as _unwritten


class Dataset:
    """Indexable samples; transforms apply to the first part of each."""

    def __init__(self, transforms=None):
        self.transforms = transforms or []

    def __len__(self):
        raise _unwritten(self, "__len__")

    def __getitem__(self, index):
        raise _unwritten(self, "__getitem__")

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


class DataLoader:
    """Batches of a data set, shuffled anew in every pass when asked.

    A key makes the sequence of passes repeatable. The last batch may be smaller; drop_last leaves it out.
    """

    def __init__(self, dataset, batch_size=1, shuffle=False, key=None, drop_last=False):
        if batch_size < 1:
            raise _error(
                weft.ArgumentError,
                "data.batch_size",
                f"batches of {batch_size} samples",
                ["legal: 1 and more"],
            )
        self.dataset, self.batch_size, self.shuffle, self.key = dataset, batch_size, shuffle, key
        self.drop_last = drop_last

    def __len__(self):
        n = len(self.dataset)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def __iter__(self):
        n = len(self.dataset)
        key = self.key
        if self.shuffle and key is not None:
            key, self.key = weft.random.split(key, 2)
        order = weft.random.permutation(n, key=key) if self.shuffle else weft.arange(n)
        for at in range(0, len(self) * self.batch_size, self.batch_size):
            index = order[at : at + self.batch_size]
            if isinstance(self.dataset, ArrayDataset):
                parts = [weft.take(a, index, axis=0) for a in self.dataset.arrays]
                if self.dataset.transforms:
                    parts[0] = weft.stack([self.dataset.transform(x) for x in parts[0]])
            else:
                samples = [self.dataset[i] for i in index.tolist()]
                parts = [
                    weft.stack([weft.asarray(s[k]) for s in samples])
                    for k in range(len(samples[0]))
                ]
            yield tuple(Tensor(p, requires_grad=False) for p in parts)


_publish(__name__)
_publish_classes(__name__)
