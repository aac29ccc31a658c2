// SPDX-License-Identifier: Apache-2.0
#include "weft/array/on_device.h"

#include "weft/base/error.h"

namespace weft {

namespace {
const DeviceOperators* linked = nullptr;
}

const DeviceOperators& on_device() {
  WEFT_CHECK(linked, "an array of a device in a program without the component \"devices\"");
  return *linked;
}

void announce(const DeviceOperators& operators) { linked = &operators; }

}  // namespace weft
