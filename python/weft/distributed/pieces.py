# SPDX-License-Identifier: Apache-2.0
"""Combinations of large arrays by messages between two ranks.

MPI's own non-blocking combinations go on only while somebody asks for them, one round after the other, and copy their operands. Here each rank combines one
part of all elements, in chunks that stay in its cache, straight from the others' arrays into the result, and hands it to the others as soon as it is done: every
element is sent twice, as in a ring, and each rank waits for the others twice, whatever their number.
"""

from __future__ import annotations

import weft

_CHUNK_BYTES = 1 << 20  # of one array and one rank: a message, combined while the caches hold it
_AHEAD = 3  # chunks of the own part that may arrive while one is combined
LEAST_BYTES = 64 << 10  # of a rank's part: below, the number of messages counts and not the bytes


def parts_of(sizes, ranks, item):
    """For each rank the chunks (array, first element, end) of its part of arrays with so many elements of `item` bytes.

    Parts are about equal and begin at multiples of 64 bytes; a chunk lies in one array.
    """
    total, step = sum(sizes), max(1, 64 // item)
    cuts = [min(total, -(-total * r // (ranks * step)) * step) for r in range(ranks)] + [total]
    most = max(1, _CHUNK_BYTES // item)
    out = []
    for low, high in zip(cuts, cuts[1:]):
        chunks, begin = [], 0
        for array, size in enumerate(sizes):
            first, end = max(low - begin, 0), min(high - begin, size)
            for at in range(first, end, most):
                chunks.append((array, at, min(at + most, end)))
            begin += size
        out.append(chunks)
    return out


def _combine(op, into, other):
    """into = into op other, in place."""
    if op in ("sum", "mean"):
        into += other
    elif op == "prod":
        into *= other
    else:
        into[...] = (weft.maximum if op == "max" else weft.minimum)(into, other)


class Combination:
    """`sent` of all ranks combined into `out` in its place: parts are sent when it is made, begin() and advance() do the rest.

    `transport` has post(array, peer, tag), expect(array, peer, tag) and arrived(requests). Without `gathered` each rank gets its own part alone: `out` is one
    array with a rank's share of the elements of the one that is sent.
    """

    def __init__(self, transport, sent, out, op, tag, gathered=True):
        self.transport, self.op, self.tag, self.gathered = transport, op, tag, gathered
        self.sent = [a.reshape((-1,)) for a in sent]
        self.out = [a.reshape((-1,)) for a in out]
        me, n = transport.rank, transport.size
        self.others = [(me + step) % n for step in range(1, n)]
        item = sent[0].nbytes // max(1, sent[0].size)
        if gathered:
            self.parts = parts_of([a.size for a in sent], n, item)
            self.offset = 0
        else:
            share = out[0].size
            (chunks,) = parts_of([share], 1, item)
            self.parts = [[(0, r * share + a, r * share + b) for _, a, b in chunks] for r in range(n)]  # fmt: skip
            self.offset = me * share
        self.own = self.parts[me]
        self.asked = []  # for each chunk of the own part from the first on: requests of the other ranks, and their rooms
        self.combined = 0  # of these chunks
        self.last = []  # requests that nothing is done after
        for peer in self.others:
            for array, begin, end in self.parts[peer]:
                self.last.append(transport.post(self.sent[array][begin:end], peer, tag))

    def _into(self, chunk):
        array, begin, end = chunk
        return self.out[array][begin - self.offset : end - self.offset]

    def _ask(self):
        """Room for the next chunk of the own part. The first rank's message arrives where the result will be."""
        if len(self.asked) == len(self.own):
            return
        into = self._into(self.own[len(self.asked)])
        rooms = [into] + [weft.empty(into.shape, dtype=into.dtype, device="cpu") for _ in self.others[1:]]  # fmt: skip
        requests = [self.transport.expect(x, p, self.tag) for x, p in zip(rooms, self.others)]
        self.asked.append((requests, rooms))

    def begin(self):
        """Receives: only when all ranks combine arrays of the same sizes, since MPI writes beyond those that are too small."""
        for _ in range(_AHEAD):
            self._ask()
        for peer in self.others if self.gathered else ():
            for chunk in self.parts[peer]:
                self.last.append(self.transport.expect(self._into(chunk), peer, self.tag + 1))

    def advance(self):
        """Does what can be done without waiting. Returns whether all is done."""
        transport = self.transport
        while self.combined < len(self.own):
            requests, rooms = self.asked[self.combined]
            if not transport.arrived(requests):
                return False
            array, begin, end = self.own[self.combined]
            into = rooms[0]
            _combine(self.op, into, self.sent[array][begin:end])
            for room in rooms[1:]:
                _combine(self.op, into, room)
            if self.op == "mean":
                into /= transport.size
            for peer in self.others if self.gathered else ():
                self.last.append(transport.post(into, peer, self.tag + 1))
            self.asked[self.combined] = None
            self.combined += 1
            self._ask()
        return transport.arrived(self.last)
