# SPDX-License-Identifier: Apache-2.0
"""Data sets from local files, loaders and image transforms."""

import gzip
import os
import pickle
import struct

import numpy as np

from ..autograd import Tensor
from ..backend_selection import array_api


class Transform:
    def __call__(self, x):
        raise NotImplementedError


class RandomFlipHorizontal(Transform):
    def __init__(self, p=0.5):
        self.p = p

    def __call__(self, img):
        return img[:, ::-1, :] if np.random.rand() < self.p else img


class RandomCrop(Transform):
    def __init__(self, padding=3):
        self.padding = padding

    def __call__(self, img):
        p = self.padding
        x, y = np.random.randint(low=-p, high=p + 1, size=2)
        h, w = img.shape[:2]
        padded = np.pad(img, ((p, p), (p, p), (0, 0)))
        return padded[p + x : p + x + h, p + y : p + y + w, :]


class Dataset:
    def __init__(self, transforms=None):
        self.transforms = transforms

    def __getitem__(self, index):
        raise NotImplementedError

    def __len__(self):
        raise NotImplementedError

    def apply_transforms(self, x):
        for f in self.transforms or []:
            x = f(x)
        return x


class DataLoader:
    def __init__(self, dataset, batch_size=1, shuffle=False):
        self.dataset, self.batch_size, self.shuffle = dataset, batch_size, shuffle
        self.ordering = None if shuffle else self._cut(np.arange(len(dataset)))

    def _cut(self, order):
        return np.array_split(order, range(self.batch_size, len(order), self.batch_size))

    def __iter__(self):
        if self.shuffle:
            self.ordering = self._cut(np.random.permutation(len(self.dataset)))
        self.index = 0
        return self

    def __next__(self):
        if self.index >= len(self.ordering):
            raise StopIteration
        samples = [self.dataset[int(i)] for i in self.ordering[self.index]]
        self.index += 1
        return tuple(
            Tensor(np.stack([np.asarray(s[k]) for s in samples])) for k in range(len(samples[0]))
        )


class NDArrayDataset(Dataset):
    def __init__(self, *arrays):
        super().__init__()
        self.arrays = arrays

    def __len__(self):
        return self.arrays[0].shape[0]

    def __getitem__(self, i):
        return tuple(a[i] for a in self.arrays)


def _idx(path):
    with gzip.open(path, "rb") as f:
        raw = f.read()
    rank = raw[3]
    shape = struct.unpack(f">{rank}I", raw[4 : 4 + 4 * rank])
    return np.frombuffer(raw, np.uint8, offset=4 + 4 * rank).reshape(shape)


def parse_mnist(image_filename, label_filename):
    """float32 rows in [0, 1] and uint8 labels of gzipped IDX files."""
    images = _idx(image_filename)
    return images.reshape(len(images), -1).astype(np.float32) / 255.0, _idx(label_filename).copy()


class MNISTDataset(Dataset):
    def __init__(self, image_filename, label_filename, transforms=None):
        super().__init__(transforms)
        self.x, self.y = parse_mnist(image_filename, label_filename)

    def __getitem__(self, index):
        x = self.x[index]
        if not self.transforms:
            return x, self.y[index]
        return self.apply_transforms(x.reshape(28, 28, -1)).reshape(-1, 28 * 28), self.y[index]

    def __len__(self):
        return len(self.x)


class CIFAR10Dataset(Dataset):
    def __init__(self, base_folder, train, p=0.5, transforms=None):
        super().__init__(transforms)
        names = [f"data_batch_{i}" for i in range(1, 6)] if train else ["test_batch"]
        parts = []
        for name in names:
            with open(os.path.join(base_folder, name), "rb") as f:
                parts.append(pickle.load(f, encoding="bytes"))
        x = np.concatenate([p[b"data"] for p in parts])
        self.X = x.reshape(-1, 3, 32, 32).astype(np.float32) / 255.0
        self.y = np.concatenate([np.asarray(p[b"labels"]) for p in parts])

    def __getitem__(self, index):
        return self.apply_transforms(self.X[index]), self.y[index]

    def __len__(self):
        return len(self.X)


class Dictionary:
    def __init__(self):
        self.word2idx, self.idx2word = {}, []

    def add_word(self, word):
        if word not in self.word2idx:
            self.word2idx[word] = len(self.idx2word)
            self.idx2word.append(word)
        return self.word2idx[word]

    def __len__(self):
        return len(self.idx2word)


class Corpus:
    def __init__(self, base_dir, max_lines=None):
        self.dictionary = Dictionary()
        self.train = self.tokenize(os.path.join(base_dir, "train.txt"), max_lines)
        self.test = self.tokenize(os.path.join(base_dir, "test.txt"), max_lines)

    def tokenize(self, path, max_lines=None):
        ids = []
        with open(path) as f:
            for n, line in enumerate(f):
                if max_lines is not None and n >= max_lines:
                    break
                ids += [self.dictionary.add_word(w) for w in [*line.split(), "<eos>"]]
        return ids


def batchify(data, batch_size, device, dtype):
    """Columns of the sequence: (len // batch_size, batch_size)."""
    n = len(data) // batch_size
    return np.array(data[: n * batch_size], dtype=dtype).reshape(batch_size, n).T


def get_batch(batches, i, bptt, device=None, dtype=None):
    """bptt rows from row i and the rows that follow them, flat."""
    n = min(bptt, len(batches) - 1 - i)
    x, y = batches[i : i + n], batches[i + 1 : i + 1 + n].reshape(-1)
    return (
        Tensor(x, device=device, dtype=dtype, requires_grad=False),
        Tensor(y, device=device, dtype=dtype, requires_grad=False),
    )


_ = array_api
