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

  TargetInfo rows(const Target& target) const override {
    GroupLimits limits;
    limits.thread_extent[2] = 1024;
    for (std::int64_t& n : limits.block_extent) n = 2147483647;
    limits.shared_bytes = 32768;
    TargetInfo out = grid_target_info(stated(limits, target));
    std::erase(out.dtypes, dtypes::float64);
    out.limits["vector_bytes"] = 16;
    out.limits["vector_align"] = 16;
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
