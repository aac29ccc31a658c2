// SPDX-License-Identifier: Apache-2.0
// Pieces of float32 operands (devices/pieces.h) on the OpenCL device that is here.

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

#include "weft/array/ops.h"
#include "weft/devices/pieces.h"
#include "weft/target/backend.h"

namespace weft {
namespace {

std::string missing_device() {
  for (const DeviceStatus& s : all_devices()) {
    if (s.name.starts_with("opencl")) return s.available ? "" : s.reason;
  }
  return "built without the target opencl";
}

double widen(std::uint16_t v) {
  return static_cast<double>(std::bit_cast<float>(std::uint32_t{v} << 16));
}

TEST(ArrayPieces, add_up_to_each_number) {
  const std::string missing = missing_device();
  if (!missing.empty()) GTEST_SKIP() << "no OpenCL device: " << missing;
  const Ref<Device> device = open_device("opencl:0");
  constexpr std::int64_t kBatch = 2, kRows = 37, kColumns = 45;
  constexpr float kInf = std::numeric_limits<float>::infinity();
  std::mt19937 rng(3);
  std::vector<float> v(static_cast<std::size_t>(kBatch * kRows * kColumns));
  for (float& x : v) {  // any exponent whose third piece is a normal number
    const int exponent = static_cast<int>(rng() % 220) - 100;
    x = std::ldexp(1 + static_cast<float>(rng() >> 9) * 0x1p-23F, exponent) * (rng() % 2 ? 1 : -1);
  }
  v[0] = kInf, v[1] = -kInf, v[2] = std::numeric_limits<float>::quiet_NaN();
  v[3] = std::numeric_limits<float>::max(), v[4] = -v[3], v[5] = 0, v[6] = -0.0F;
  const NDArray x = NDArray::empty(device, Elem::float32, Dims{kBatch, kRows, kColumns});
  device->upload(*x.handle(), 0, v.data(), v.size() * 4);
  for (const bool turned : {false, true}) {
    const device::TileOperand got = device::pieces_of(turned ? x.transpose(1, 2) : x);
    EXPECT_EQ(got.inner, turned ? 1 : 2);
    EXPECT_EQ(got.x.strides()[got.inner], 1);
    EXPECT_EQ(got.x.strides()[turned ? 2 : 1] % 16, 0);
    const NDArray& first = got.x;
    std::vector<std::uint16_t> all(static_cast<std::size_t>(device::kPiecePlanes * got.plane));
    device->download(all.data(), *first.handle(), 0, all.size() * 2);
    for (std::size_t i = 0; i < v.size(); ++i) {
      const auto n = static_cast<std::int64_t>(i);
      const std::int64_t b = n / (kRows * kColumns), r = n / kColumns % kRows, c = n % kColumns;
      const Dims& s = first.strides();
      const std::int64_t at =
          turned ? b * s[0] + c * s[1] + r * s[2] : b * s[0] + r * s[1] + c * s[2];
      auto plane = [&](int p) {
        return widen(all[static_cast<std::size_t>(first.offset() + p * got.plane + at)]);
      };
      const double rest = plane(1) + plane(2);
      if (!std::isfinite(v[i])) {
        EXPECT_EQ(std::isnan(plane(0)), std::isnan(v[i]));
        if (!std::isnan(v[i])) EXPECT_EQ(plane(0), static_cast<double>(v[i]));
        EXPECT_EQ(rest, 0);
        EXPECT_EQ(plane(3), 0);
        continue;
      }
      ASSERT_EQ(plane(0) + rest, static_cast<double>(v[i])) << v[i];
      ASSERT_EQ(plane(3), plane(0));
      // Twice that for what lies above the largest bfloat16.
      ASSERT_LE(std::abs(plane(1)), std::abs(plane(0)) * 0x1p-7);
      ASSERT_LE(std::abs(plane(2)), std::abs(plane(0)) * 0x1p-15);
    }
  }
}

/// Batches that are repeated are written once.
TEST(ArrayPieces, repeated_batches_are_one) {
  const std::string missing = missing_device();
  if (!missing.empty()) GTEST_SKIP() << "no OpenCL device: " << missing;
  const Ref<Device> device = open_device("opencl:0");
  const NDArray x = NDArray::empty(device, Elem::float32, Dims{1, 8, 24});
  const device::TileOperand got = device::pieces_of(x.broadcast_to(Dims{5, 8, 24}));
  EXPECT_EQ(got.x.strides()[0], 0);
  EXPECT_EQ(got.plane, 8 * 32);
  device->synchronize();  // a process that ends does not wait for its kernels
}

}  // namespace
}  // namespace weft
