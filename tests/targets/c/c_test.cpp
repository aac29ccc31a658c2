// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <cstring>
#include <iostream>
#include <random>

#include "../../unit/lower_kit.h"
#include "weft/base/error.h"
#include "weft/schedule/schedule.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

using namespace testing;
using runtime::CallArg;

struct Host {
  Ref<runtime::Device> device = open_device("c");
  std::vector<Ref<runtime::Storage>> keep;
  CallArg tensor(const void* data, std::vector<std::int64_t> shape, DType type = dtypes::float32) {
    std::uint64_t count = 1;
    for (std::int64_t n : shape) count *= static_cast<std::uint64_t>(n);
    auto s = device->allocate(count * static_cast<std::uint64_t>(type.bytes()));
    if (data) device->upload(*s, 0, data, count * static_cast<std::uint64_t>(type.bytes()));
    keep.push_back(s);
    return {s.get(), 0, type, std::move(shape), {}, 0, 0};
  }
};

std::vector<float> random_floats(std::size_t n, unsigned seed) {
  std::mt19937 rng(seed);
  std::uniform_real_distribution<float> d(-1, 1);
  std::vector<float> out(n);
  for (float& x : out) x = d(rng);
  return out;
}

Ref<runtime::Function> compile(const PrimFunc& f, std::string_view target = "c") {
  auto module = build(make_module(f), target);
  return make_ref<runtime::Function>(module, "main", open_device(target));
}

TEST(CTarget, adds_vectors_at_odd_sizes) {
  for (std::int64_t n : {1, 7, 128, 1000}) {
    for (ForKind kind : {ForKind::serial, ForKind::vectorized}) {
      auto f = compile(vector_add(n, 8, ForKind::parallel, "", kind));
      Host host;
      auto a = random_floats(static_cast<std::size_t>(n), 1),
           b = random_floats(static_cast<std::size_t>(n), 2);
      std::vector<CallArg> args{host.tensor(a.data(), {n}), host.tensor(b.data(), {n}),
                                host.tensor(nullptr, {n})};
      f->call(args).wait();
      const float* c = static_cast<const float*>(host.keep[2]->host());
      for (std::size_t i = 0; i < a.size(); ++i) ASSERT_EQ(c[i], a[i] + b[i]) << n << " " << i;
    }
  }
}

TEST(CTarget, multiplies_matrices_of_symbolic_extents) {
  Var n = make_var("n"), m = make_var("m"), k = make_var("k");
  for (bool scheduled : {false, true}) {
    auto f = compile(matmul(n, m, k, scheduled));
    Host host;
    auto a = random_floats(17 * 31, 1), b = random_floats(31 * 5, 2);
    std::vector<CallArg> args{host.tensor(a.data(), {17, 31}), host.tensor(b.data(), {31, 5}),
                              host.tensor(nullptr, {17, 5})};
    f->call(args).wait();
    const float* c = static_cast<const float*>(host.keep[2]->host());
    for (int i = 0; i < 17; ++i) {
      for (int j = 0; j < 5; ++j) {
        double want = 0;
        for (int r = 0; r < 31; ++r)
          want += static_cast<double>(a[static_cast<std::size_t>(i * 31 + r)]) *
                  b[static_cast<std::size_t>(r * 5 + j)];
        ASSERT_NEAR(c[i * 5 + j], want, 1e-5) << i << " " << j;
      }
    }
    // A wrong extent is found before anything runs.
    args[2].shape = {17, 6};
    try {
      f->call(args);
      FAIL() << "a wrong shape was accepted";
    } catch (const Error& e) {
      EXPECT_EQ(e.code(), "call.shape");
      EXPECT_NE(std::string(e.what()).find("(17, 6)"), std::string::npos) << e.what();
    }
  }
}

TEST(CTarget, source_reads_like_c) {
  auto module =
      build(make_module(vector_add(1000, 8, ForKind::parallel, "", ForKind::vectorized)), "c");
  EXPECT_NE(module->source().find("restrict A"), std::string::npos) << module->source();
  EXPECT_NE(module->source().find("ctx->parallel_for"), std::string::npos) << module->source();
}

TEST(CTarget, library_text_has_no_entries_and_pointers_that_may_be_equal) {
  const IRModule m = make_module(vector_add(1000, 8, ForKind::serial, "", ForKind::vectorized));
  const std::string text = build(m, "c:library=1")->source();
  for (const char* there : {"static int32_t main_kernel0(", "#pragma GCC ivdep", "weft_exp_float"})
    EXPECT_NE(text.find(there), std::string::npos) << there << " is not in\n" << text;
  for (const char* gone : {"restrict", "_entry("})
    EXPECT_EQ(text.find(gone), std::string::npos) << gone << " is in\n" << text;
}

/// C = A + B with the stores past the caches, sixteen elements at once, chunks in parallel.
PrimFunc streamed_add(std::int64_t n, int lanes) {
  Schedule sch(vector_add(n));
  const auto loop = sch.get_loops(sch.get_block("C"))[0];
  const auto parts = sch.split(loop, {std::nullopt, 8, lanes});
  sch.parallel(parts[0]);
  if (lanes > 1) sch.vectorize(parts[2]);
  sch.annotate(parts[1], "nontemporal", Json(true));
  return sch.func();
}

TEST(HostTargets, nontemporal_stores_write_what_ordinary_ones_would) {
  for (const char* target : {"cpu", "c"}) {
    for (int lanes : {1, 8, 16}) {
      for (std::int64_t n : {1024, 1000}) {
        auto f = compile(streamed_add(n, lanes), target);
        for (std::int64_t skip : {0, 1, 3}) {  // addresses that are no multiple of a vector, too
          auto device = open_device(target);
          auto a = random_floats(static_cast<std::size_t>(n), 1),
               b = random_floats(static_cast<std::size_t>(n), 2);
          std::vector<float> room(static_cast<std::size_t>(n + skip) + 1, -77.0f);
          std::vector<Ref<runtime::Storage>> keep;
          std::vector<CallArg> args;
          auto add = [&](const std::vector<float>& data, std::int64_t from) {
            auto s = device->allocate(data.size() * 4);
            device->upload(*s, 0, data.data(), data.size() * 4);
            args.push_back(
                {s.get(), static_cast<runtime::Bytes>(from * 4), dtypes::float32, {n}, {}, 0, 0});
            keep.push_back(s);
          };
          add(a, 0);
          add(b, 0);
          add(room, skip);
          f->call(args).wait();
          device->download(room.data(), *keep[2], 0, room.size() * 4);
          for (std::int64_t i = 0; i < skip; ++i)
            ASSERT_EQ(room[static_cast<std::size_t>(i)], -77.0f);
          for (std::size_t i = 0; i < a.size(); ++i)
            ASSERT_EQ(room[i + static_cast<std::size_t>(skip)], a[i] + b[i])
                << target << lanes << n << i;
          ASSERT_EQ(room.back(), -77.0f);
        }
      }
    }
  }
}

TEST(HostTargets, nontemporal_stores_are_spelled_as_the_machine_has_them) {
  const std::string llvm = build(make_module(streamed_add(1024, 16)), "cpu")->source();
  EXPECT_NE(llvm.find("align 64, !nontemporal !0"), std::string::npos) << llvm;
#if defined(__x86_64__)
  EXPECT_NE(llvm.find("call void @llvm.x86.sse.sfence()"), std::string::npos) << llvm;
#endif
  const std::string c = build(make_module(streamed_add(1024, 16)), "c:vector_bytes=0")->source();
  EXPECT_NE(c.find("WEFT_STREAM(&C["), std::string::npos) << c;
  EXPECT_NE(c.find("  WEFT_STREAM_END();"), std::string::npos) << c;
  EXPECT_EQ(build(make_module(vector_add(64)), "c")->source().find("WEFT_STREAM"),
            std::string::npos);
}

}  // namespace
}  // namespace weft
