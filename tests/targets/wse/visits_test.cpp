// SPDX-License-Identifier: Apache-2.0
// Conditions, bindings, loop kinds and loops over PEs around blocks: honoured as the reference
// interpreter does, or refused by name.
#include <gtest/gtest.h>

#include <cmath>

#include "tensor_run.h"
#include "weft/targets/wse/lower.h"

namespace weft::wse {
namespace {

struct Case {
  const char *name, *body;
};

std::string program(const std::string& body) {
  return cat(
      "@T.prim_func\ndef main(A: T.Buffer((13,), \"float32\"), C: T.Buffer((13,), "
      "\"float32\")):\n",
      body);
}

const Case kHonoured[] = {
    {"condition", R"(    for i in range(13):
        with T.block("C"):
            T.where(i < 5)
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"shorter_loop", R"(    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"shifted", R"(    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(13, i + 3)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"scaled", R"(    for i in range(5):
        with T.block("C"):
            vi = T.axis.spatial(13, i * 2)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"split", R"(    for o, i in T.grid(4, 4):
        with T.block("C"):
            T.where(o * 4 + i < 13)
            vi = T.axis.spatial(13, o * 4 + i)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"repeated_store", R"(    for r, i in T.grid(3, 13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi]
)"},
    {"shorter_reduction", R"(    for i, k in T.grid(13, 5):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)"},
    {"loop_from_3", R"(    for i in range(3, 9):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"outer_block", R"(    for i in range(3):
        with T.block("outer"):
            vo = T.axis.spatial(3, i)
            for j in range(4):
                with T.block("C"):
                    vi = T.axis.spatial(13, vo * 4 + j)
                    C[vi] = A[vi] + T.float32(1)
)"},
    {"if_outside", R"(    for i in range(13):
        if i < 5:
            with T.block("C"):
                vi = T.axis.spatial(13, i)
                C[vi] = A[vi] + T.float32(1)
)"},
    {"if_inside", R"(    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            if vi < 5:
                C[vi] = A[vi] + T.float32(1)
)"},
    {"reversed", R"(    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(13, 12 - i)
            C[vi] = A[vi] + T.float32(1)
)"},
    {"condition_on_both", R"(    for i, k in T.grid(13, 13):
        with T.block("C"):
            T.where(k < 5 and i < 6)
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)"},
    {"if_in_reduction", R"(    for i, k in T.grid(13, 13):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(3)
            if vk > vi:
                C[vi] = C[vi] + A[vk]
)"},
    {"condition_on_data", R"(    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            if A[vi] > T.float32(0):
                C[vi] = A[vi]
)"},
    {"never", R"(    for i in range(13):
        with T.block("C"):
            T.where(i > 20)
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi]
)"},
    {"partial_intermediate", R"(    D = T.alloc_buffer((13,), "float32")
    for i in range(13):
        with T.block("D"):
            vi = T.axis.spatial(13, i)
            D[vi] = A[vi] * T.float32(2)
    for i in range(5):
        with T.block("E"):
            vi = T.axis.spatial(13, i * 2 + 1)
            D[vi] = T.float32(0) - A[vi]
    for i in range(13):
        with T.block("C"):
            T.where(i % 3 == 1)
            vi = T.axis.spatial(13, i)
            C[vi] = D[12 - vi]
)"},
    {"fused", R"(    for f in range(12):
        with T.block("C"):
            v0 = T.axis.spatial(3, f // 4)
            v1 = T.axis.spatial(4, f % 4)
            C[v0 * 4 + v1] = A[v0 * 4 + v1]
)"},
    {"fused_with_condition", R"(    for a, b in T.grid(3, 5):
        with T.block("C"):
            T.where(a * 5 + b < 12)
            v0 = T.axis.spatial(3, (a * 5 + b) // 4)
            v1 = T.axis.spatial(4, (a * 5 + b) % 4)
            C[v0 * 4 + v1] = A[v0 * 4 + v1]
)"},
    {"repeated_reduction", R"(    for r, i, k in T.grid(2, 13, 13):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)"},
    {"short_total", R"(    for o, k in T.grid(1, 9):
        with T.block("C"):
            vo, vk = T.axis.remap("SR", [o, k])
            with T.init():
                C[vo] = T.float32(0)
            C[vo] = C[vo] + A[vk]
)"},
};

TEST(WseVisits, WhatIsVisitedIsWhatTheInterpreterVisits) {
  for (const Case& c : kHonoured) {
    for (const char* target : {"wse:1x1", "wse:4x4", "wse:3x2,arch=wse3", "wse:1x5", "wse:13x1"}) {
      const Floats a = random_floats(13, 1), before = random_floats(13, 2);
      Floats x = a, y = a, want = before, got = before;
      run(program(c.body), "ref", {{{13}, &x}, {{13}, &want}});
      run(program(c.body), target, {{{13}, &y}, {{13}, &got}});
      for (std::size_t i = 0; i < 13; ++i)
        ASSERT_NEAR(got[i], want[i], 1e-5) << c.name << " on " << target << ", element " << i;
    }
  }
}

const Case kOnPes[] = {
    {"over the columns", R"(    for i in T.thread_binding(3, thread="pe.x"):
        for j in range(5):
            with T.block("C"):
                T.where(i * 5 + j < 13)
                vi = T.axis.spatial(13, i * 5 + j)
                C[vi] = A[vi] + T.float32(1)
)"},
    {"over the rows", R"(    for i in T.thread_binding(2, thread="pe.y"):
        for j in range(7):
            with T.block("C"):
                T.where(i * 7 + j < 13)
                vi = T.axis.spatial(13, i * 7 + j)
                C[vi] = A[vi] + T.float32(1)
)"},
    {"over all PEs", R"(    for y in T.thread_binding(2, thread="pe.y"):
        for x in T.thread_binding(3, thread="pe.x"):
            for j in range(3):
                with T.block("C"):
                    T.where((y * 3 + x) * 3 + j < 13)
                    vi = T.axis.spatial(13, (y * 3 + x) * 3 + j)
                    C[vi] = A[vi] + T.float32(1)
)"},
    {"over the columns", R"(    for x in T.thread_binding(3, thread="pe.x"):
        for i, j in T.grid(13, 5):
            with T.block("C"):
                T.where(x * 5 + j < 13)
                vi = T.axis.spatial(13, i)
                vk = T.axis.reduce(13, x * 5 + j)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vk]
)"},
};

TEST(WseVisits, LoopsOverPesPlaceTheirParts) {
  for (const Case& c : kOnPes) {
    for (const char* target : {"wse:3x2", "wse:3x3,arch=wse3"}) {
      const Floats a = random_floats(13, 3);
      Floats x = a, y = a, want(13), got(13);
      run(program(c.body), "ref", {{{13}, &x}, {{13}, &want}});
      std::string source = run(program(c.body), target, {{{13}, &y}, {{13}, &got}});
      EXPECT_NE(source.find(c.name), std::string::npos) << source;
      for (std::size_t i = 0; i < 13; ++i)
        ASSERT_NEAR(got[i], want[i], 1e-5) << c.name << " on " << target << ", element " << i;
    }
  }
}

/// slug, words of the message, body
const struct {
  const char *slug, *says, *body;
} kRefused[] = {
    {"stages.repeat", R"(loop r repeats block C 3 times)", R"(    for r, i in T.grid(3, 13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[vi] = C[vi] + A[vi]
)"},
    {"stages.repeat", R"(updates C each time)", R"(    for i, k, r in T.grid(13, 13, 2):
        with T.block("C"):
            vi, vk = T.axis.remap("SR", [i, k])
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)"},
    {"wse.lower.recurrence", R"(reads C[vi] and writes C at other indices)",
     R"(    for i in range(12):
        with T.block("C"):
            vi = T.axis.spatial(12, i)
            C[vi + 1] = C[vi] + A[vi]
)"},
    {"stages.binding", R"(from which the points it visits cannot be told)",
     R"(    for i, k in T.grid(13, 13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            vk = T.axis.reduce(13, 12 - k)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)"},
    {"stages.binding", R"(f // 4, f % 4)", R"(    for f in range(8):
        with T.block("C"):
            v0 = T.axis.spatial(3, f // 4)
            v1 = T.axis.spatial(4, f % 4)
            C[v0 * 4 + v1] = A[v0 * 4 + v1]
)"},
    {"wse.lower.condition", R"(can skip the first step of its reduction)",
     R"(    for i, k in T.grid(13, 5):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            vk = T.axis.reduce(13, k + 2)
            with T.init():
                C[vi] = T.float32(0)
            C[vi] = C[vi] + A[vk]
)"},
    {"stages.symbolic", R"(the extent of loop k around block C)", R"(    for i in range(13):
        for k in range(i + 1):
            with T.block("C"):
                vi, vk = T.axis.remap("SR", [i, k])
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vk]
)"},
    {"wse.lower.axis", R"(reduction iterator vk of block C goes over "pe.y")",
     R"(    for x in T.thread_binding(2, thread="pe.y"):
        for i, j in T.grid(13, 7):
            with T.block("C"):
                T.where(x * 7 + j < 13)
                vi = T.axis.spatial(13, i)
                vk = T.axis.reduce(13, x * 7 + j)
                with T.init():
                    C[vi] = T.float32(0)
                C[vi] = C[vi] + A[vk]
)"},
    {"stages.axis", R"(has extent 13 on "pe.x", which has 3)",
     R"(    for x in T.thread_binding(13, thread="pe.x"):
        with T.block("C"):
            vi = T.axis.spatial(13, x)
            C[vi] = A[vi]
)"},
    {"wse.lower.axis", R"(the first PE does not have element 0)",
     R"(    for x in T.thread_binding(3, thread="pe.x"):
        with T.block("C"):
            vi = T.axis.spatial(13, x + 2)
            C[vi] = A[vi]
)"},
    {"wse.lower.init", R"(no combination of the element)", R"(    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            with T.init():
                C[vi] = T.float32(2)
            C[vi] = C[vi] / A[vi]
)"},
    {"wse.lower.overwrite", R"(for every value of its spatial iterator vi)",
     R"(    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            C[0] = A[vi]
)"},
    {"stages.repeat", "which no iterator is bound to", R"(    for r, i in T.grid(3, 13):
        with T.block("C"):
            T.where(r * i < 9)
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi]
)"},
    {"stages.statement", "an if with an else outside blocks", R"(    for i in range(13):
        if i < 5:
            with T.block("C"):
                vi = T.axis.spatial(13, i)
                C[vi] = A[vi]
        else:
            with T.block("D"):
                vi = T.axis.spatial(13, i)
                C[vi] = A[vi]
)"},
    {"stages.axis", "loop y around block C is bound to \"pe.x\", as loop x around it already is",
     R"(    for x in T.thread_binding(2, thread="pe.x"):
        for y in T.thread_binding(2, thread="pe.x"):
            with T.block("C"):
                vi = T.axis.spatial(13, x * 2 + y)
                C[vi] = A[vi]
)"},
};

TEST(WseVisits, WhatCannotBeHonouredIsRefusedByName) {
  for (const auto& c : kRefused) {
    try {
      lower_stages(ir::parse_func(program(c.body)), 3, 2);
      ADD_FAILURE() << "accepted; wanted " << c.slug << "\n" << c.body;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), c.slug) << e.what();
      EXPECT_NE(std::string(e.what()).find(c.says), std::string::npos) << e.what();
    }
  }
}

const char* kExecution = R"(    for i in range(13):
        with T.block("C"):
            T.execution("pe.x", 0, 2)
            vi = T.axis.spatial(13, i)
            C[vi] = A[vi]
)";
const char* kMatch = R"(    for i in range(13):
        with T.block("C"):
            vi = T.axis.spatial(13, i)
            M = T.match_buffer(A[vi:vi + 1], (1,), "float32")
            C[vi] = M[0]
)";

TEST(WseVisits, PartsOfAnAxisAndMatchedBuffersAreRefused) {
  for (const auto& [slug, body] :
       {std::pair{"stages.execution", kExecution}, std::pair{"stages.match_buffer", kMatch}}) {
    try {
      lower_stages(ir::parse_func(program(body)), 3, 2);
      ADD_FAILURE() << "accepted; wanted " << slug;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), slug) << e.what();
      EXPECT_NE(std::string(e.what()).find("block C"), std::string::npos) << e.what();
    }
  }
}

TEST(WseVisits, BuffersWithLayoutsOfTheirOwnAreRefused) {
  auto refused = [](const std::string& slug, const std::string& text) {
    try {
      lower_stages(ir::parse_func(text), 3, 2);
      ADD_FAILURE() << "accepted; wanted " << slug;
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), slug) << e.what();
    }
  };
  auto with = [](const std::string& buffer) {
    return cat("@T.prim_func\ndef main(A: T.Buffer((8, 8), \"float32\", ", buffer,
               "), C: T.Buffer((8, 8), \"float32\")):\n    for i, j in T.grid(8, 8):\n        with "
               "T.block(\"C\"):\n            vi, vj = T.axis.remap(\"SS\", [i, j])\n            "
               "C[vi, vj] = A[vi, vj]\n");
  };
  refused("wse.lower.strides", with("strides=(16, 1)"));
  refused(
      "wse.lower.layout",
      with(
          "spatial_axes=(\"pe.x\", \"pe.y\"), layout=lambda i, j: (i // 4, j // 4, i % 4, j % 4)"));
}

}  // namespace
}  // namespace weft::wse
