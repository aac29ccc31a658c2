# SPDX-License-Identifier: Apache-2.0
"""Threads in roles (docs/design/roles.md): exact on the interpreter, cubins without a card, right on one; refusals."""

import pathlib
import re
import sys

import numpy as np
import pytest
import weft
from refusal import refused
from weft import script as T

sys.path.insert(0, str(pathlib.Path(__file__).parents[2] / "examples/tensorir"))
import roles  # noqa: E402

SM90 = "cuda:arch=sm_90"
FORMS = [
    pytest.param((200, 136, 200), dict(groups=1, columns=64, stages=2, blocks=2), id="narrow"),
    pytest.param((256, 512, 192), dict(columns=256, stages=3, blocks=2), id="wide"),
    pytest.param((130, 520, 72), dict(columns=128, blocks=3, together=1), id="ragged"),
]


def check(f, shape, dtype, device):
    m, n, k = shape
    rng = np.random.default_rng(7)
    few = (rng.integers(-8, 9, size) / np.float32(8) for size in ((m, k), (k, n)))
    a, b = map(np.float32, few)
    A, B = (weft.asarray(x).astype(dtype).to(weft.device(device)) for x in (a, b))
    C = weft.full((m, n), float("nan"), dtype=dtype, device=weft.device(device))
    f(A, B, C)
    # Few bits: sums are exact, so both round once.
    want = weft.asarray(a @ b).astype(dtype).astype("float32").numpy()
    np.testing.assert_array_equal(C.to(weft.device("cpu")).astype("float32").numpy(), want)


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape, form", FORMS)
def test_the_program_computes_the_product(shape, form, dtype):
    f = roles.product(*shape, dtype, **form)
    check(weft.build(f, target="ref")["main"], shape, dtype, "ref")


@pytest.mark.parametrize("shape, form", FORMS)
def test_the_program_is_text(shape, form):
    f = roles.product(*shape, **form)
    again = T.from_source(f.script())
    assert weft.ir.structural_equal(f, again)
    assert "T.token_wait(" in f.script() and 'T.execution("threadIdx.x", 0, 128)' in f.script()


def need_compiler():
    reason = weft.device("cuda").reason
    if "NVRTC" in reason:
        pytest.skip(f"no NVRTC: {reason}")


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
def test_cubins(dtype):
    need_compiler()
    built = weft.build(roles.product(4096, 4096, 4096, dtype), target="cuda:arch=sm_90")
    text = built.source()
    short = {"float16": "f16", "bfloat16": "bf16"}[dtype]
    assert f"m64n256k16.f32.{short}.{short}" in text
    # Two branches of one choice, each with its registers; sums in registers; arrays described.
    assert text.index("weft_registers_dec_40();\n    if") < text.index(
        "} else {\n    float C_local[128];"
    )
    assert (
        "__launch_bounds__(384, 1)" in text and "const __grid_constant__ weft_tensor A_map" in text
    )
    assert text.count("__syncthreads()") == 1
    assert not any("unchecked" in note for note in built.notes), built.notes


@pytest.mark.parametrize("dtype", ["float16", "bfloat16"])
@pytest.mark.parametrize("shape, form", FORMS)
def test_on_the_card(shape, form, dtype, tmp_path):
    device = weft.device("cuda")
    if not device.available:
        pytest.skip(f"no CUDA device: {device.reason}")
    try:
        built = weft.build(roles.product(*shape, dtype, **form), target="cuda")
    except weft.Error as e:
        if e.code != "cuda.instruction.arch":
            raise
        pytest.skip(f"another architecture: {e}")
    check(built["main"], shape, dtype, "cuda")
    built.save(tmp_path / "product.weft")
    check(weft.load(tmp_path / "product.weft")["main"], shape, dtype, "cuda")


PREFIX = """
@T.prim_func
def main(A: T.Buffer((64, 64), "{dtype}"), N: T.Buffer((64, 64), "{dtype}")):
    for thread in T.thread_binding({threads}, thread="threadIdx.x"):
        with T.block("block"):
            S = T.alloc_buffer((2, 64, 64), "{dtype}", scope="shared")
            C = T.alloc_buffer((8, 2, 2), "float32", scope="local")
            token = T.alloc_buffer((2,), "uint64", scope="shared")
"""


def program(body, dtype="float16", threads=128):
    lines = "".join(f"            {line}\n" for line in body.strip("\n").splitlines())
    return T.from_source(PREFIX.format(dtype=dtype, threads=threads) + lines)


LOADED = """
if thread == 0:
    T.token_init(token[0], 1)
    T.token_expect(token[0], 8192)
    T.bulk_load(S[0, 0, 0], A[0, 0], token[0], {box})
T.evaluate(T.sync("shared"))
T.token_wait(token[0], 0)
"""


@pytest.mark.parametrize(
    "slug, words, body, dtype, target",
    [
        ("ir.bulk.box", "3 numbers", LOADED.format(box="64, 64, 1"), "float16", SM90),
        ("lower.bulk.row", "rows of 64 bytes", LOADED.format(box="64, 32"), "float16", SM90),
        ("lower.bulk.row", "rows of 256 bytes", LOADED.format(box="64, 64"), "float32", SM90),
        (
            "lower.bulk.array",
            "no parameter",
            LOADED.format(box="64, 64")
            .replace("A[0, 0]", "S[1, 0, 0]")
            .replace("64, 64)", "1, 64, 64)"),
            "float16",
            SM90,
        ),
        ("emit.tensor", "copies boxes", LOADED.format(box="64, 64"), "float16", "opencl"),
        (
            "cuda.instruction.form",
            "no multiple of 8",
            LOADED.format(box="64, 64") + "T.registers(33)",
            "float16",
            SM90,
        ),
        (
            "cuda.instruction.form",
            "60 columns",
            LOADED.format(box="64, 64")
            + "T.tile_multiply(C[0, 0, 0], S[0, 0, 0], S[1, 0, 0], 60, 0, 0, False)",
            "float16",
            SM90,
        ),
        (
            "cuda.instruction.form",
            "tiles of float32",
            "T.token_init(token[0], 1)\nT.tile_store(S[0, 0, 0], C[0, 0, 0])",
            "float32",
            SM90,
        ),
        (
            "cuda.instruction.form",
            "sums of float16",
            "T.token_init(token[0], 1)\nT.tile_add(N[0, 0], C[0, 0, 0], 64)",
            "float16",
            SM90,
        ),
        (
            "cuda.instruction.form",
            "numbers of float16 and float16",
            'T.token_init(token[0], 1)\nwith T.async_("bulk", sent):\n    T.bulk_add(N[0, 0], S[0, 0, 0], 64)\nT.wait(sent, 0)',
            "float16",
            SM90,
        ),
        (
            "cuda.instruction.arch",
            "sm_80 does not have",
            "T.token_init(token[0], 1)",
            "float16",
            "cuda:arch=sm_80",
        ),
    ],
)
def test_refusals(slug, words, body, dtype, target):
    f = program(body, dtype)
    assert words in str(refused(weft.Error, slug, weft.build, f, target=target))


def test_a_tensor_map_of_no_rank_is_refused():
    text = """
@T.prim_func
def main(A: T.Buffer((64, 64), "float16")):
    with T.let(T.tensor_map(T.address_of(A[0, 0]), 7, 64, 64)) as described:
        for thread in T.thread_binding(32, thread="threadIdx.x"):
            with T.block("block"):
                S = T.alloc_buffer((64, 64), "float16", scope="shared")
                T.bulk_store(described, S[0, 0], 0, 0)
"""
    error = refused(weft.Error, "lower.tensor_map", weft.build, T.from_source(text), target=SM90)
    assert "rank 7" in str(error)


@pytest.mark.parametrize(
    "words, body",
    [
        ("waits for ever", LOADED.format(box="64, 64").replace("8192", "8193")),
        ("no token yet", "T.token_wait(token[0], 0)"),
        (
            "beyond the 1",
            "if thread == 0:\n    T.token_init(token[0], 1)\n    T.token_expect(token[0], 8)\n    T.token_signal(token[0])",
        ),
        ("of 0 signals", "T.token_init(token[0], 0)"),
        (
            "no multiple of 1024",
            LOADED.format(box="32, 64").replace("S[0, 0, 0]", "S[0, 4, 0]"),
        ),
        (
            "reaches beyond",
            LOADED.format(box="64, 64").replace("S[0, 0, 0]", "S[1, 8, 0]"),
        ),
        ("64 bytes long", LOADED.format(box="64, 32")),
    ],
)
def test_faults_are_found_before_the_first_run(words, body):
    said = str(refused(weft.Error, "verify.token", weft.build, program(body), target="ref"))
    assert words in said
    if words == "no multiple of 1024":
        assert "error[interpret.tile]" in said
    if words == "64 bytes long":
        assert "error[interpret.bulk]" in said


def test_a_load_brings_a_box_with_steps_and_zeros_outside():
    body = """
if thread == 0:
    T.token_init(token[0], 1)
    T.token_expect(token[0], 8192)
    T.bulk_load(S[0, 0, 0], A[7, 0], token[0], 64, 64, 2, 1)
T.evaluate(T.sync("shared"))
T.token_wait(token[0], 0)
if thread == 0:
    T.bulk_store(N[0, 0], S[0, 0, 0], 64, 64)
"""
    device = weft.device("ref")
    a = np.random.default_rng(3).standard_normal((64, 64)).astype(np.float16)
    N = weft.zeros((64, 64), dtype="float16", device=device)
    weft.build(program(body), target="ref")["main"](weft.asarray(a).to(device), N)
    want = np.zeros((64, 64), np.float16)
    rows = a[7::2]
    want[: len(rows)] = rows
    np.testing.assert_array_equal(N.numpy(), want)


SCRIPT = roles.product(512, 1024, 512, blocks=3).script()


@pytest.mark.parametrize(
    "old, new, words",
    [
        (r"T.token_wait\(T.address_of\(empty\[.*", "T.bulk_fence()", "beyond the 1"),
        (r"49152", "49153", "waits for ever"),
        (r"T.wait\(multiplied, .*1\)+", "T.wait(multiplied, 2)", "still reads it"),
        (r"T.wait\(sent, .*1\)+", "T.wait(sent, 2)", "still reads it"),
        (r"T.token_wait\(T.address_of\(full\[.*", "T.bulk_fence()", "in flight"),
        (r"(T.token_init\(T.address_of\(empty\[.*, )8(.*)", r"\g<1>9\2", "waits for ever"),
        (r"(T.meet\(.*, )128\)", r"\g<1>129)", "waits for ever"),
    ],
)
def test_roles_out_of_step_are_refused_when_they_are_built(old, new, words):
    text, count = re.subn(old, new, SCRIPT)
    assert count >= 1, SCRIPT
    f = T.from_source(text)
    assert words in str(refused(weft.Error, "verify.token", weft.build, f, target=SM90))
