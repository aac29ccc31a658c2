# SPDX-License-Identifier: Apache-2.0
"""A data set of one's own with samplers, workers and a collate function."""

from __future__ import annotations

from collections.abc import Iterator

import weft
from weft import data


class Squares(data.Dataset):
    def __len__(self) -> int:
        return 10

    def __getitem__(self, index: int) -> tuple[weft.NDArray, int]:
        return weft.asarray(float(index)), index * index


class Stream(data.IterableDataset):
    def __iter__(self) -> Iterator[int]:
        return iter(range(5))


def collate(rows: list[tuple[weft.NDArray, int]]) -> tuple[weft.NDArray, list[int]]:
    return weft.stack([x for x, _ in rows]), [y for _, y in rows]


def main() -> None:
    weft.manual_seed(0)
    squares = Squares()
    first, last = data.random_split(squares, [7, 3])
    weights = [1.0] * len(squares)
    sampler = data.WeightedRandomSampler(weights, 6)
    for x, y in data.DataLoader(squares, batch_size=4, sampler=sampler, collate_fn=collate):
        print(x.shape, len(y))
    batches = data.BatchSampler(data.SequentialSampler(squares), batch_size=3, drop_last=True)
    print(len(first), len(last), len(batches), [len(b) for b in batches])
    both = data.ConcatDataset([first, last])
    print(
        len(both),
        len(data.DataLoader(both, batch_size=4)),
        list(data.DataLoader(Stream(), batch_size=2)),
    )


if __name__ == "__main__":
    main()
