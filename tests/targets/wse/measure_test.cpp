// SPDX-License-Identifier: Apache-2.0
// Simulated time is of the thread that measures, on every simulated device.
#include <gtest/gtest.h>

#include <thread>

#include "weft/ir/text.h"
#include "weft/runtime/module.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

const char* kProgram = R"(
@T.prim_func
def main(A: T.Buffer((64,), "int32"), B: T.Buffer((64,), "int32")):
    for i in range(64):
        with T.block("B"):
            vi = T.axis.spatial(64, i)
            B[vi] = A[vi] + 1
)";

TEST(SimulatedTime, is_of_the_thread_that_measures) {
  for (const char* target : {"null", "qpu", "vta", "wse:2x2"}) {
    SCOPED_TRACE(target);
    ir::IRModule program = ir::parse_module(kProgram);
    Ref<runtime::Module> module = build(program, target);
    Ref<runtime::Device> device = open_device(target);
    runtime::Function f(module, module->plans()[0].name, device);
    Ref<runtime::Storage> a = device->allocate(256), b = device->allocate(256);
    const std::vector<std::int32_t> zeros(64);
    device->upload(*a, 0, zeros.data(), 256);
    auto call = [&] {
      runtime::CallArg args[2];
      args[0].storage = a.get(), args[1].storage = b.get();
      for (runtime::CallArg& arg : args) arg.dtype = dtypes::int32, arg.shape = {64};
      f.call(args).wait();
    };
    call();  // the wafer keeps what it was sent, so that later calls take less
    const std::int64_t one = device->measure(call).cycles;
    EXPECT_GT(one, 0);
    std::int64_t inner = 0;
    const std::int64_t mine = device
                                  ->measure([&] {
                                    call();
                                    std::thread([&] { call(), call(); }).join();
                                    inner = device->measure(call).cycles;
                                  })
                                  .cycles;
    EXPECT_EQ(inner, one);
    EXPECT_EQ(mine, 2 * one);
  }
}

}  // namespace
}  // namespace weft
