// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>

#include "../../expect_error.h"
#include "../../unit/lower_kit.h"
#include "../run_program.h"
#include "weft/base/error.h"
#include "weft/targets/opencl/device.h"

namespace weft {
namespace {

using namespace testing;

Ref<runtime::Device> device_or_null() {
  for (const DeviceStatus& s : all_devices()) {
    if (s.name == "opencl:0" && s.available) return open_device("opencl:0");
  }
  return nullptr;
}

void check(const Program& p, double tolerance) {
  Ref<runtime::Device> device = device_or_null();
  if (!device) GTEST_SKIP() << "no OpenCL device: pocl-opencl-icd is not installed";
  Ref<runtime::Module> module;
  try {
    module = build(p.scheduled, "opencl");
    EXPECT_LE(run_and_compare(p, module, device, 7), tolerance) << p.name << "\n"
                                                                << module->source();
  } catch (const Error& e) {
    ADD_FAILURE() << p.name << ": " << e.what() << (module ? module->source() : "");
  }
}

TEST(OpenCl, adds_vectors) {
  check(vector_add_program(1024, 128), 1e-6);
  check(vector_add_program(1000, 64), 1e-6);
}

TEST(OpenCl, sums_windows_through_local_memory) {
  for (int cache : {0, 1, 2}) check(window_sum_program(1024, 128, cache), 1e-6);
}

TEST(OpenCl, climbs_the_matrix_ladder) {
  for (int step : {1, 2, 3, 4, 5}) check(matmul_program(64, 64, 32, step, 4, 4, 4, 4, 8), 1e-4);
}

/// The product with two virtual threads a thread along both axes, accumulating in private memory.
Program virtual_thread_product() {
  Program p = matmul_program(32, 32, 16, 1);
  p.name = "gemm_vthread";
  Schedule sch(p.meaning);
  const auto c = sch.get_block("C"), local = sch.cache_write(c, 0, "local");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {std::nullopt, 2, 4, 2}),
             j = sch.split(l[1], {std::nullopt, 2, 4, 2});
  sch.reorder({i[0], j[0], i[1], j[1], i[2], j[2], l[2], i[3], j[3]});
  sch.reverse_compute_at(local, j[2]);
  sch.bind(i[0], "blockIdx.y");
  sch.bind(j[0], "blockIdx.x");
  sch.bind(i[1], "vthread.y");
  sch.bind(j[1], "vthread.x");
  sch.bind(i[2], "threadIdx.y");
  sch.bind(j[2], "threadIdx.x");
  p.scheduled = sch.mod();
  return p;
}

TEST(OpenCl, virtual_threads_interleave_in_one_thread) { check(virtual_thread_product(), 1e-5); }

TEST(OpenCl, aligned_rows_of_a_shared_tile_are_longer_and_hold_the_same) {
  Program p = matmul_program(32, 32, 16, 1);
  p.name = "gemm_aligned";
  Schedule sch(p.meaning);
  const auto c = sch.get_block("C");
  const auto l = sch.get_loops(c);
  const auto i = sch.split(l[0], {std::nullopt, 8}), j = sch.split(l[1], {std::nullopt, 8});
  sch.reorder({i[0], j[0], i[1], j[1], l[2]});
  sch.bind(i[0], "blockIdx.y");
  sch.bind(j[0], "blockIdx.x");
  sch.bind(i[1], "threadIdx.y");
  sch.bind(j[1], "threadIdx.x");
  const auto tile = sch.cache_read(c, 0, "shared");
  sch.compute_at(tile, j[0]);
  const auto ax = sch.get_loops(tile);
  const auto parts =
      sch.split(sch.fuse({ax[ax.size() - 2], ax[ax.size() - 1]}), {std::nullopt, 8, 8});
  sch.bind(parts[1], "threadIdx.y");
  sch.bind(parts[2], "threadIdx.x");
  sch.storage_align(tile, 0, -2, 32, 5);
  p.scheduled = sch.mod();
  // 8 rows, each 37 apart: 5 beyond a multiple of 32, at least 16 long.
  const std::string text = build(p.scheduled, "metal")->source();
  EXPECT_NE(text.find("A_shared[275];"), std::string::npos) << text;  // 7 * 37 + 16
  check(p, 1e-5);
}

TEST(OpenCl, strided_parameters_are_read_where_they_lie) {
  const ir::Var row = ir::make_var("row");
  auto a = ir::edit(ir::make_buffer("A", dtypes::float32, {ir::make_int(8), ir::make_int(16)}));
  a->strides = {row, ir::make_int(1)};
  const ir::Buffer A = a,
                   B = ir::make_buffer("B", dtypes::float32, {ir::make_int(8), ir::make_int(16)});
  const IterVar vi = iter("vi", ir::make_int(8)), vj = iter("vj", ir::make_int(16));
  const ir::Exprs at{vi.var, vj.var};
  const ir::Var i = ir::make_var("i"), j = ir::make_var("j");
  const ir::Stmt body = block("B", {vi, vj}, {i, j}, {ir::point_region(A, at)},
                              {ir::point_region(B, at)}, ir::store(B, ir::load(A, at) * 2, at));
  const ir::PrimFunc f = ir::make_func(
      "main", {ir::buffer_param(A), ir::buffer_param(B)},
      ir::root_block(ir::make_for(i, ir::make_int(0), ir::make_int(8),
                                  ir::make_for(j, ir::make_int(0), ir::make_int(16), body))));
  for (const char* target : {"cpu", "c", "opencl"}) {
    if (std::string_view(target) == "opencl" && !device_or_null()) continue;
    const auto device = open_device(target);
    const auto function =
        make_ref<runtime::Function>(build(ir::make_module(f), target), "main", device);
    std::vector<float> in(8 * 21), out(8 * 16);
    for (std::size_t k = 0; k < in.size(); ++k) in[k] = static_cast<float>(k);
    auto x = device->allocate(in.size() * 4), y = device->allocate(out.size() * 4);
    device->upload(*x, 0, in.data(), in.size() * 4);
    std::vector<runtime::CallArg> args{{x.get(), 4, dtypes::float32, {8, 16}, {21, 1}, 0, 0},
                                       {y.get(), 0, dtypes::float32, {8, 16}, {}, 0, 0}};
    function->call(args).wait();
    device->download(out.data(), *y, 0, out.size() * 4);
    for (std::size_t r = 0; r < 8; ++r) {
      for (std::size_t c = 0; c < 16; ++c)
        ASSERT_EQ(out[r * 16 + c], 2 * in[1 + r * 21 + c]) << target << " " << r << " " << c;
    }
  }
}

TEST(OpenCl, devices_beyond_the_last_and_before_the_first_are_absent) {
  std::string reason;
  const int count = static_cast<int>(opencl::adapters(&reason).size());
  for (const int index : {-1, count, count + 1})
    testing::expect_error(ErrorKind::device, "opencl.absent", {cat("device opencl:", index)},
                          [&] { opencl::open_adapter(index); });
}

TEST(OpenCl, lists_every_adapter_as_a_device) {
  std::string reason;
  const std::vector<opencl::Adapter> adapters = opencl::adapters(&reason);
  const std::vector<DeviceStatus> listed = find_backend("opencl").devices();
  ASSERT_EQ(listed.size(), std::max<std::size_t>(1, adapters.size()));
  if (adapters.empty()) EXPECT_EQ(listed[0].reason, reason);
  for (std::size_t i = 0; i < listed.size(); ++i) {
    EXPECT_EQ(listed[i].name, cat("opencl:", i));
    EXPECT_EQ(listed[i].available, i < adapters.size());
    if (!listed[i].available) continue;
    EXPECT_EQ(open_device(listed[i].name)->info().name, listed[i].name);
    EXPECT_NE(listed[i].description.find(adapters[i].name), std::string::npos);
  }
}

TEST(OpenCl, grids_have_more_groups_than_16_bits_count) {
  check(vector_add_program(70000, 1), 1e-6);
}

TEST(OpenCl, refuses_too_many_threads_before_launch) {
  auto p = vector_add_program(1 << 12, 512);
  try {
    build(p.scheduled, "opencl:max_threads_per_block=256");
    FAIL() << "512 threads in a group were accepted";
  } catch (const Error& e) {
    EXPECT_TRUE(e.code() == "lower.axis.limit" || e.code() == "lower.axis.group_limit") << e.what();
    EXPECT_NE(std::string(e.what()).find("512"), std::string::npos) << e.what();
  }
}

TEST(OpenCl, refuses_too_much_local_memory) {
  auto p = window_sum_program(1024, 128, 2);
  try {
    build(p.scheduled, "opencl:max_shared_memory_per_block=512");
    FAIL() << "520 bytes were accepted where 512 exist";
  } catch (const Error& e) {
    EXPECT_EQ(e.code(), "lower.shared.limit");
    EXPECT_NE(std::string(e.what()).find("520 bytes"), std::string::npos) << e.what();
  }
}

/// Launches kernels that the driver has yet to compile and ends the process with nobody waiting.
void launch_and_end() {
  const Ref<runtime::Device> device = open_device("opencl:0");
  for (const Program& p : {vector_add_program(1000, 64), window_sum_program(1024, 128, 1),
                           matmul_program(64, 64, 32, 2, 4, 4, 4, 4, 8)}) {
    auto function = make_ref<runtime::Function>(build(p.scheduled, "opencl"), "main", device);
    Arrays a = random_arrays(p, device, 7);
    function->call(a.args);
  }
  std::exit(0);
}

TEST(OpenClDeathTest, a_process_ends_before_its_kernels) {
  // Children run this test from its beginning with their parent's variables; the driver reads its
  // own when it is first asked.
  setenv("WEFT_TEST_ENDS", cat(::testing::TempDir(), "weft_ends_", getpid()).c_str(), 0);
  const std::filesystem::path folder = getenv("WEFT_TEST_ENDS");
  const std::filesystem::path cache = folder / std::to_string(getpid());
  std::filesystem::create_directories(cache);
  setenv("POCL_CACHE_DIR", cache.c_str(), 1);
  if (!device_or_null()) GTEST_SKIP() << "no OpenCL device: pocl-opencl-icd is not installed";
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  for (int turn = 0; turn < 3; ++turn)
    EXPECT_EXIT(launch_and_end(), ::testing::ExitedWithCode(0), "") << turn;
  // The tests after this one use the parent's cache.
  static const struct Remove {
    std::filesystem::path folder;
    ~Remove() {
      std::error_code ignored;
      std::filesystem::remove_all(folder, ignored);
    }
  } at_end{folder};
}

}  // namespace
}  // namespace weft
