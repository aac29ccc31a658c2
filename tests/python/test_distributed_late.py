# SPDX-License-Identifier: Apache-2.0
"""Ranks on cards that wait long compare their last calls; cards and the board are stood in for."""

import collections

import weft
from weft.distributed.late import Late, Record, first_difference


class Board:
    """What two ranks share."""

    def __init__(self):
        self.texts, self.ask, self.left = {}, False, {}

    def of(self, rank):
        return View(self, rank)


class View:
    def __init__(self, board, rank):
        self.board, self.rank = board, rank

    def say(self, text, asks):
        self.board.texts[self.rank] = text
        self.board.ask = self.board.ask or asks

    def asked(self):
        return self.board.ask

    def said(self, rank):
        return self.board.texts.get(rank)

    def has_left(self, rank):
        return rank in self.board.left

    def calls_of(self, rank):
        return self.board.left[rank]


class Two:
    """Two ranks of one group, a clock that is set, and whether each card is busy."""

    def __init__(self):
        self.board, self.time, self.busy = Board(), 0.0, [True, True]
        self.late = [Late(r, lambda r=r: self.board.of(r), lambda: self.time) for r in range(2)]
        self.records = [
            late.record([0, 1], lambda r=r: self.busy[r]) for r, late in enumerate(self.late)
        ]

    def call(self, rank, *shape, name="all_reduce", dtype=weft.float32):
        self.records[rank].note(name, "sum", dtype, shape)

    def look(self, seconds):
        """The first failure that a rank finds within so many seconds."""
        end = self.time + seconds
        while self.time < end:
            self.time += 0.5
            for late in self.late:
                failure = late.look()
                if failure:
                    return failure
        return None


def test_other_sizes_are_named_on_the_rank_that_waits():
    two = Two()
    two.call(0, 8), two.call(1, 8)
    two.call(0, 1000), two.call(1, 1001)
    found = two.look(5)
    assert found.code == "distributed.mismatch"
    assert "call 2 " in found.text
    assert "rank 0 calls all_reduce(sum) of float32[1000]" in found.text
    assert "rank 1 calls all_reduce(sum) of float32[1001]" in found.text


def test_a_rank_whose_card_is_idle_answers():
    two = Two()
    two.busy[1] = False  # its part is done: it waits elsewhere
    two.call(0, 4, name="all_gather"), two.call(1, 4)
    assert "rank 1 calls all_reduce" in two.look(5).text


def test_a_slow_rank_is_no_failure():
    two = Two()
    for n in range(100):
        two.call(0, n)  # ahead of the other by a hundred
    two.call(1, 0)
    assert two.look(60) is None
    two.call(1, 1)
    assert two.look(60) is None


def test_calls_that_go_on_are_not_compared():
    two = Two()
    for n in range(40):
        two.call(0, n), two.call(1, n + 1)
        assert two.look(1) is None, "every second another call: nobody waits"
        assert not two.board.texts


def test_a_rank_that_has_left_is_named():
    two = Two()
    two.call(0, 3)
    two.busy[1] = False
    two.board.left[1] = two.late[1].counts()
    found = two.look(5)
    assert found.code == "distributed.peer" and "rank 1 has left the job" in found.text


def test_a_rank_that_left_after_the_last_call_is_no_failure():
    """The other one's card works on alone: it draws its pictures."""
    two = Two()
    two.call(0, 3), two.call(1, 3)
    two.busy[1] = False
    two.board.left[1] = two.late[1].counts()
    assert two.look(60) is None
    two.call(0, 3)
    assert "rank 1 has left the job" in two.look(5).text


def test_groups_of_the_same_ranks_have_numbers_of_their_own():
    two = Two()
    second = [late.record([0, 1], lambda: True) for late in two.late]
    assert second[0].name == second[1].name != two.records[0].name
    two.call(0, 3), two.call(1, 3)
    second[0].note("broadcast", "root=0", weft.int8, (2,))
    assert two.look(20) is None


def test_only_calls_that_both_keep_are_compared():
    told = {0: [[5, "a"], [6, "b"]], 1: [[n, "x"] for n in range(1, 5)] + [[5, "a"]]}
    record = Record("0-1#0", [0, 1], lambda: True)
    assert first_difference(record, told) is None
    assert "call 6" in first_difference(record, {**told, 1: [[6, "c"]]})


def test_a_call_that_is_made_while_others_are_told_keeps_its_number():
    """The watch's thread reads between any two steps of note()."""
    two = Two()
    record = two.records[0]

    class Between(collections.deque):
        def append(self, call):
            seen.append(record.told())
            super().append(call)
            seen.append(record.told())

    seen, record.last = [], Between(maxlen=64)
    for n in range(100):
        two.call(0, n)
    want = {n + 1: f"all_reduce(sum) of float32[{n}]" for n in range(100)}
    assert all(want[number] == text for told in seen for number, text in told)
