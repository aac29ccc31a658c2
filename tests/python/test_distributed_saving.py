# SPDX-License-Identifier: Apache-2.0
"""Checkpoints of several ranks: killed and full in the middle, folders that differ, every type, other numbers of ranks."""

import json
import os

import pytest
from launchers import mpirun, needs_mpi, program  # noqa: F401

import weft
from weft import distributed as dist


@needs_mpi
@pytest.mark.parametrize("when", ["before", "after"])
def test_a_rank_killed_while_saving_leaves_the_last_checkpoint(program, jobs, tmp_path, when):  # noqa: F811
    folder = tmp_path / "checkpoint"
    path = program(f"""
        import os, signal, sys
        dist.init()
        dist.save_sharded({str(folder)!r}, {{"x": weft.ones((1000,))}}, metadata=1)
        write = weft.save_safetensors
        def die(*args):
            if sys.argv[1] == "after":
                write(*args)
            os.kill(os.getpid(), signal.SIGKILL)
        if dist.rank() == 1:
            weft.save_safetensors = die
        dist.save_sharded({str(folder)!r}, {{"x": weft.zeros((1000,))}}, metadata=2)
    """)
    status, text = mpirun(2, path, when)
    assert status != 0, text
    state, metadata = dist.load_sharded(folder)
    assert metadata == 1 and float(weft.sum(state["x"])) == 1000
    again = program(f"""
        dist.init()
        dist.save_sharded({str(folder)!r}, {{"x": weft.zeros((1000,))}}, metadata=3)
    """)
    status, text = jobs("mpirun", 2, again)
    assert status == 0, text
    assert sorted(name[:5] for name in os.listdir(folder)) == ["index", "part-", "part-"]


@needs_mpi
def test_a_full_disk_leaves_the_last_checkpoint(program, jobs, tmp_path):  # noqa: F811
    folder = tmp_path / "checkpoint"
    path = program(f"""
        import os, resource, signal
        dist.init()
        dist.save_sharded({str(folder)!r}, {{"x": weft.ones((1000,))}}, metadata=1)
        if dist.rank() == 1:
            signal.signal(signal.SIGXFSZ, signal.SIG_IGN)
            before = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (1000, before[1]))
        try:
            dist.save_sharded({str(folder)!r}, {{"x": weft.zeros((1000,))}}, metadata=2)
        except weft.IOError as problem:
            assert problem.code == "distributed.checkpoint.save" and "rank 1" in problem.message, problem
            print("told", dist.rank())
        if dist.rank() == 1:
            resource.setrlimit(resource.RLIMIT_FSIZE, before)
        state, metadata = dist.load_sharded({str(folder)!r})
        assert metadata == 1 and float(weft.sum(state["x"])) == 1000
        dist.barrier()
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("told") == 2, text
    assert sum(name.startswith("part-") for name in os.listdir(folder)) == 2


@needs_mpi
def test_ranks_that_save_in_different_folders_are_told(program, jobs, tmp_path):  # noqa: F811
    path = program(f"""
        import os
        dist.init()
        r = dist.rank()
        try:
            dist.save_sharded({str(tmp_path)!r} + f"/{{r}}", {{"x": weft.ones((10,))}})
        except weft.IOError as problem:
            assert problem.code == "distributed.checkpoint.save" and "does not find there what rank 1" in problem.message, problem
            assert os.listdir({str(tmp_path)!r} + f"/{{r}}") == []
            print("told", r)
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("told") == 2, text


@needs_mpi
def test_checkpoints_of_every_type_and_of_odd_extents(program, jobs, tmp_path):  # noqa: F811
    path = program(f"""
        import sys
        import numpy as np
        dist.init()
        kinds = "bool int8 uint16 int64 uint64 float16 bfloat16 float64 complex64 complex128 float8_e4m3fn float8_e5m2".split()
        numbers = np.random.default_rng(1).integers(0, 2, (7, 3)).astype("float32")
        state = {{}}
        for kind in kinds:
            for a in (numbers, numbers[0, 0], numbers[:0], numbers[:1]):
                state[f"{{kind}} {{a.shape}}"] = weft.asarray(a).astype(getattr(weft, kind))
        state["turned"] = weft.asarray(numbers).astype(weft.complex128).T * 1j
        if sys.argv[1] == "save":
            dist.save_sharded({str(tmp_path)!r}, state)
        got, _ = dist.load_sharded({str(tmp_path)!r})
        assert set(got) == set(state)
        for name, x in state.items():
            assert got[name].shape == x.shape and got[name].dtype == x.dtype and got[name].tolist() == x.tolist(), name
        print("ok", dist.rank())
    """)
    for ranks, what in ((3, "save"), (2, "load")):
        status, text = jobs("mpirun", ranks, path, what)
        assert status == 0 and text.count("ok") == ranks, text


@needs_mpi
def test_metadata_that_json_cannot_hold_is_refused_on_every_rank(program, jobs, tmp_path):  # noqa: F811
    folder = tmp_path / "checkpoint"
    path = program(f"""
        dist.init()
        dist.save_sharded({str(folder)!r}, {{"x": weft.ones((10,))}}, metadata={{"step": 1}})
        loop = []
        loop.append(loop)
        for metadata in (dict(a=weft.ones((2,))), {{(1, 2): 3}}, loop):
            try:
                dist.save_sharded({str(folder)!r}, {{"x": weft.zeros((10,))}}, metadata)
            except weft.ArgumentError as problem:
                assert problem.code == "distributed.checkpoint.metadata", problem
                print("told", dist.rank())
        assert dist.load_sharded({str(folder)!r})[1] == {{"step": 1}}
    """)
    status, text = jobs("mpirun", 2, path)
    assert status == 0 and text.count("told") == 6, text


@pytest.mark.parametrize("change", [lambda row: row.update(shape=[3, 5]), lambda row: row["pieces"][0].update(starts=[1, 0])])  # fmt: skip
def test_pieces_that_reach_beyond_their_array_are_refused(change, tmp_path):
    dist.init()
    try:
        dist.save_sharded(tmp_path, {"x": weft.ones((4, 5))})
    finally:
        dist.shutdown()
    index = json.loads((tmp_path / "index.json").read_text())
    change(index["arrays"]["x"])
    (tmp_path / "index.json").write_text(json.dumps(index))
    with pytest.raises(weft.IOError) as caught:
        dist.load_sharded(tmp_path)
    assert caught.value.code == "distributed.checkpoint.load" and "a piece (4, 5)" in str(caught.value)  # fmt: skip
