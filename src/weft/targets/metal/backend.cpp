// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/target/text_backend.h"
#include "weft/targets/metal/spelling.h"

namespace weft::metal {

namespace {

constexpr std::string_view kAbsent = "weft writes Metal text but has no Metal runtime";

class MetalBackend final : public TextBackend {
 public:
  MetalBackend()
      : TextBackend({.name = "metal", .format = "metal", .vector_lanes = 4, .spelling = spelling}) {
  }

  TargetInfo rows(const Target&) const override {
    TargetInfo out = grid_target_info();
    for (AxisInfo& axis : out.axes) {
      if (axis.group == "blockIdx") axis.limit = 2147483647;
      if (axis.group == "threadIdx") axis.limit = 1024;
    }
    out.set_group(out.group_threads(), 32768);
    std::erase(out.dtypes, dtypes::float64);
    out.limits[limits::kVectorBytes] = 16;
    out.limits[limits::kVectorAlign] = 16;
    return out;
  }

  std::vector<DeviceStatus> devices() const override {
    DeviceStatus status;
    status.name = "metal:0";
    status.reason = kAbsent;
    return {status};
  }

  Ref<runtime::Device> open(const Target& target) const override {
    throw Error(ErrorKind::device, "metal.absent",
                cat("device ", target.text(), " is absent: ", kAbsent))
        .help("use the module's source() on a Mac");
  }
};

}  // namespace

Backend& backend() {
  static MetalBackend instance;
  return instance;
}

}  // namespace weft::metal
