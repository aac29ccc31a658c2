// SPDX-License-Identifier: Apache-2.0
#pragma once
// Checks that programs of a device make while the host goes on. Reading at positions beyond an axis
// sets a flag on the device; the host looks at it when it next waits for that device (a copy to the
// host, synchronize(), an export) and raises there. Until then element 0 stands for what was asked.

#include <cstdint>
#include <functional>

#include "weft/array/ndarray.h"
#include "weft/base/error.h"

namespace weft {

/// An int32 on the device that a check sets to 1 where it fails; shared by all pending checks.
NDArray pending_flag(const Ref<Device>& device);
/// Notes a check that has been launched. `explain` throws what it has found; it is called only when
/// the flag is set, and may keep arrays of so many bytes until then. Many or large ones are looked
/// at now.
void add_pending(const Ref<Device>& device, std::function<void()> explain, std::int64_t bytes);
/// Throws what a pending check has found; the device has finished them, or is waited for.
void settle_pending(const Ref<Device>& device);

}  // namespace weft
