// SPDX-License-Identifier: Apache-2.0
// The QPU among the back ends: rows, devices, and what is refused.

#include "weft/target/backend.h"

#include <gtest/gtest.h>

namespace weft::qpu {
Backend& backend();
namespace {

TEST(QpuBackend, rows_and_devices) {
  Backend& b = backend();
  TargetInfo info = b.info(Target::parse("qpu:qpus=4"));
  ASSERT_NE(info.axis("qpu"), nullptr);
  EXPECT_EQ(info.axis("qpu")->limit, 4);
  EXPECT_EQ(info.axis("lane")->limit, 16);
  EXPECT_EQ(info.memory("vpm")->bytes, 4096);
  ASSERT_EQ(b.devices().size(), 2u);
  EXPECT_TRUE(b.devices()[0].available);
  EXPECT_FALSE(b.devices()[1].available);
  EXPECT_NE(b.devices()[1].reason, "");
  Ref<runtime::Device> device = b.open(Target::parse("qpu:qpus=4"));
  EXPECT_EQ(device->info().kind, runtime::DeviceKind::simulator);
  EXPECT_EQ(device->info().limits.at("qpus"), 4);
}

TEST(QpuBackend, refusals) {
  auto code = [](auto f) -> std::string {
    try {
      f();
    } catch (const Error& e) {
      return e.code();
    }
    return "accepted";
  };
  EXPECT_EQ(code([] { backend().open(Target::parse("qpu:hw")); }), "qpu.absent");
  EXPECT_EQ(code([] { backend().info(Target::parse("qpu:qpus=13")); }), "qpu.device.option");
}

}  // namespace
}  // namespace weft::qpu
