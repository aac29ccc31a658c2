# SPDX-License-Identifier: Apache-2.0
"""Orders of samples and batches of them, by PyTorch's names; weft.data offers them."""

from __future__ import annotations

import itertools
import math

import weft

from ._core import shown as _shown
from ._boundary import public as _public
from ._boundary import publish_class as _publish_class
from ._core import NDArray, Tensor
from ._errors import error as _error
from ._errors import unwritten as _unwritten


class Sampler:
    """An order of the samples of a data set: an iterable of positions."""

    def __init__(self, data_source=None):
        self.data_source = data_source

    def __iter__(self):
        raise _unwritten(self, "__iter__")


def _length(data):
    return data.shape[0] if isinstance(data, (NDArray, Tensor)) else len(data)


class SequentialSampler(Sampler):
    """All samples in order."""

    def __iter__(self):
        return iter(range(_length(self.data_source)))

    def __len__(self):
        return _length(self.data_source)


class RandomSampler(Sampler):
    """Samples in random order: all of them, or num_samples, with replacement where asked. A key makes the passes repeatable."""

    def __init__(self, data_source, replacement=False, num_samples=None, generator=None, key=None):
        super().__init__(data_source)
        self.replacement, self.key = replacement, key
        self.num_samples = _length(data_source) if num_samples is None else num_samples
        _positive("RandomSampler", self.num_samples)

    def __iter__(self):
        key = self.key
        if key is not None:
            key, self.key = weft.random.split(key, 2)
        n = _length(self.data_source)
        if self.replacement:
            return iter(weft.random.integers(0, n, (self.num_samples,), key=key).tolist())
        keys = [key] if key is None else weft.random.split(key, -(-self.num_samples // n))
        rounds = (
            weft.random.permutation(n, key=keys[k] if key is not None else None).tolist()
            for k in range(-(-self.num_samples // n))
        )
        return itertools.islice(itertools.chain.from_iterable(rounds), self.num_samples)

    def __len__(self):
        return self.num_samples


class SubsetRandomSampler(Sampler):
    """Given positions in random order."""

    def __init__(self, indices, generator=None):
        super().__init__()
        self.indices = indices

    def __iter__(self):
        for i in weft.random.permutation(_length(self.indices)).tolist():
            yield int(self.indices[i])

    def __len__(self):
        return _length(self.indices)


class WeightedRandomSampler(Sampler):
    """num_samples positions, each with a probability that goes with its weight."""

    def __init__(self, weights, num_samples, replacement=True, generator=None):
        super().__init__()
        self.weights = weft.asarray(getattr(weights, "data", weights), dtype="float64")
        self.num_samples, self.replacement = num_samples, replacement
        _positive("WeightedRandomSampler", num_samples)

    def __iter__(self):
        return iter(weft.multinomial(self.weights, self.num_samples, self.replacement).tolist())

    def __len__(self):
        return self.num_samples


class BatchSampler(Sampler):
    """The positions of another sampler in lists of batch_size; with drop_last no shorter one at the end."""

    def __init__(self, sampler, batch_size, drop_last=False):
        super().__init__()
        self.sampler, self.batch_size, self.drop_last = sampler, batch_size, drop_last
        _positive("BatchSampler", batch_size)

    def __iter__(self):
        rest = iter(self.sampler)
        while batch := list(itertools.islice(rest, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield batch

    def __len__(self):
        n = len(self.sampler)
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)


class DistributedSampler(Sampler):
    """The share of one rank in the samples, equally many for each: shuffled anew for each set_epoch."""

    def __init__(self, dataset, num_replicas=None, rank=None, shuffle=True, seed=0, drop_last=False):  # fmt: skip
        super().__init__(dataset)
        self.dataset, self.shuffle, self.seed, self.drop_last = dataset, shuffle, seed, drop_last
        if num_replicas is None or rank is None:
            from . import distributed

            num_replicas = distributed.size() if num_replicas is None else num_replicas
            rank = distributed.rank() if rank is None else rank
        if not 0 <= rank < num_replicas:
            raise _error(
                weft.ArgumentError,
                "data.sampler.rank",
                f"DistributedSampler of rank {rank} of {num_replicas}",
                [f"legal: 0 to {num_replicas - 1}"],
            )
        self.num_replicas, self.rank, self.epoch = num_replicas, rank, 0

    def set_epoch(self, epoch):
        """Another order for another pass; the same on all ranks."""
        self.epoch = epoch

    def __iter__(self):
        n = len(self.dataset)
        order = list(range(n))
        if self.shuffle:
            key = weft.random.Key(self.seed + self.epoch)
            order = weft.random.permutation(n, key=key).tolist()
        total = len(self) * self.num_replicas
        while order and len(order) < total:
            order += order[: total - len(order)]
        return iter(order[self.rank : total : self.num_replicas])

    def __len__(self):
        n = len(self.dataset)
        return n // self.num_replicas if self.drop_last else math.ceil(n / self.num_replicas)


def _positive(name, count):
    if not isinstance(count, int) or count < 1:
        raise _error(
            weft.ArgumentError,
            "data.sampler.count",
            f"{name} of {_shown(count)} samples",
            ["legal: 1 and more"],
        )


def default_collate(batch):
    """Samples as one batch: arrays and numbers stacked along a new first axis, tuples and dicts part by part, texts in a list."""
    first = batch[0]
    if isinstance(first, Tensor):
        return weft.stack(list(batch))
    if isinstance(first, (str, bytes)) or first is None:
        return list(batch)
    if isinstance(first, dict):
        return {name: default_collate([b[name] for b in batch]) for name in first}
    if isinstance(first, tuple) and hasattr(first, "_fields"):
        return type(first)(*(default_collate(list(part)) for part in zip(*batch)))
    if isinstance(first, (tuple, list)):
        if any(len(b) != len(first) for b in batch):
            raise _error(
                weft.ShapeError,
                "data.collate.length",
                f"samples of {sorted({len(b) for b in batch})} parts in one batch",
                help="give samples of equally many parts, or collate_fn=",
            )
        return tuple(default_collate(list(part)) for part in zip(*batch))
    return Tensor(weft.stack([weft.asarray(x) for x in batch]), requires_grad=False)


class DataLoader:
    """Batches of a data set, shuffled anew in every pass when asked.

    A key makes the sequence of passes repeatable. The last batch may be smaller; drop_last leaves it out. `sampler` or `batch_sampler` give the
    order otherwise; batch_size=None gives single samples; collate_fn makes a batch of a list of samples. Batches are made in this process when they are asked for, so
    num_workers, pin_memory and the other options of PyTorch's workers change nothing. Raises ArgumentError (data.batch_size, data.loader.order).
    """

    def __init__(
        self, dataset, batch_size=1, shuffle=False, key=None, drop_last=False, *, sampler=None, batch_sampler=None,
        num_workers=0, collate_fn=None, pin_memory=False, timeout=0, worker_init_fn=None, multiprocessing_context=None,
        generator=None, prefetch_factor=None, persistent_workers=False, pin_memory_device="",
    ):  # fmt: skip
        if batch_size is not None and batch_size < 1:
            raise _error(
                weft.ArgumentError,
                "data.batch_size",
                f"batches of {batch_size} samples",
                ["legal: 1 and more"],
            )
        self._by_steps = not hasattr(type(dataset), "__getitem__")
        given = [
            name
            for name, there in (
                ("shuffle", shuffle), ("sampler", sampler is not None), ("batch_sampler", batch_sampler is not None)
            )
            if there
        ]  # fmt: skip
        if len(given) > 1 or (self._by_steps and given):
            raise _error(
                weft.ArgumentError,
                "data.loader.order",
                f"a DataLoader with {' and '.join(given)}{' of an iterable data set' if self._by_steps else ''}",
                ["legal: one of shuffle, sampler, batch_sampler; none of a data set that gives its own order"],
            )  # fmt: skip
        self.dataset, self.batch_size, self.shuffle, self.key = dataset, batch_size, bool(shuffle), key  # fmt: skip
        self.drop_last, self.sampler, self.batch_sampler = drop_last, sampler, batch_sampler
        self.num_workers, self.pin_memory, self.generator = num_workers, pin_memory, generator
        self.collate_fn = collate_fn

    def __len__(self):
        if self.batch_sampler is not None:
            return len(self.batch_sampler)
        n = len(self.dataset if self.sampler is None else self.sampler)
        if self.batch_size is None:
            return n
        return n // self.batch_size if self.drop_last else -(-n // self.batch_size)

    def _order(self):
        """Positions in this pass."""
        if self.sampler is not None:
            return iter(self.sampler)
        n, key = len(self.dataset), self.key
        if not self.shuffle:
            return iter(range(n))
        if key is not None:
            key, self.key = weft.random.split(key, 2)
        return iter(weft.random.permutation(n, key=key).tolist())

    def _batches(self):
        if self.batch_sampler is not None:
            return iter(self.batch_sampler)
        return iter(BatchSampler(self._order(), self.batch_size, self.drop_last))

    def __iter__(self):
        collate = self.collate_fn or (default_collate if self.batch_size is not None else None)
        if self._by_steps:
            return self._steps(collate)
        if self.batch_size is None and self.batch_sampler is None:
            samples = (self.dataset[i] for i in self._order())
            return samples if collate is None else map(collate, samples)
        if self.collate_fn is None and hasattr(self.dataset, "arrays"):
            return map(self._of_arrays, self._batches())
        return (collate([self.dataset[i] for i in batch]) for batch in self._batches())

    def _steps(self, collate):
        samples = iter(self.dataset)
        if self.batch_size is None:
            yield from (samples if collate is None else map(collate, samples))
            return
        while batch := list(itertools.islice(samples, self.batch_size)):
            if len(batch) == self.batch_size or not self.drop_last:
                yield collate(batch)

    def _of_arrays(self, batch):
        """Rows of a set of arrays, taken at once."""
        index = weft.asarray(batch, dtype="int64")
        parts = [weft.take(a, index, axis=0) for a in self.dataset.arrays]
        if self.dataset.transforms:
            parts[0] = weft.stack([self.dataset.transform(x) for x in parts[0]])
        return tuple(Tensor(p, requires_grad=False) for p in parts)


for _class in (
    BatchSampler, DataLoader, DistributedSampler, RandomSampler, Sampler, SequentialSampler, SubsetRandomSampler, WeightedRandomSampler,
):  # fmt: skip
    _class.__module__ = "weft.data"
    _publish_class(_class)
default_collate = _public(default_collate)
