// SPDX-License-Identifier: Apache-2.0
#pragma once
// Plain-integer references and helpers to run a program on the simulator.

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "../../expect_error.h"
#include "weft/targets/vta/checker.h"
#include "weft/targets/vta/schedules.h"
#include "weft/targets/vta/simulator.h"

namespace weft::vta {

using testing::refused;
using testing::Refused;

template <typename T>
std::vector<T> random_values(std::mt19937_64& rng, std::size_t n, std::int64_t low,
                             std::int64_t high) {
  std::vector<T> out(n);
  for (T& v : out)
    v = static_cast<T>(
        low + static_cast<std::int64_t>(rng() % static_cast<std::uint64_t>(high - low + 1)));
  return out;
}

inline std::int32_t wrap32(std::int64_t v) {
  return static_cast<std::int32_t>(static_cast<std::uint32_t>(static_cast<std::uint64_t>(v)));
}

/// The epilogue on one sum, in plain integers.
inline std::int8_t finish(std::int64_t sum, const Epilogue& e, std::int32_t bias) {
  std::int32_t v = wrap32(sum);
  v >>= e.shift;
  if (e.bias) v = wrap32(std::int64_t{v} + bias);
  if (e.clip)
    v = std::min<std::int32_t>(std::max<std::int32_t>(v, static_cast<std::int32_t>(e.low)),
                               static_cast<std::int32_t>(e.high));
  return static_cast<std::int8_t>(v & 0xff);
}

using Bytes8 = std::vector<std::int8_t>;

/// A device and a program's buffers on it.
class Session {
 public:
  explicit Session(const Config& config, SimOptions options = {})
      : device_(open_simulator(config, std::move(options))) {}
  runtime::Device& device() { return *device_; }
  template <typename T>
  void argument(const std::vector<T>& data) {
    runtime::Bytes bytes = data.size() * sizeof(T);
    storages_.push_back(device_->allocate(bytes, 4096));
    device_->upload(*storages_.back(), 0, data.data(), bytes);
  }
  runtime::Span operator()(const Program& program) {
    Ref<runtime::Executable> executable = device_->load(to_binary(program, "vta"));
    std::vector<runtime::KernelArg> args;
    for (auto& s : storages_) args.push_back(runtime::KernelArg::pointer(s.get()));
    return device_->measure([&] { device_->launch(*executable, 0, args, {}).wait(); });
  }
  template <typename T>
  std::vector<T> result(std::size_t argument) {
    std::vector<T> out(storages_.at(argument)->bytes() / sizeof(T));
    device_->download(out.data(), *storages_[argument], 0, storages_[argument]->bytes());
    return out;
  }

 private:
  Ref<runtime::Device> device_;
  std::vector<Ref<runtime::Storage>> storages_;
};

inline void expect_checked(const Program& program) {
  Verdict verdict = check(program, 0);
  EXPECT_FALSE(verdict) << render(*verdict);
}

}  // namespace weft::vta
