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

#include "refusal.h"
#include "weft/sim/simulator.h"
// clang-format on

namespace {
using namespace weft::qpu;
using weft::Ref;
using weft::test::expect_refusal;
using weft::test::failure;

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

void copy_from(Ptr<Int> p, Int words, Ptr<Int> out) { store(*(p + words), out); }
void put_at(Ptr<Int> p, Int words) { store(IntExpr(1), p + words); }

TEST(QpuBadInput, null_pointers_that_kernels_make) {
  SharedArray<int> p(16, "qpu:reads=fault"), out(16, "qpu:reads=fault");
  int back = -static_cast<int>(p.getAddress() / 4);
  auto read = compile(copy_from, "copy_from", "qpu:reads=fault");
  expect_refusal([&] { read(&p, back, &out); }, "qpu.memory.read_outside", "0x0");
  auto write = compile(put_at, "put_at", "qpu:reads=fault");
  expect_refusal([&] { write(&p, back); }, "qpu.memory.store_outside", "0x0");
  write(&p, 0);
  EXPECT_EQ(p[15], 1);
  read(&p, 0, &out);
  EXPECT_EQ(out[15], 1);
  expect_usable();
}

TEST(QpuBadInput, arrays_of_another_device) {
  auto k = compile(fill, "fill");
  SharedArray<int> elsewhere(16, "qpu:reads=fault"), here(16);
  expect_refusal([&] { k(&elsewhere, 5); }, "qpu.launch.device", "argument 0 is an array on");
  k(&here, 5);
  EXPECT_EQ(here[4], 4);
  expect_usable();
}

TEST(QpuBadInput, copies_stay_inside_arrays) {
  SharedArray<int> a(5);
  const int from[] = {1, 2, 3};
  a.write(from, 3, 2);
  int to[5] = {9, 9, 9, 9, 9};
  a.read(to, 5);
  EXPECT_EQ((std::vector<int>(to, to + 5)), (std::vector<int>{0, 0, 1, 2, 3}));
  expect_refusal([&] { a.write(from, 3, 3); }, "qpu.array.index", "3 elements from 3 on");
  expect_refusal([&] { a.read(to, 1, SIZE_MAX); }, "qpu.array.index", "1 elements from");
  expect_refusal([&] { a.read(to, SIZE_MAX, 1); }, "qpu.array.index", "SharedArray of 5");
  a.write(from, 0, 5);
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

int checks = 0;

// Whoever calls an operator may have it stopped; the device goes on.
TEST(QpuBadInput, an_operator_that_is_stopped) {
  weft::qpu::ModuleTable table("m");
  int (*endless)() = [] {
    auto k = compile(+[](Ptr<Int> p) {
      Int x = 0;
      While(any(x < 1))
        x = x & 0;
      End
      *p = x;
    });
    SharedArray<int> a(16);
    k(&a);
    return 1;
  };
  table.def("endless", endless);
  const weft_qpu_table* t = table.table();
  checks = 0;
  t->watch(+[]() -> std::int32_t { return ++checks < 3 ? 0 : 7; });
  weft_qpu_value result{};
  char* text = nullptr;
  EXPECT_EQ(t->operators[0].call(t->operators[0].closure, nullptr, &result, &text), 1);
  ASSERT_TRUE(text);
  EXPECT_NE(std::string(text).find("qpu.module.stopped"), std::string::npos) << text;
  EXPECT_NE(std::string(text).find("the answer 7"), std::string::npos) << text;
  EXPECT_EQ(checks, 3);
  t->release_text(text);
  t->watch(nullptr);
  expect_usable();
}

}  // namespace
