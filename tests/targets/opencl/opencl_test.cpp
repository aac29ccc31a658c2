// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include "../run_program.h"
#include "weft/base/error.h"

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

}  // namespace
}  // namespace weft
