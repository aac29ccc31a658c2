# SPDX-License-Identifier: Apache-2.0
"""What VTA cannot do ends in an error that names the block, the statement and the rule; configurations that
contradict themselves too."""

import numpy as np
import pytest
from weft.vta import op

import weft
from weft import script as T
from weft import te

pytestmark = pytest.mark.targets("vta")


def refusal(func, target="vta"):
    with pytest.raises(weft.Error) as caught:
        weft.build(func, target=target)
    return caught.value


def product(a="int8", b="int8", acc="int32", shape=(8, 8, 8), index=None):
    m, n, k = shape
    A, B = te.placeholder((m, k), a, name="A"), te.placeholder((k, n), b, name="B")
    r = te.reduce_axis((0, k), name="r")
    at = index or (lambda i, r: (i, r))
    return te.create_prim_func(
        [
            A,
            B,
            te.compute(
                (m, n),
                lambda i, j: te.sum(A[at(i, r)].astype(acc) * B[r, j].astype(acc), axis=r),
                name="C",
            ),
        ]
    )


def unary(f, dtype="int32", out="int32", n=12):
    A = te.placeholder((n,), dtype, name="A")
    return te.create_prim_func([A, te.compute((n,), lambda i: f(A, i).astype(out), name="C")])


def reducer(f):
    A = te.placeholder((4, 6), "int32", name="A")
    r = te.reduce_axis((0, 6), name="r")
    return te.create_prim_func([A, te.compute((4,), lambda i: f(A[i, r], axis=r), name="C")])


CASES = {
    "float": (lambda: product("float32", "float32", "float32"), "target.dtype", "float32"),
    "narrow sums": (lambda: product(acc="int16"), "vta.accepts.dtype", "accumulates in int16"),
    "wide factors": (
        lambda: product(a="int16"),
        "vta.accepts.dtype",
        "GEMM multiplies int8 by int8",
    ),
    "product of all": (lambda: reducer(te.prod), "vta.accepts.reduction", "legal: add, min, max"),
    "no affine factor": (
        lambda: product(index=lambda i, r: (i, (r * r) % 8)),
        "vta.accepts.operand",
        "affine indices",
    ),
    "division": (lambda: unary(lambda a, i: a[i] // 3), "vta.accepts.operation", "powers of two"),
    "long shift": (lambda: unary(lambda a, i: a[i] >> 40), "vta.accepts.operation", "shifts by 40"),
    "odd division of an index": (
        lambda: unary(lambda a, i: a[i // 5] + 1),
        "vta.accepts.index",
        "divisions must divide the extents",
    ),
    "negative to unsigned": (
        lambda: unary(lambda a, i: a[i], out="uint8"),
        "vta.accepts.dtype",
        "clip it first",
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_refusals_name_the_rule(name):
    make, code, text = CASES[name]
    error = refusal(make())
    assert error.code == code, str(error)
    assert text in str(error)
    if code.startswith("vta."):
        assert 'block "C"' in str(error) and "statement" in str(error)


def test_loops_without_scopes_only_tell_which_elements():
    sch = weft.Schedule(op.matmul(8, 8, 8))
    i, _, _ = sch.get_loops(sch.get_block("total"))
    sch.split(i, [None, 3])
    assert weft.accepts(sch, "vta") is None
    module = weft.build(sch, target="vta")
    random = np.random.default_rng(1)
    a, b = (random.integers(-9, 9, (8, 8)).astype("int8") for _ in range(2))
    held = [weft.asarray(x, device="vta") for x in (a, b, np.zeros((8, 8), "int8"))]
    module["main"](*held)
    np.testing.assert_array_equal(held[2].numpy(), (a.astype("int32") @ b).astype("int8"))


def test_blocks_out_of_order():
    @T.prim_func
    def main(A: T.Buffer((16,), "int32"), C: T.Buffer((16,), "int32")):
        B = T.alloc_buffer((16,), "int32")
        for i in T.grid(16):
            with T.block("C"):
                v = T.axis.remap("S", [i])
                C[v] = B[v] + 1
        for i in T.grid(16):
            with T.block("B"):
                v = T.axis.remap("S", [i])
                B[v] = A[v] + 1

    error = refusal(main)
    assert error.code == "vta.accepts.order"
    assert '"B"' in str(error)


SMALL = {
    "TARGET": "sim",
    "HW_VER": "0.0.2",
    "LOG_INP_WIDTH": 3,
    "LOG_WGT_WIDTH": 3,
    "LOG_ACC_WIDTH": 5,
    "LOG_BATCH": 0,
    "LOG_BLOCK": 4,
    "LOG_UOP_BUFF_SIZE": 15,
    "LOG_INP_BUFF_SIZE": 15,
    "LOG_WGT_BUFF_SIZE": 18,
    "LOG_ACC_BUFF_SIZE": 17,
}


def test_env_has_the_documented_numbers():
    env = weft.vta.env()
    assert (env.BATCH, env.BLOCK_IN, env.BLOCK_OUT) == (1, 16, 16)
    assert (env.INP_WIDTH, env.WGT_WIDTH, env.ACC_WIDTH, env.OUT_WIDTH) == (8, 8, 32, 8)
    assert (env.inp_dtype, env.wgt_dtype, env.acc_dtype, env.out_dtype) == (
        "int8",
        "int8",
        "int32",
        "int8",
    )
    assert (env.inp_scope, env.wgt_scope, env.acc_scope) == ("vta.inp", "vta.wgt", "vta.acc")
    assert (env.WGT_BUFF_SIZE, env.ACC_BUFF_SIZE) == (256 << 10, 128 << 10)
    assert env.peak_ops == 51.2e9
    assert env.describe().splitlines() == [
        "Weights are 16 by 16, of type int8",
        "Input activations are 1 by 16, of type int8",
        "Output activations are 1 by 16, of type int32",
        "Weight buffer requires 2048 bits per cycle of read xput",
        "Input buffer requires 128 bits per cycle of read xput",
        "Register file requires 512 bits per cycle of read & write xput",
    ]
    other = weft.vta.env("4x8x8")
    assert (other.BATCH, other.BLOCK_IN, other.BLOCK_OUT) == (4, 8, 8)


def test_configurations_as_files_and_dicts(tmp_path):
    env = weft.vta.env(dict(SMALL, TARGET="ultra96"))
    assert env.TARGET == "ultra96" and env.clock_hz == 333e6
    import json

    path = tmp_path / "vta_config.json"
    path.write_text(json.dumps(SMALL))
    assert weft.vta.env(path).WGT_ELEM_BYTES == 256
    for key, value, code in (
        ("LOG_ACC_BUFF_SIZE", 30, "vta.config."),
        ("LOG_BLOCK", 9, "vta.config."),
        ("TARGET", "toaster", "vta.config.target"),
    ):
        with pytest.raises(weft.Error) as caught:
            weft.vta.env(dict(SMALL, **{key: value}))
        assert caught.value.code.startswith(code), str(caught.value)
    with pytest.raises(weft.Error) as caught:
        weft.vta.env("9x9x9")
    assert caught.value.code == "vta.config.sample"


def test_memories_too_small_for_the_smallest_tiles():
    env = weft.vta.env(dict(SMALL, LOG_ACC_BUFF_SIZE=7))  # two accumulator elements
    func = op.elementwise((4, 16), lambda a, b: (a + b) * (a - b), ("int32", "int32"), "int32")
    error = refusal(func, env.target)
    assert error.code == "vta.accepts.capacity"
    assert "of 2 elements" in str(error)


def test_a_module_of_another_configuration():
    module = weft.build(op.matmul(16, 16, 16), target="vta:1x32x32")
    device = weft.device("vta")
    arrays = [weft.asarray(np.zeros((16, 16), np.int8), device=device) for _ in range(3)]
    with pytest.raises(weft.Error) as caught:
        module["main"](*arrays)
    assert caught.value.code == "vta.binary.config"
    assert "1x32_i8w8a32" in str(caught.value)


def test_resnet18_small_on_three_configurations():
    for config in ("sim", "4x8x8", "1x32x32"):
        net = weft.vta.net.resnet18(weft.vta.env(config), size=32, classes=100)
        image = net.image(3)
        got, report = net.run(image)
        want = net.reference(image)
        np.testing.assert_allclose(got, want, rtol=1e-5)
        for layer in net.layers[:-1]:  # integers: exactly
            mine, theirs = net.values[layer.name], net.expected[layer.name]
            if net.env.BATCH > 1 and mine.ndim == 6:  # the padding lanes of the batch hold anything
                mine, theirs = mine[:, :, :, :, :1], theirs[:, :, :, :, :1]
            np.testing.assert_array_equal(mine, theirs, err_msg=layer.name)
        elsewhere = [
            (name, target, reason) for name, target, reason, _ in report if target == "cpu"
        ]
        assert [name for name, _, _ in elsewhere] == ["probabilities"]
        assert "target.dtype" in elsewhere[0][2]
        assert sum(cycles for *_, cycles in report) > 100_000


def test_debug_chooses_what_a_listing_shows():
    func = op.matmul(16, 16, 16)
    parts = {
        debug: weft.build(func, target=f"vta:debug={debug}").source()
        for debug in ("2", "0x6", "insn+uop", "uop", "14", "insn+uop+barrier")
    }
    assert parts["0x6"] == parts["insn+uop"] and parts["14"] == parts["insn+uop+barrier"]
    assert "gemm" in parts["2"] and "uop 0" not in parts["2"]
    assert "uop 0" in parts["0x6"] and "uop 0" in parts["uop"]
    assert "load inp" not in parts["uop"]
    assert parts["14"].count("pop=-") > parts["0x6"].count("pop=-")
    for bad in ("16", "everything", "1"):
        error = refusal(func, f"vta:debug={bad}")
        assert error.code == "vta.option.debug" and bad in str(error)


def test_only_chips_with_loadable_logic_take_a_bitstream():
    remote = weft.rpc.local("cpu")
    remote.program()
    with pytest.raises(weft.Error) as caught:
        remote.program(b"bits")
    assert caught.value.code == "rpc.program.fixed"
    assert "4 bytes" in str(caught.value)
