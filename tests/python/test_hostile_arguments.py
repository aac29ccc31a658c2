# SPDX-License-Identifier: Apache-2.0
"""Arguments that fight back: a drawn part of all calls in processes of their own, and each kind of fault that such calls found.
`WEFT_TEST_CALLS=3000 WEFT_TEST_SEED=7 pytest -s tests/python/test_hostile_arguments.py` draws more callables, with other values."""

import json
import os
import random
import subprocess
import sys

import hostile_calls
import numpy as np
import pytest
import weft
from hostile_values import VALUES, Fight, doubled, having, in_one_another, raises
from present import remote_devices

COUNT, SEED = (
    int(os.environ.get("WEFT_TEST_CALLS", "90")),
    int(os.environ.get("WEFT_TEST_SEED", "22")),
)
BATCH = 30
CALLED = (
    random.Random(SEED).sample(hostile_calls.names(), COUNT)
    if COUNT < 3000
    else hostile_calls.names()
)


def answers(names, folder, seed=SEED, alone=12, beside=12):
    """(lines of what came out that must not, what was printed); a process that ends is a line, and the next call goes on."""
    out, printed, rest, skip = [], b"", list(names), 0
    while rest:
        (folder / "at").write_bytes(b"")
        options = dict(
            names=rest,
            skip=skip,
            seed=seed,
            alone=alone,
            beside=beside,
            seconds=10,
            at=str(folder / "at"),
        )
        code = f"import os,sys; os.dup2(os.open({str(folder / 'lines')!r}, os.O_WRONLY | os.O_CREAT | os.O_TRUNC), 3); sys.argv[1:] = [{json.dumps(options)!r}]; import hostile_calls; hostile_calls.main()"
        path = os.pathsep.join([os.path.dirname(hostile_calls.__file__), *filter(None, sys.path)])
        ended = subprocess.run([sys.executable, "-c", code], cwd=folder, env={**os.environ, "PYTHONPATH": path}, stdin=subprocess.DEVNULL, capture_output=True)  # fmt: skip
        out += [": ".join(json.loads(line)) for line in (folder / "lines").read_text().splitlines()]
        if ended.returncode == 0:
            return out, printed + ended.stdout + ended.stderr
        at = (folder / "at").read_bytes().decode(errors="replace").strip()
        out.append(
            f"{at}: ended with {ended.returncode}: {ended.stderr[-600:].decode(errors='replace')}"
        )
        number, name = at.split(":")[0].split(" ", 1)
        rest, skip = rest[rest.index(name) :], int(number)
    return out, printed


@pytest.mark.parametrize("first", range(0, len(CALLED), BATCH))
def test_only_errors_of_weft_or_of_the_argument_come_out(first, tmp_path):
    wrong, printed = answers(CALLED[first : first + BATCH], tmp_path)
    assert not wrong, "\n".join(wrong)
    assert not printed, printed[:2000]


def test_a_call_that_ends_the_process_is_seen(tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONFAULTHANDLER", "")
    (tmp_path / "sitecustomize.py").write_text(
        "import os, weft\nweft.asarray = lambda *a, **k: os.kill(os.getpid(), 11)\nweft.asarray.__module__ = 'weft'\n"
    )
    monkeypatch.syspath_prepend(str(tmp_path))
    wrong, _ = answers(["weft|asarray", "weft|add"], tmp_path, alone=1, beside=0)
    assert len(wrong) == 1 and "asarray" in wrong[0] and "ended with -11" in wrong[0]


# ---- each kind of fault


def refused(code, f, *words):
    with pytest.raises(weft.Error) as caught:
        f()
    assert caught.value.code == code, caught.value
    assert all(w in str(caught.value) for w in words), caught.value


@pytest.mark.parametrize(
    "call", [weft.asarray, weft.acosh, weft.argsort, weft.atleast_1d], ids=lambda f: f.__name__
)
def test_lists_that_lie_about_their_length_are_what_they_hold(call):
    given = VALUES["lying list"]()
    assert (weft.asarray(call(given)).numpy() == weft.asarray(call([2, 3])).numpy()).all()


@pytest.mark.parametrize("length", [1, 5])
def test_sequences_of_another_length_than_they_say(length):
    given = having(len=lambda s: length, getitem=lambda s, i: [1.0, 2.0, 3.0][i])
    refused(
        "array.asarray.length",
        lambda: weft.asarray(given),
        f"of length {length} has {'more' if length == 1 else 3} entries",
    )
    endless = having(len=lambda s: length, getitem=lambda s, i: 1.0)
    refused("array.asarray.length", lambda: weft.asarray(endless), "more entries", "list(...)")
    fits = having(len=lambda s: 3, getitem=lambda s, i: [1.0, 2.0, 3.0][i])
    assert weft.asarray(fits).tolist() == [1, 2, 3]


def test_lists_that_change_while_they_are_read():
    outer = []
    outer += [having(len=lambda s: (outer.clear(), 1)[1], getitem=lambda s, i: [2.0][i]), [3.0]]
    refused(
        "array.asarray.changed", lambda: weft.asarray(outer), "a list of 2 entries has 0", "copy"
    )


@pytest.mark.parametrize("leaf", [1.0, "array"])
@pytest.mark.parametrize(
    "call", [weft.asarray, weft.exp, weft.argsort, lambda x: weft.ones(2) + x, weft.nn.BatchNorm1d]
)
def test_few_lists_of_more_entries_than_memory(leaf, call):
    given = doubled(weft.ones(2) if leaf == "array" else leaf)
    with pytest.raises((weft.Error, TypeError)):
        call(given)
    if call is weft.asarray:
        refused(
            "array.asarray.size", lambda: call(given), "2199023255552 entries", "counts in each"
        )
        refused("array.asarray.size", lambda: call(range(10**18)), "1000000000000000000")


@pytest.mark.parametrize(
    "wrap", [lambda x: [x], lambda x: (x,), lambda x: {"a": x}], ids=["list", "tuple", "dict"]
)
@pytest.mark.parametrize(
    "call",
    [weft.asarray, weft.argsort, weft.exp, weft.concat, weft.te.exp],
    ids=lambda f: f.__name__,
)
def test_lists_nested_without_end(wrap, call):
    with pytest.raises(weft.Error):
        call(in_one_another(wrap))


def test_exporters_that_give_no_capsule():
    for name in ("exports what it is not", "exports 3"):
        with pytest.raises(BufferError, match="__dlpack__ gave a .*, not a capsule"):
            weft._core._from_dlpack(VALUES[name](), None, None)
        with pytest.raises(weft.Error):
            weft.from_dlpack(VALUES[name]())


def test_expressions_and_programs_are_converted_once():
    for call in (
        weft.te.exp,
        weft.te.create_prim_func,
        weft.build,
        weft.Schedule,
        weft.ir.PrimFunc,
    ):
        with pytest.raises(weft.Error):
            call(VALUES["everything"]())
    assert str(weft.te.exp(np.float32(2))) == str(weft.te.exp(weft.te.const(2.0)))


def test_values_of_programs_have_a_depth():
    sch = weft.Schedule(hostile_calls.hostile_values.program())
    block = sch.get_block("b")
    refused(
        "python.value.depth",
        lambda: sch.annotate(block, "a", {"a": in_one_another(lambda x: {"a": x}, 200)}),
        "100 levels",
    )
    refused(
        "schedule.argument.depth",
        lambda: sch.reorder(in_one_another(lambda x: [x], 20)),
        "8 levels",
    )
    sch.annotate(block, "a", {"a": in_one_another(lambda x: {"a": x}, 50)})


def test_truth_values_that_are_refused():
    for keywords in ({"keepdims": weft.ones(3)}, {"keepdim": having(bool=raises)}):
        for method in ("sum", "prod", "max", "all"):
            with pytest.raises((weft.DTypeError, Fight)):
                getattr(weft.ones((2, 3)), method)(0, **keywords)
    with pytest.raises(weft.DTypeError):
        weft.ones((2, 3)).prod(0, weft.ones(3))
    assert weft.ones((2, 3)).sum(0, 1).shape == (1, 3)


def test_arguments_in_disguise_are_refused_by_their_type():
    with pytest.raises(weft.DTypeError, match="Disguised"):
        weft.addcmul(VALUES["an array by name"](), 3, 4)


def test_states_are_mappings():
    for given in (iter(()), ["weight"], VALUES["everything"]()):
        with pytest.raises(weft.Error):
            weft.nn.Linear(3, 4).load_state_dict(given)
        with pytest.raises(weft.Error):
            weft.optim.SGD([weft.Tensor(weft.ones(3), requires_grad=True)], lr=0.1).load_state_dict(
                given
            )


def test_borders_of_too_many_sides_are_not_read_to_their_end():
    def sides():
        while True:
            yield 1

    layer = weft.nn.ConstantPad2d(sides())
    assert len(layer.padding) == 5
    with pytest.raises(weft.Error):
        layer(weft.ones((1, 2, 3, 3)))


def test_functions_of_vta_are_guarded():
    for call in (
        weft.vta.op.matmul,
        weft.vta.op.concatenated,
        weft.vta.picture.timeline,
        weft.vta.picture.spans,
    ):
        with pytest.raises(weft.Error) as caught:
            call(3, "a", None, 5, 6, 7)
        assert caught.value.code in ("python.arguments", "python.expression")


@pytest.mark.parametrize("dtype", ["float8_e4m3fn", "float8_e5m2", "float16", "bfloat16"])
@pytest.mark.parametrize("name", ["softmax", "log_softmax", "logsumexp", "layer_norm"])
def test_rows_of_narrow_floats(dtype, name):
    """Computed in float32 and rounded once."""
    x = weft.asarray(np.linspace(-2, 2, 35).reshape(5, 7)).astype(dtype)
    rest = [weft.ones(7, dtype=dtype), weft.zeros(7, dtype=dtype)] if name == "layer_norm" else []
    wide = getattr(weft, name)(x.astype("float32"), *(r.astype("float32") for r in rest))
    assert (
        getattr(weft, name)(x, *rest).astype("float32").numpy()
        == wide.astype(dtype).astype("float32").numpy()
    ).all()


def test_sequences_without_a_length_and_positions_beyond_64_bits():
    placeholder = VALUES["placeholder"]()
    for call in (weft.asarray, weft.nn.Parameter, weft.NDArray):
        refused("array.asarray.type", lambda: call(placeholder), "te.Tensor")  # noqa: B023
    refused("array.asarray.type", lambda: weft.NDArray(range(10**400)), "range")
    for position in (10**400, -(2**70)):
        refused("array.index.range", lambda: weft.ones(3)[position], "float32[3]")  # noqa: B023
        refused("array.index.range", lambda: weft.ones(3).item(position), "float32[3]")  # noqa: B023


@pytest.mark.parametrize(
    "big", [2**31, -(2**31) - 1, 2**63, 2**70, 10**400, 10**5000], ids=range(6)
)
def test_integers_beyond_their_parameter_are_refused_by_their_size(big):
    x = weft.ones((3, 4))
    calls = {
        "sort": lambda: weft.sort(x, axis=big),
        "argsort": lambda: weft.argsort(x, axis=big),
        "method": lambda: x.sort(big),
        "axis": lambda: weft.repeat(x, 2, big),
        "name": lambda: weft._core._sort(x, big, False),
    }
    for name, call in calls.items():
        with pytest.raises((weft.ArgumentError, weft.IndexError)) as caught:
            call()
        if caught.value.code == "python.arguments.range":
            text = "64 bits" if not -(2**63) <= big < 2**63 else "32 bits"
            assert f"it is not within {text}" in caught.value.message, name
            assert "a number that the shapes" in caught.value.help
        else:
            assert caught.value.code.endswith((".range", ".axis", ".overflow")), caught.value
    refused("python.arguments.range", calls["name"], "_sort() takes no argument 2 of ", "accepted:")
    # What fits no parameter by its type stays an error of types.
    with pytest.raises(weft.DTypeError):
        weft._core._sort(x, "a", big)


def test_texts_of_errors_have_an_end():
    long = "x" * 10**6
    for call in (
        lambda: weft.device(long),
        lambda: weft.ones(3, dtype=long),
        lambda: weft.ones(3, device=long),
        lambda: weft.einsum(long, weft.ones(3)),
        lambda: weft.isdtype("float32", long),
        lambda: weft.te.placeholder((4,), long),
        lambda: weft.pad(weft.ones(3), 1, mode=long),
        lambda: weft.script.from_source(long),
        lambda: weft.load_arrays(long),
        lambda: weft.nn.Linear(2, 3).load_state_dict({long: weft.ones(3)}),
        lambda: weft.distributions.Normal(long, 1.0),
    ):
        with pytest.raises(weft.Error) as caught:
            call()
        error = caught.value
        assert len(str(error)) < 20000 and len(error.message) < 4100, len(str(error))
        assert all(len(n) < 4100 for n in (error.help, *error.notes))
    made = weft._errors.error("value", "a.b", "é" * 10**5, notes=["n" * 10**5], help="the repair")
    assert str(made).endswith("= help: the repair") and len(str(made).encode()) < 9000
    assert "bytes more) ..." in made.message and made.message.strip("é ").startswith("... (")
    assert weft._core.bounded("é" * 2000) == "é" * 2000


def test_quoted_values_end_whatever_holds_them():
    class Numbers(list):
        pass

    lists = doubled(1.0)
    for value in (lists, slice(None, lists), Numbers(lists), {"a": Numbers(lists)}, [10**5000], 10**5000):  # fmt: skip
        assert len(weft._core.shown(value)) <= 200
    assert weft._core.shown(slice(1, None)) == "slice(1, None, None)"
    assert weft._core.shown(Numbers([1, 2])) == "[1, 2]" and weft._core.shown(True) == "True"


@pytest.mark.parametrize(
    "call",
    [
        lambda v: weft.errstate(v),
        lambda v: weft.te.max_value(v),
        lambda v: weft.te.placeholder((3,), v),
        lambda v: weft.ones(3).astype(v),
        lambda v: weft.nn.Linear(2, 3).type(v),
        lambda v: weft.random.Generator(3).standard_normal(3, dtype=v),
        lambda v: weft.polynomial.Polynomial([1.0, 2.0]).truncate(v),
        lambda v: weft.format_float_positional(v),
        lambda v: weft.autocast("cpu", dtype=v),
        lambda v: weft.ones((2, 3)).tensor_split(v),
        lambda v: weft.script.prim_func(v),
        lambda v: weft.cuda.get_device_name(v),
        lambda v: weft.vmap(lambda x: x + 1)(v),
    ],
    ids=range(13),
)
@pytest.mark.parametrize("value", ["doubled numbers", "doubled arrays", "long range"])
def test_lists_in_lists_are_refused_and_not_written_out(call, value):
    with pytest.raises(weft.Error):
        call(VALUES[value]())


def test_parts_of_an_axis_are_counted_before_they_are_made():
    x = weft.asarray(np.arange(7, dtype=np.float32))
    for n in (2**62, 10**400):
        refused("array.split.sections", lambda: x.tensor_split(n), "1 to 10000000")  # noqa: B023
    refused("tensor.split", lambda: x.unsafe_split(range(10**400)), "axis 0 has 7")
    assert [p.shape[0] for p in x.tensor_split(3)] == [3, 2, 2]
    assert [p.tolist() for p in x.tensor_split((2, 5))] == [[0, 1], [2, 3, 4], [5, 6]]
    assert [p.tolist() for p in x.split([3, 4])] == [[0, 1, 2], [3, 4, 5, 6]]


def test_trees_of_arguments_have_so_many_leaves():
    with pytest.raises((weft.Error, TypeError)):
        weft.vmap(lambda x: x[0] + 1)(VALUES["lying list"]())
    for call in (lambda v: weft.vmap(lambda x: x)(v), lambda v: weft.grad(lambda x: x)(v)):
        refused("transform.tree.leaves", lambda: call(doubled(1.0)), "131072 leaves", "stack")  # noqa: B023


def test_kinds_in_tuples_in_tuples():
    assert weft.isdtype("float32", (("integral", ("bool",)), ("real floating",)))
    with pytest.raises(weft.Error):
        weft.isdtype("float32", in_one_another(lambda x: (x,)))


def test_a_host_without_memory_is_an_error_and_not_the_end(tmp_path):
    """Arrays are made until nothing is left: the last allocation fails somewhere in the middle of a call."""
    code = """
import resource, sys, weft
weft.asarray([1.0])
used = int(open("/proc/self/statm").read().split()[0]) * resource.getpagesize()
resource.setrlimit(resource.RLIMIT_AS, (used + (200 << 20),) * 2)
try:
    weft.data.default_collate(range(10**400))
except weft.OutOfMemoryError as error:
    print(error.code)
except MemoryError:
    print("host.memory")
"""
    done = subprocess.run([sys.executable, "-c", code], env={**os.environ, "PYTHONPATH": os.pathsep.join(filter(None, sys.path))}, capture_output=True, text=True, timeout=300)  # fmt: skip
    assert done.returncode == 0 and done.stdout.strip().endswith("memory"), done.stderr[-600:]


@pytest.mark.parametrize("given", [None, 2**70, -1, 10**400, "a", {}])
def test_constructors_that_take_no_such_argument(given):
    """nanobind marks calls of its constructors in the count of their arguments."""
    for make in (
        lambda: weft.Tensor(None, requires_grad=given),
        lambda: weft.Tensor(None, given, requires_grad=False),
        lambda: weft.Tensor(None),
        lambda: weft.Tensor(),
        lambda: weft.Schedule(given),
    ):
        with pytest.raises(weft.Error):
            make()


def test_positions_and_lengths_that_methods_do_not_give():
    x = weft.ones(3)
    index = VALUES["index 2.5"]()
    for call in (lambda: x[index], lambda: x.item(index), lambda: weft.ones((2, 3))[0, index]):
        refused("array.index.type", call, "gives no integer")
    with pytest.raises(weft.IndexError):
        x[index] = 1.0
    assert x[having(index=lambda s: 1)].item() == 1 and x.tolist() == [1, 1, 1]
    for call in (weft.nn.Parameter, weft.NDArray):
        refused("array.asarray.type", lambda: call(VALUES["length -1"]()), "cannot make an array")  # noqa: B023


def test_cuts_of_an_axis_are_integers():
    x = weft.arange(6)
    for cut in (2.0, "2", np.ma.masked, None):
        for call in (weft.array_split, weft.hsplit, lambda v, at: v.hsplit(at)):
            refused("array.split.cuts", lambda: call(x, [cut, 4]), "a cut at")  # noqa: B023
    for cuts in ([2, 4], np.array([2, 4]), weft.asarray([2, 4]), (np.int8(2), having(index=lambda s: 4))):  # fmt: skip
        assert [p.tolist() for p in weft.array_split(x, cuts)] == [[0, 1], [2, 3], [4, 5]]


def test_blocks_are_counted_before_they_are_joined():
    for leaf in (1.0, weft.ones(2)):
        refused("transform.tree.leaves", lambda: weft.block(doubled(leaf)), "131072 leaves")  # noqa: B023
    assert weft.block([[1, 2], [3, 4]]).tolist() == [[1, 2], [3, 4]]


def test_arguments_of_the_tuner_before_anything_is_tuned():
    program = hostile_calls.te_product()
    for seed in (-1, 1.5, "a", None, VALUES["everything"]()):
        refused("tune.seed", lambda: weft.tune(program, "ref", trials=1, seed=seed, database=":memory:"), "0 on")  # noqa: B023  # fmt: skip
    refused("tune.program", lambda: weft.tune(doubled(1.0)), "not a PrimFunc")
    with pytest.raises((weft.Error, Fight)):
        weft.tune(program, "ref", trials=1, database=":memory:", arguments=[having(array=raises), 1])  # fmt: skip
    found = weft.tune(program, "ref", trials=1, database=":memory:", arguments=[[1.0] * 4, np.zeros(4, np.float32)])  # fmt: skip
    assert isinstance(found, weft.Schedule)


def test_helpers_for_wafers_and_extensions_refuse_what_is_none():
    module = hostile_calls.module("cerebras.sdk.sdk_utils")
    for value in ("holds itself by index", "doubled numbers"):
        for call in (module.input_array_to_u32, module.calculate_cycles):
            with pytest.raises(weft.Error):
                call(VALUES[value]())
    assert module.input_array_to_u32(np.array([1, 2], np.uint16), 0, 2).tolist() == [1, 2 + (1 << 16)]  # fmt: skip
    for sources in ((0,), [None], "a"):
        with pytest.raises(weft.Error):
            weft.qpu.extension("a", sources)


def test_names_and_configurations_for_servers_are_not_written_out():
    remote_devices()
    remote = hostile_calls.remote()
    module = hostile_calls.OBJECTS["RemoteModule"]()
    for value in (doubled(1.0), doubled(weft.ones(2)), 3, None):
        refused("module.function.unknown", lambda: module.time_evaluator(value), "no function")  # noqa: B023
        with pytest.raises(weft.DTypeError):
            remote.reconfigure(value)
    refused("module.function.unknown", lambda: module["absent"], "'absent'")
