// SPDX-License-Identifier: Apache-2.0
#pragma once
// Programs in text that several tests of the IR share.

#include <vector>

namespace weft::ir::programs {

inline constexpr const char* kSeedVectorAdd = R"(
@tvm.script.ir_module
class MyModuleVecAdd():
    @T.prim_func
    def main(A: T.Buffer[(1024,), 'float32'],
             B: T.Buffer[(1024,), 'float32'],
             C: T.Buffer[(1024,), 'float32']):
        T.func_attr({"global_symbol": "main", "tir.noalias":True})
        for i in T.grid(1024):
            with T.block("C"):
                vi = T.axis.spatial((0, 1024), i)
                C[vi] = A[vi] + B[vi]

)";

inline constexpr const char* kSeedWindowSum = R"(
@tvm.script.ir_module
class MyModuleWindowSun():
    @T.prim_func
    def main(A: T.Buffer[(1026,), 'float32'],
             B: T.Buffer[(1024,), 'float32']):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i in T.grid(1024):
            with T.block('B'):
                vi = T.axis.spatial((0, 1024), i)
                B[vi] = A[vi] + A[vi+1] + A[vi+2]
)";

inline constexpr const char* kSeedMatmul = R"(
@tvm.script.ir_module
class MyModuleMatmul():
    @T.prim_func
    def main(A: T.Buffer[(1024, 1024), 'float32'],
             B: T.Buffer[(1024, 1024), 'float32'],
             C: T.Buffer[(1024, 1024), 'float32']):
        T.func_attr({"global_symbol": "main", "tir.noalias": True})
        for i, j, k in T.grid(1024, 1024, 1024):
            with T.block('C'):
                vi, vj, vk = T.axis.remap("SSR", [i, j, k])
                with T.init():
                    C[vi, vj] = T.float32(0)
                C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

inline constexpr const char* kMatmul = R"(from weft import script as T

@T.prim_func
def main(A: T.Buffer((16, 32), "float32"), B: T.Buffer((32, 24), "float32"), C: T.Buffer((16, 24), "float32")):
    for i, j, k in T.grid(16, 24, 32):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            T.writes(C[vi, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)";

/// The window sum after cache_read, compute_at and cooperative fetch.
inline constexpr const char* kWindowScheduled = R"(from weft import script as T

@T.prim_func
def main(A: T.Buffer((1026,), "float32"), B: T.Buffer((1024,), "float32")):
    T.func_attr({"global_symbol": "main", "noalias": True})
    A_shared = T.alloc_buffer((1026,), "float32", scope="shared")
    for i_0 in T.thread_binding(8, thread="blockIdx.x"):
        for i_1 in T.thread_binding(128, thread="threadIdx.x"):
            for ax0_0 in range(2):
                for ax0_1 in T.thread_binding(128, thread="threadIdx.x"):
                    with T.block("A_shared"):
                        v0 = T.axis.spatial(1026, i_0 * 128 + (ax0_0 * 128 + ax0_1))
                        T.where(ax0_0 * 128 + ax0_1 < 130)
                        T.reads(A[v0])
                        T.writes(A_shared[v0])
                        A_shared[v0] = A[v0]
            with T.block("B"):
                vi = T.axis.spatial(1024, i_0 * 128 + i_1)
                T.reads(A_shared[vi:vi + 3])
                T.writes(B[vi])
                B[vi] = A_shared[vi] + A_shared[vi + 1] + A_shared[vi + 2]
)";

/// The same lowered to a kernel: 130 floats of shared memory and a barrier.
inline constexpr const char* kWindowLowered = R"(from weft import script as T

@T.prim_func(lowered=True)
def main(A: T.Buffer((1026,), "float32"), B: T.Buffer((1024,), "float32")):
    with T.launch("main_kernel0", {"blockIdx.x": 8, "threadIdx.x": 128}) as (bx, tx):
        A_shared = T.allocate((130,), "float32", scope="shared")
        for ax0_0 in range(2):
            if ax0_0 * 128 + tx < 130:
                A_shared[ax0_0 * 128 + tx] = A[bx * 128 + ax0_0 * 128 + tx]
        T.sync("shared")
        B[bx * 128 + tx] = A_shared[tx] + A_shared[tx + 1] + A_shared[tx + 2]
)";

inline constexpr const char* kEverything = R"(from weft import script as T

@T.prim_func
def everything(a: T.handle, A: T.Buffer((16, 16), "float16", strides=(32, 1), scope="global", align=128), n: T.int32, D: T.Buffer((64, 64), "float32", spatial_axes=("pe.x", "pe.y"), layout=lambda i, j: (i // 8, j // 8, i % 8, j % 8)), s: T.Buffer((), "float64")):
    T.func_attr({"noalias": True, "list": [1, 2.5, None, False], "nested": {"k": "v"}})
    m = T.int64()
    st = T.int64()
    off = T.int64()
    X = T.match_buffer(a, (m, 8), "int32", strides=(st, 1), elem_offset=off)
    L = T.alloc_buffer((8, 8), "float32", scope="local")
    for i in T.parallel(4, annotations={"chunk": 2}):
        for j in T.vectorized(1, 5):
            for k in T.unroll(m):
                for l in T.serial(m, m + 3, annotations={"pragma": "x"}):
                    X[i, j] = X[i, j] + T.Cast("int32", k + l) * n
    for i, j in T.grid(m, 8):
        for k in range(i):
            with T.block("scan"):
                vi = T.axis.scan(m, i)
                vj = T.axis.opaque((2, 10), j + 2)
                vk = T.axis.reduce((0, 1), 0)
                T.where(i < m - 1 and not j == 3)
                T.reads(X[vi, 0:8], X[0:m, vj - 2:vj])
                T.writes(X[vi, vj - 2:vj - 2 + m], L[0:8, 1:8])
                T.block_attr({"buffer_dim_align": [[0, 0, 32, 8]], "flag": True})
                T.execution("threadIdx.y", 0, 2)
                P = T.alloc_buffer((T.int32(4),), "bfloat16")
                r = T.int64()
                M = T.match_buffer(X[vi:vi + 1, 0:8], (8,), "int32", strides=(r,))
                with T.init():
                    X[vi, vj - 2] = -5
                M[0] = T.Select(M[1] < 3, M[2], 7)
                P[n % 4] = T.bfloat16(1.5)
    with T.block("inner"):
        T.reads()
        T.writes()
        q: T.float32 = T.float32(1) / T.float32(3)
        if q < T.float32(0.5):
            L[0, 0] = q
        elif q == T.float32(7):
            pass
        else:
            while L[0, 0] < T.float32("inf"):
                L[0, 0] = L[0, 0] * T.float32(2)
        assert m > 0 or n <= T.int32(4), "a \"message\""
        with T.let(m * 2) as twice:
            T.evaluate(twice)
        L[0, T.ramp(0, 1, 4)] = T.broadcast(T.float32(1), 4) + L[1, T.ramp(n, 2, 4)]
        L[0, 1] = T.if_then_else(m < 4, T.exp(L[0, 0]), T.let(L[0, 2], lambda w: w * w))
        s[()] = T.float64(2) + s[()]
        X[0, 0] = T.truncdiv(X[0, 1], 3) + T.truncmod(X[0, 2], -3) + T.min(X[0, 3], 5) - T.max(n, X[0, 4]) // 2 % 3
        X[0, 1] = T.shift_left(X[0, 0], T.int32(2)) + T.bitwise_and(X[0, 1], X[0, 2]) + T.popcount(X[0, 3])
        L[0, 3] = T.fma(L[0, 0], L[0, 1], L[0, 2]) + T.vector_reduce_add(L[0, T.ramp(0, 1, 4)]) + T.reinterpret(n, dtype="float32")
        L[0, 4] = T.Cast("float32", T.isnan(L[0, 3])) + T.vector_extract(L[0, T.ramp(0, 1, 4)], 2)
        T.call_extern("puts", "text", n)
        T.prefetch(T.address_of(L[0, 0]), 0, 3)
        B = T.allocate((4,), "float32", scope="shared", annotations={"k": 1})
        with T.async_("load", tok):
            B[0] = L[0, 0]
        T.wait(tok, 0)
        T.wait(tok, m, consumer="compute")
        T.collective("all_reduce", ("threadIdx.x", "threadIdx.y"), B[0:1], L[0, 0:1], reducer="sum")
        T.collective("reduce", ("pe.x",), B[0:1], L[0, 0:1], reducer=T.comm_reducer(lambda x, y: (x * y + x,), [T.float32(0)], name="odd"), root=m)
        T.collective("broadcast", ("pe.x",), B[0:2], B[2:4], root=0)
        T.sync("shared")
)";

inline constexpr const char* kOldStyle = R"(
from tvm.script import tir as T
@T.prim_func
def old(a: T.handle, b: T.handle, n: T.int64) -> None:
    # comments and blank lines are nothing

    """nor are docstrings"""
    T.func_attr({'global_symbol': 'old'})
    m = T.var("int32")
    k, l = T.int64(), T.int64()
    A = T.match_buffer(a, [n, k], dtype="float32")
    B = T.match_buffer(b, (m, l))
    C = T.alloc_buffer([128])
    for i in T.serial(0, 128):
        with T.block("C"):
            vi = T.axis.S(128, i)
            C[vi] = T.max(A[vi, 0], 0.0) if vi < 4 else T.cast(vi, "float32")
    for i in T.thread_binding(0, 128, thread="threadIdx.x"):
        for j in T.thread_binding(n, "vthread"):
            with T.block():
                vi, vj = T.axis.remap("SS", [i, j])
                B[0, 0] += C[vi] * 2
    tx = T.launch_thread("threadIdx.x", 4)
    if 0 <= tx < 3 and ~tx & 1 == 0:
        C[tx] = -C[tx] * 1 if False else -C[tx]
    C[0:4] = A[0, 0:4]
    T.Assert(n > 0, "positive")
)";

inline constexpr const char* kTwoFunctions = R"(
@I.ir_module
class M:
    @T.prim_func
    def twice(x: T.Buffer((8,), "float32"), k: T.float32):
        for i in range(8):
            x[i] = x[i] * k

    @T.prim_func(private=True)
    def main(x: T.Buffer((8,), "float32")):
        cls.twice(x, T.float32(2))
        twice(x, T.float32(3))
        M.twice(x, T.float32(0.5))
)";

inline std::vector<const char*> canonical() { return {kMatmul, kWindowScheduled, kWindowLowered}; }
inline std::vector<const char*> all() {
  return {kSeedVectorAdd, kSeedWindowSum, kSeedMatmul, kMatmul,      kWindowScheduled,
          kWindowLowered, kEverything,    kOldStyle,   kTwoFunctions};
}

}  // namespace weft::ir::programs
