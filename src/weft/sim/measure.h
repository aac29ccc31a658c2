// SPDX-License-Identifier: Apache-2.0
#pragma once
// Simulated time of one thread's launches, whatever other threads launch meanwhile.

#include <cstdint>
#include <functional>

#include "weft/runtime/device.h"

namespace weft::sim {

/// A launch of the calling thread on `device` took so many cycles.
void count_cycles(const runtime::Device& device, std::int64_t cycles);
/// Runs `work` and returns its wall time and the cycles that the calling thread's launches took on
/// `device` meanwhile. May be nested.
runtime::Span measure_cycles(const runtime::Device& device, double clock_hz,
                             const std::function<void()>& work);

}  // namespace weft::sim
