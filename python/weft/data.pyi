# SPDX-License-Identifier: Apache-2.0
# Written by tools/make_stubs.py.
import builtins as _builtins
import os
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, NamedTuple

from weft import NDArray, Tensor, random, _ArrayLike, _bool, _Device, _DType, _Number

class Dataset:
    def __init__(self, transforms: Sequence[Callable[[NDArray], NDArray]] | None = None) -> None: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any) -> Any: ...
    def transform(self, x: Any) -> Any: ...

class ArrayDataset(Dataset):
    def __init__(self, *arrays: Any, transforms: Sequence[Callable[[NDArray], NDArray]] | None = None) -> None: ...
    arrays: list[NDArray]

class TensorDataset(ArrayDataset):
    ...

class IdxDataset(ArrayDataset):
    def __init__(self, images: Any, labels: Any, transforms: Sequence[Callable[[NDArray], NDArray]] | None = None) -> None: ...

class Subset(Dataset):
    def __init__(self, dataset: Dataset, indices: _ArrayLike) -> None: ...
    dataset: Dataset
    indices: NDArray

class DataLoader:
    def __init__(self, dataset: Dataset, batch_size: int = 1, shuffle: _bool = False, key: random.Key | None = None, drop_last: Any = False) -> None: ...
    def __len__(self) -> int: ...
    def __iter__(self) -> Iterator[tuple[Tensor, ...]]: ...

def synthetic_images(n: int, classes: int = 10, shape: int | Sequence[int] = ..., noise: float = 0.5, seed: int = 0) -> ArrayDataset:
    """Images of `classes` random patterns with noise, and their labels: something that can be learnt."""
def random_split(dataset: Dataset, lengths: Any, key: random.Key | None = None) -> list[Subset]:
    """Disjoint subsets of these lengths, or fractions that add up to 1, in random order. Raises ArgumentError."""
