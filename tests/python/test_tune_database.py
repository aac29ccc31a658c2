# SPDX-License-Identifier: Apache-2.0
"""Tuning databases: used by weft.build, merged, shipped, and told apart when they cannot be used."""

import json
import sqlite3

import numpy as np
import pytest
import weft
from weft import te
from weft import tuning
from weft.tuning import best
from weft.tuning.database import Database
from weft.tuning.database import Trial


def scaled(n):
    a = te.placeholder((n,), "float32", name="A")
    return te.create_prim_func([a, te.compute((n,), lambda i: a[i] * 3.0, name="B")])


def split_by(program, factor):
    sch = weft.Schedule(program)
    loop = sch.get_loops(sch.get_child_blocks(sch.get_block("root"))[0])[0]
    sch.split(loop, [None, factor])
    return str(sch.trace.as_json())


def trial(program, v, seconds=None, failure=None, sketch="host"):
    trace = split_by(program, v) if sketch != "plain" else "[]"
    knobs = {"v": v} if sketch != "plain" else {}
    return Trial({"sketch": sketch, "knobs": knobs}, seconds, 0.0, failure, trace)


def written(path, program, *trials, target="cpu"):
    from weft import _core

    file = Database(path)
    for each in trials:
        file.add(f"{_core.structural_hash(program._core):x}", target, 0, each)
    file.close()
    return path


@pytest.fixture
def own(tmp_path, monkeypatch):
    """The user's own database is in this test's folder."""
    monkeypatch.setenv("WEFT_TUNE_DB", str(tmp_path / "own.db"))
    return tmp_path / "own.db"


def refused(function, *args, **kwargs):
    with pytest.raises(weft.IOError) as caught:
        function(*args, **kwargs)
    return caught.value.code, str(caught.value)


def runs(module, n):
    x = np.arange(n, dtype=np.float32)
    out = weft.zeros((n,), dtype="float32")
    module(weft.asarray(x), out)
    return np.array_equal(out.numpy(), x * 3)


def test_build_uses_what_was_tuned(own):
    f = scaled(96)
    assert weft.build(f).notes == weft.build(f, tuned=False).notes
    written(own, f, trial(f, 7, 2e-6), trial(f, 8, 1e-6), trial(f, 9, failure="x.y"))
    for program in (f, weft.IRModule({"main": f, "other": scaled(5)})):
        module = weft.build(program)
        assert module.notes[0] == f"main: a tuned schedule of {own} is used"
        assert not any("tuned" in note for note in weft.build(program, tuned=False).notes)
        x = np.arange(96, dtype=np.float32)
        out = weft.zeros((96,), dtype="float32")
        module["main"](weft.asarray(x), out)
        assert np.array_equal(out.numpy(), x * 3)
    expected = weft.build(weft.Schedule.replay(f, split_by(f, 8))).source()
    assert weft.build(f).source() == expected != weft.build(f, tuned=False).source()
    # A schedule says itself what is wanted; another target and program have no rows.
    for module in (weft.build(weft.Schedule(f)), weft.build(f, target="c"), weft.build(scaled(5))):
        assert not any("tuned" in note for note in module.notes)
    # The file is looked at again when it has changed.
    written(own, f, trial(f, 4, 1e-7))
    assert weft.build(f).source() == weft.build(weft.Schedule.replay(f, split_by(f, 4))).source()
    # The default schedule was the fastest: nothing is replaced.
    written(own, f, trial(f, 0, 1e-9, sketch="plain"))
    assert not any("tuned" in note for note in weft.build(f).notes)


def test_a_schedule_that_no_longer_replays_is_a_note(own):
    f = scaled(96)
    for trace in ("garbage", "[]", '{"format": "weft.trace", "version": 99, "steps": []}'):
        own.unlink(missing_ok=True)
        written(own, f, Trial({"sketch": "host", "knobs": {"v": 1}}, 1e-6, 0.0, None, trace))
        module = weft.build(f)
        assert "is not used, for it does not replay" in module.notes[0], module.notes
        assert runs(module, 96)


def test_a_database_that_cannot_be_used_is_a_note(own):
    f = scaled(96)
    for content in (b"no database" * 500, b"SQLite format 3\0" + b"\xff" * 5000, b""):
        own.write_bytes(content)
        best._read.clear()
        module = weft.build(f)
        assert module.notes[0].startswith(f"the tuning database {own} is not used"), content[:20]
        assert runs(module, 96)


def test_tuning_goes_into_the_users_database(tmp_path, monkeypatch):
    monkeypatch.delenv("WEFT_TUNE_DB")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "data"))
    f = scaled(4096)
    sch = weft.tune(f, trials=3, seed=1)
    path = tmp_path / "data" / "weft" / "tune.db"
    assert tuning.default_path() == path and path.exists()
    assert path.parent.stat().st_mode & 0o777 == 0o700
    assert weft.build(f).source() == weft.build(sch).source()
    (tmp_path / "file").write_text("")
    monkeypatch.setenv("XDG_DATA_HOME", str(tmp_path / "file"))
    code, text = refused(weft.tune, f, trials=1)
    assert code == "tune.database.folder" and "cannot be made" in text


def everything(path):
    file = Database(path, exists=True)
    out = {(r[0], r[1], json.loads(r[2])["knobs"]["v"]): (r[4], r[6]) for r in file.rows()}
    file.close()
    return {key[2]: value for key, value in out.items()}


def test_merging_keeps_the_best_and_loses_no_row(tmp_path):
    f = scaled(96)
    a = written(
        tmp_path / "a.db",
        f,
        trial(f, 2, 5e-6),
        trial(f, 3, 1e-6),
        trial(f, 4, failure="tune.limit"),
        trial(f, 5, 1e-6),
        trial(f, 6, failure="tune.wrong"),
        trial(f, 7, 9e-6),
    )
    b = written(
        tmp_path / "b.db",
        f,
        trial(f, 2, 4e-6),
        trial(f, 3, 2e-6),
        trial(f, 4, 8e-6),
        trial(f, 5, failure="tune.wrong"),
        trial(f, 6, 1e-6),
        trial(f, 8, 7e-6),
    )
    want = {2: (4e-6, None), 3: (1e-6, None), 4: (8e-6, None), 5: (None, "tune.wrong")}
    want |= {6: (None, "tune.wrong"), 7: (9e-6, None), 8: (7e-6, None)}
    for name, order in (("ab.db", (a, b)), ("ba.db", (b, a))):
        target = tmp_path / name
        assert [tuning.merge(source, database=target) for source in order] == [6, 6]
        assert tuning.merge(a, database=target) == 6  # once more changes nothing
        assert everything(target) == want
    assert tuning.export(tmp_path / "out.db", database=tmp_path / "ab.db") == 7
    assert everything(tmp_path / "out.db") == want
    assert sorted(p.name for p in tmp_path.iterdir() if "out" in p.name) == ["out.db"]
    code, text = refused(tuning.export, tmp_path / "ab.db", database=tmp_path / "ab.db")
    assert code == "tune.export.path" and "name another file" in text


def changed(path, *statements):
    file = sqlite3.connect(path)
    for statement in statements:
        file.execute(statement)
    file.commit()
    file.close()
    return path


def test_databases_that_cannot_be_merged_are_told_apart(tmp_path):
    f = scaled(96)
    good = written(tmp_path / "good.db", f, trial(f, 2, 5e-6))
    before = everything(good)

    def source(name, *statements):
        return changed(
            written(tmp_path / name, f, trial(f, 3, 1e-9), trial(f, 4, 1e-9)), *statements
        )

    (tmp_path / "text.db").write_text("no database " * 500)
    changed(tmp_path / "other.db", "create table birds(name text)")
    cases = [
        (source("old.db", "update meta set value='0'"), "tune.database.version", "version 0"),
        (
            source("new.db", "update meta set value='7'"),
            "tune.database.newer",
            "written by a newer weft",
        ),
        (tmp_path / "other.db", "tune.database.foreign", "its tables: birds"),
        (tmp_path / "text.db", "tune.database.damaged", "cannot be used as a tuning database"),
        (tmp_path / "absent.db", "tune.database.path", "cannot be opened"),
        (
            source("kinds.db", "update trials set seconds='fast' where rowid=2"),
            "tune.database.damaged",
            "'fast'",
        ),
        (
            source("json.db", "update trials set candidate='{' where rowid=2"),
            "tune.database.damaged",
            "cannot be",
        ),
        (
            source("minus.db", "update trials set seconds=-1.0 where rowid=2"),
            "tune.database.damaged",
            "-1.0",
        ),
        (source("gone.db", "drop table trials"), "tune.database.damaged", "trials"),
    ]
    for path, slug, text in cases:
        for use in (
            lambda path=path: tuning.merge(path, database=good),
            lambda path=path: tuning.export(tmp_path / "out.db", database=path),
        ):
            code, said = refused(use)
            assert code == slug and text in said, (path.name, said)
        assert everything(good) == before and not (tmp_path / "out.db").exists()
    assert not (tmp_path / "absent.db").exists()


def test_a_full_disk_loses_no_measurement(tmp_path):
    """Trials are kept in memory, the search goes on, and they are written when there is space again."""
    f = scaled(96)
    file = Database(tmp_path / "t.db")
    (pages,) = file._file.execute("pragma page_count").fetchone()
    file._file.execute(f"pragma max_page_count={pages}")
    with pytest.warns(RuntimeWarning, match="trials are not written yet.*cannot grow"):
        for v in range(2, 40):
            file.add("w", "cpu", 0, trial(f, v, 1e-6))
    code, _ = refused(file.add_rows, [("w", "c", "x" * 9000, 0, 1.0, 0.0, None, None)])
    assert code == "tune.database.full"
    file._file.execute("pragma max_page_count=100000")
    file.close()
    assert len(everything(tmp_path / "t.db")) == 38


def test_two_searches_on_one_database(tmp_path):
    """Both write; of a candidate that both measured the better time stays."""
    f = scaled(96)
    one, two = Database(tmp_path / "t.db"), Database(tmp_path / "t.db")
    for v in range(2, 9):
        one.add("w", "cpu", 0, trial(f, v, 1e-6))
        two.add("w", "cpu", 1, trial(f, v + 3, 2e-6 if v % 2 else 5e-7))
    one.close(), two.close()
    found = everything(tmp_path / "t.db")
    assert sorted(found) == list(range(2, 12)) and found[5] == (5e-7, None) and found[6][0] == 1e-6


def test_a_picture_of_a_search(tmp_path, monkeypatch):
    import sys

    f = scaled(96)
    path = written(tmp_path / "t.db", f, trial(f, 0, 2e-6, sketch="plain"), trial(f, 8, 1e-6))
    written(path, f, trial(f, 9, failure="tune.limit"))
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        pass  # the refusal below is what there is to see
    else:
        tuning.picture(tmp_path / "a.svg", f, database=path)
        assert "<svg" in (tmp_path / "a.svg").read_text()
        with pytest.raises(weft.Error, match="holds no measured trial") as caught:
            tuning.picture(tmp_path / "b.svg", scaled(5), database=path)
        assert caught.value.code == "tune.picture.empty" and not (tmp_path / "b.svg").exists()
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    monkeypatch.setitem(sys.modules, "matplotlib.backends.backend_svg", None)
    code, text = refused(tuning.picture, tmp_path / "c.svg", f, database=path)
    assert code == "tune.picture.absent" and "pip install matplotlib" in text


def test_a_candidate_is_known_whatever_the_order_of_its_decisions():
    from weft.tuning.database import Trial

    one = Trial({"sketch": "tile", "knobs": {"x": 4, "y": 8}})
    assert one.key == Trial({"knobs": {"y": 8, "x": 4}, "sketch": "tile"}).key


def test_trials_come_back_in_the_order_in_which_they_were_made(tmp_path):
    file = Database(tmp_path / "a.db")
    made = [{"sketch": name, "knobs": {"n": 9 - k}} for k, name in enumerate("zamcb")]
    for decisions in made:
        file.add("w", "cpu", 0, Trial(decisions, seconds=1.0, trace="[]"))
    assert [t.decisions for t in file.trials("w", "cpu")] == made
    file.close()
    again = Database(tmp_path / "a.db", exists=True)
    assert [t.decisions for t in again.trials("w", "cpu")] == made
    again.close()
