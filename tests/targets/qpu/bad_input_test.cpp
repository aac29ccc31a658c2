// SPDX-License-Identifier: Apache-2.0
// What users get wrong: each mistake is refused with its slug and what was found, nothing is lost,
// and the device goes on. <weft/qpu.h> stands before headers of the standard library and of this
// project here: they must compile after it.

#include <gtest/gtest.h>

#include <weft/qpu.h>
#include <weft/qpu_module.h>

// clang-format off
#include <chrono>
#include <functional>
#include <map>
#include <random>
#include <regex>
#include <sstream>
#include <thread>

#include "weft/ir/build.h"
#include "weft/ir/te.h"
#include "weft/ir/text.h"
#include "weft/target/backend.h"
#include "weft/targets/qpu/kernels/kernels.h"
#include "weft/targets/qpu/tensor/emit.h"
#include "weft/sim/simulator.h"
#include "weft/targets/qpu/tensor/lowerer.h"
// clang-format on

namespace {
using namespace weft::qpu;
using weft::cat;
using weft::Ref;

void fill(Ptr<Int> p, Int n) {
  For(Int at = me() << 4, at < n, at = at + (numQPUs() << 4))
    store(at + index(), p + at, n - at);
  End
}
void endless(Ptr<Int> p) {
  While(any(index() >= 0))
    store(IntExpr(1), p + (me() << 4));
  End
}

/// The error's code and text.
std::pair<std::string, std::string> failure(const std::function<void()>& f) {
  try {
    f();
  } catch (const weft::Error& e) {
    return {e.code(), e.what()};
  }
  return {"accepted", ""};
}

void expect_refusal(const std::function<void()>& f, const std::string& code,
                    const std::string& text) {
  auto [got, what] = failure(f);
  EXPECT_EQ(got, code);
  EXPECT_NE(what.find(text), std::string::npos) << what;
}

/// A launch on all QPUs gives what it always gives, and nothing is written behind the array.
void expect_usable() {
  static auto k = compile(fill, "fill");
  k.setNumQPUs(12);
  SharedArray<int> a(100 + 16);
  for (std::size_t i = 0; i < a.size(); ++i) a[i] = -1;
  k(&a, 100);
  for (int i = 0; i < 116; ++i) ASSERT_EQ(a[static_cast<std::size_t>(i)], i < 100 ? i : -1);
}

TEST(QpuBadInput, lengths_around_a_vector_touch_exactly_the_array) {
  auto k = compile(fill, "fill");
  for (int n : {0, 1, 15, 16, 17}) {
    for (int qpus : {1, 2, 12}) {
      k.setNumQPUs(qpus);
      SharedArray<int> a(33);
      for (std::size_t i = 0; i < a.size(); ++i) a[i] = -1;
      k(&a, n);
      for (int i = 0; i < 33; ++i) ASSERT_EQ(a[static_cast<std::size_t>(i)], i < n ? i : -1) << n;
    }
  }
  SharedArray<int> none(0);
  k(&none, 0);
  expect_usable();
}

TEST(QpuBadInput, pointers) {
  auto k = compile(fill, "fill");
  expect_refusal([&] { k(static_cast<SharedArray<int>*>(nullptr), 5); }, "qpu.launch.null",
                 "SharedArray");
  expect_usable();
  // Misaligned and null addresses that reach the device as storages.
  Ref<weft::runtime::Device> device = weft::qpu::device();
  Ref<weft::runtime::Executable> e = device->load(k.binary());
  SharedArray<int> a(16);
  auto launch = [&](std::vector<weft::runtime::KernelArg> args, std::int64_t qpus = 1) {
    std::int64_t extents[] = {qpus};
    device->launch(*e, 0, args, extents).wait();
  };
  using weft::runtime::KernelArg;
  expect_refusal(
      [&] {
        launch({KernelArg::pointer(&a.storage(), 2), KernelArg::integer(3)});
      },
      "qpu.launch.align", "multiple of 4");
  expect_usable();
  expect_refusal([&] { launch({KernelArg::pointer(&a.storage())}); }, "qpu.launch.unbound",
                 "scalar parameter 0");
  expect_refusal([&] { launch({KernelArg::integer(3)}); }, "qpu.launch.unbound",
                 "pointer parameter 0");
  expect_refusal(
      [&] {
        launch({KernelArg::pointer(&a.storage()), KernelArg::integer(std::int64_t{1} << 40)});
      },
      "qpu.launch.range", "does not fit 32 bits");
  expect_refusal(
      [&] {
        launch({KernelArg::pointer(&a.storage()), KernelArg::integer(3)}, 13);
      },
      "qpu.launch.qpus", "13 QPUs");
  expect_usable();
}

TEST(QpuBadInput, number_of_qpus) {
  auto k = compile(fill, "fill");
  expect_refusal([&] { k.setNumQPUs(13); }, "qpu.launch.qpus", "13 QPUs");
  expect_refusal([&] { k.setNumQPUs(0); }, "qpu.launch.qpus", "0 QPUs");
  expect_refusal([&] { weft::qpu::device("qpu:qpus=13"); }, "qpu.device.option", "qpus=13");
  expect_usable();
}

TEST(QpuBadInput, endless_kernels_stop_at_the_limit) {
  auto k = compile(endless, "endless");
  k.setCycleLimit(50000);
  SharedArray<int> a(16 * 12);
  for (int qpus : {1, 12}) {
    k.setNumQPUs(qpus);
    expect_refusal([&] { k(&a); }, "qpu.limit.cycles", "50000 cycles");
    expect_usable();
  }
}

TEST(QpuBadInput, corrupt_binaries) {
  auto k = compile(fill, "fill");
  Ref<weft::runtime::Device> device = weft::qpu::device();
  weft::runtime::Binary good = k.binary();
  auto load = [&](const std::function<void(weft::runtime::Binary&)>& spoil) {
    weft::runtime::Binary bad = good;
    spoil(bad);
    return [&, bad] { device->load(bad); };
  };
  expect_refusal(load([](auto& b) { b.bytes.pop_back(); }), "qpu.binary.size", "multiple of 8");
  expect_refusal(load([](auto& b) { b.bytes.clear(); }), "qpu.binary.empty", "");
  expect_refusal(load([](auto& b) { b.bytes[7] = '\xf0', b.bytes[6] = '\xc8'; }), "qpu.binary.word",
                 "");
  expect_refusal(
      load([](auto& b) { b.metadata["uniforms"] = weft::Json(weft::Json::Array{"x9"}); }),
      "qpu.binary.uniform", "x9");
  expect_refusal(load([](auto& b) { b.format = "elf"; }), "device.binary.format", "elf");
  // Random damage: refused, or run to an end or a fault; never anything else.
  std::mt19937 rng(7);
  int refused = 0, ran = 0, faults = 0;
  SharedArray<int> a(64);
  for (int trial = 0; trial < 300; ++trial) {
    weft::runtime::Binary bad = good;
    for (int n = 0; n < 3; ++n) bad.bytes[rng() % bad.bytes.size()] = static_cast<char>(rng());
    try {
      auto e = device->load(bad);
      std::vector<weft::runtime::KernelArg> args{weft::runtime::KernelArg::pointer(&a.storage()),
                                                 weft::runtime::KernelArg::integer(40)};
      std::int64_t extents[] = {3};
      auto& sim_device = static_cast<weft::sim::SimDevice&>(*device);
      sim_device.limits.cycles = 100000;
      device->launch(*e, 0, args, extents).wait();
      ++ran;
    } catch (const weft::Error& e) {
      (e.kind() == weft::ErrorKind::fault ? faults : refused) += 1;
    }
    static_cast<weft::sim::SimDevice&>(*device).limits = {};
  }
  EXPECT_EQ(refused + ran + faults, 300);
  EXPECT_GT(refused, 0);
  EXPECT_GT(faults, 0);
  takeNotes();
  expect_usable();
}

TEST(QpuBadInput, binaries_of_several_kernels) {
  weft::ir::PrimFunc f = weft::ir::parse_func(
      "@T.prim_func\ndef main(A: T.Buffer((20,), \"int32\"), C: T.Buffer((20,), \"int32\")):\n"
      "    B = T.alloc_buffer((20,), \"int32\")\n"
      "    for i in range(20):\n        with T.block(\"B\"):\n"
      "            vi = T.axis.spatial(20, i)\n            B[vi] = A[vi] + 1\n"
      "    for i in range(20):\n        with T.block(\"C\"):\n"
      "            vi = T.axis.spatial(20, i)\n            C[vi] = B[19 - vi] * 2\n");
  Ref<weft::runtime::Module> module = weft::build(weft::ir::make_module(f), "qpu");
  weft::runtime::Binary good = module->binary();
  ASSERT_EQ(good.kernels.size(), 2u);
  Ref<weft::runtime::Device> device = weft::open_device("qpu");
  Ref<weft::runtime::Executable> e = device->load(good);
  std::int64_t extents[] = {1, 16};
  expect_refusal([&] { device->launch(*e, 2, {}, extents).wait(); }, "qpu.launch.kernel",
                 "number 2");
  weft::runtime::Binary bad = good;
  bad.bytes.resize(bad.bytes.size() - 8);
  expect_refusal([&] { device->load(bad); }, "qpu.binary.size", "outside the binary");
  bad = good;
  bad.metadata["programs"] = weft::Json::array();
  expect_refusal([&] { device->load(bad); }, "qpu.binary.size", "no kernel");
}

TEST(QpuBadInput, arrays_too_large) {
  expect_refusal([] { SharedArray<int> a(1u << 30); }, "sim.memory.exhausted", "4 GiB");
  std::vector<SharedArray<float>> many;
  expect_refusal(
      [&] {
        for (int i = 0; i < 100; ++i) many.emplace_back(std::size_t{1} << 22);
      },
      "sim.memory.exhausted", "16 MiB");
  EXPECT_GT(many.size(), 5u);
  many[0][0] = 3;
  EXPECT_EQ(many[0][0], 3);
  many.clear();
  expect_usable();
  expect_refusal([] { SharedArray<int>(3)[3] = 1; }, "qpu.array.index", "element 3");
}

TEST(QpuBadInput, modules) {
  weft::qpu::ModuleTable table("m");
  int (*one)() = [] { return 1; };
  table.def("one", one);
  expect_refusal([&] { table.def("one", one); }, "qpu.module.twice", "\"one\" twice");
  EXPECT_EQ(table.table()->count, 1);
}

/// What the tensor lowering refuses beyond what accepts() sees in a whole function.
std::string kernel(const std::string& header, const std::string& body) {
  return cat("@T.prim_func(lowered=True)\ndef main(", header,
             "):\n    with T.launch(\"k\", {\"qpu\": 1, ", "\"lane\": 16}) as (qpu, lane):\n",
             body);
}
std::function<void()> lowering(std::string text) {
  return [text] { tensor::lower_kernel(weft::ir::parse_func(text)); };
}

TEST(QpuBadInput, tensor_statements_without_a_form) {
  const std::string ab = "A: T.Buffer((64,), \"float32\"), B: T.Buffer((64,), \"float32\")";
  expect_refusal(lowering(kernel(ab, "        T.call_extern(\"f\", A[lane])\n")),
                 "qpu.lower.statement", "T.call_extern");
  expect_refusal(lowering(kernel(ab, "        B[lane] = T.erf(A[lane])\n")), "qpu.lower.intrinsic",
                 "\"erf\"");
  expect_refusal(lowering(kernel(ab, "        if lane < 4:\n            T.sync(\"global\")\n")),
                 "qpu.lower.barrier", "differs by lane");
  expect_refusal(lowering(kernel(ab,
                                 "        L = T.allocate((4,), \"float32\", scope=\"local\")\n"
                                 "        L[lane % 4] = A[lane]\n        B[lane] = L[0]\n")),
                 "qpu.lower.local", "must be constant");
  expect_refusal(lowering(kernel(ab,
                                 "        L = T.allocate((9999,), \"float32\", "
                                 "scope=\"local\")\n        L[0] = A[lane]\n")),
                 "qpu.lower.local", "9999");
  expect_refusal(lowering(kernel("A: T.Buffer((64,), \"float64\")", "        A[lane] = A[lane]\n")),
                 "qpu.lower.load", "float64");
  expect_refusal(lowering(kernel("A: T.Buffer((64,), \"int8\")", "        A[lane] = T.int8(1)\n")),
                 "qpu.lower.store", "int8");
  expect_refusal(lowering(kernel("A: T.Buffer((64,), \"int32\")",
                                 "        A[lane] = T.cast(T.int64(5000000000), \"int32\")\n")),
                 "qpu.lower.range", "5000000000");
  expect_refusal(lowering(kernel(ab,
                                 "        S = T.allocate((4,), \"float32\", scope=\"shared\")\n"
                                 "        S[0] = A[lane]\n")),
                 "qpu.lower.scope", "shared");
}

}  // namespace
