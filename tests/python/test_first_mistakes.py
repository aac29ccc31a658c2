# SPDX-License-Identifier: Apache-2.0
"""What users of TVM, PyTorch and JAX type first by habit: each is answered with what to write instead."""

import pytest
import weft
from weft import te


def product(n=8):
    a, b = te.placeholder((n, n), name="A"), te.placeholder((n, n), name="B")
    k = te.reduce_axis(n, "k")
    return a, b, te.compute((n, n), lambda i, j: te.sum(a[i, k] * b[k, j], axis=k), name="C")


@pytest.mark.parametrize(
    "owner, name, says",
    [
        (te, "create_schedule", "weft.Schedule(te.create_prim_func("),
        (te, "thread_axis", 'sch.bind(loop, "threadIdx.x")'),
        (weft, "lower", "weft compile"),
        (weft, "nd", "weft.asarray(x, device="),
        (weft, "jit", "weft.compile"),
        (weft.Schedule, "tile", "sch.reorder"),
        (weft.Schedule, "vectorise", "did you mean 'vectorize'?"),
        (weft.Schedule, "get_block_by_name", "did you mean 'get_block'?"),
    ],
)
def test_a_name_that_is_spelled_otherwise(owner, name, says):
    thing = owner(te.create_prim_func([*product()])) if owner is weft.Schedule else owner
    with pytest.raises(AttributeError) as caught:
        getattr(thing, name)
    assert name in str(caught.value) and says in str(caught.value)


def test_every_suggestion_is_of_a_name_that_weft_lacks():
    from weft import _names

    for owner, table in (
        (weft, _names.SUGGESTIONS),
        (te, _names.TE),
        (weft.Schedule, _names.STEPS),
    ):
        assert [name for name in table if hasattr(owner, name)] == []


@pytest.mark.parametrize(
    "step, says",
    [
        (lambda s, i, t: s.split(i, 4), ["[None, 4]"]),
        (lambda s, i, t: s.parallel("i"), ["sch.get_loops(block)"]),
        (lambda s, i, t: s.get_loops(3), ['sch.get_block("C")']),
        (lambda s, i, t: s.get_block(t), ["te.Tensor(C", 'sch.get_block("C")']),
        (lambda s, i, t: s.cache_read(t, 0, "shared"), ['sch.get_block("C")']),
    ],
)
def test_an_argument_of_another_kind(step, says):
    tensors = product()
    sch = weft.Schedule(te.create_prim_func([*tensors]))
    loop = sch.get_loops(sch.get_block("C"))[0]
    before = sch.script()
    with pytest.raises(weft.Error) as caught:
        step(sch, loop, tensors[2])
    assert caught.value.code == "schedule.argument.type" and sch.script() == before
    assert all(text in caught.value.help or text in str(caught.value) for text in says)
    assert caught.value.help


@pytest.mark.parametrize(
    "target, code, says",
    [
        ("llvm", "target.unknown", 'did you mean "cpu"?'),
        ("gpu", "target.unknown", 'did you mean "cuda"?'),
        ("cuda -arch=sm_90", "target.parse", "cuda:arch=sm_90"),
        ("cuda --arch=sm_90 -max_threads_per_block=256", "target.parse", "cuda:arch=sm_90,max_threads_per_block=256"),
        (" ", "target.parse", ""),
    ],
)  # fmt: skip
def test_a_target_in_the_words_of_others(target, code, says):
    with pytest.raises(weft.ArgumentError) as caught:
        weft.build(te.create_prim_func([*product()]), target=target)
    assert caught.value.code == code and says in caught.value.help


@pytest.mark.parametrize(
    "words, meant",
    [(["complie", "f.weft"], "compile"), (["new", "oops", "x"], "op"), (["demos"], "demo")],
)
def test_a_verb_that_is_misspelt(words, meant, capsys):
    from weft import cli

    with pytest.raises(SystemExit) as stop:
        cli.main(words)
    assert stop.value.code == 2 and f"did you mean {meant!r}?" in capsys.readouterr().err


@pytest.mark.parametrize("thing", [product()[2], list(product()), 3])
def test_what_is_no_program(thing):
    with pytest.raises(weft.Error) as caught:
        weft.Schedule(thing)
    assert "te.create_prim_func" in caught.value.help
