// SPDX-License-Identifier: Apache-2.0
#pragma once
// OpenCL devices of every platform, through the loader library opened at run time.

#include <string>
#include <vector>

#include "weft/base/ref.h"
#include "weft/runtime/device.h"

namespace weft::opencl {

struct Adapter {
  std::string name, platform;
  std::int64_t threads = 256, shared_bytes = 32768, processors = 1;
  std::int64_t sizes[3] = {256, 256, 256};
  runtime::Bytes memory = 0;
  bool doubles = false;
};

std::vector<Adapter> adapters(std::string* reason);
/// Throws Error(device, "opencl.absent").
Ref<runtime::Device> open_adapter(int index);

}  // namespace weft::opencl
