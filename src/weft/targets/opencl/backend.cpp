// SPDX-License-Identifier: Apache-2.0
#include "weft/target/text_backend.h"
#include "weft/targets/opencl/device.h"
#include "weft/targets/opencl/spelling.h"

namespace weft::opencl {

namespace {

class OpenClBackend final : public TextBackend {
 public:
  OpenClBackend()
      : TextBackend({.name = "opencl",
                     .format = "opencl-c",
                     .number = "a device's number",
                     .vector_lanes = 16,
                     .spelling = spelling}) {}

  TargetInfo rows(const Target& target) const override {
    TargetInfo out = kind();
    std::string reason;
    std::vector<Adapter> all = adapters(&reason);
    auto i = static_cast<std::size_t>(target.integer("", 0));
    if (i < all.size()) {
      out.set_group(all[i].threads, all[i].shared_bytes);
      for (AxisInfo& axis : out.axes) {
        if (axis.group == "threadIdx") axis.limit = all[i].sizes[axis.name.back() - 'x'];
      }
      if (!all[i].doubles) std::erase(out.dtypes, dtypes::float64);
    }
    return out;
  }

  TargetInfo kind() const override {
    TargetInfo out = grid_target_info();
    for (AxisInfo& axis : out.axes) {
      if (axis.group == "blockIdx") axis.limit = 2147483647;
    }
    out.limits[limits::kVectorBytes] = 16;
    return out;
  }

  std::vector<DeviceStatus> devices() const override {
    std::string reason;
    std::vector<DeviceStatus> out;
    int i = 0;
    for (const Adapter& a : adapters(&reason)) {
      DeviceStatus status;
      status.name = cat("opencl:", i++);
      status.available = true;
      status.description = cat(a.name, " (", a.platform, ", ", human_bytes(a.memory), ")");
      out.push_back(std::move(status));
    }
    if (out.empty()) {
      DeviceStatus status;
      status.name = "opencl:0";
      status.reason = reason;
      out.push_back(std::move(status));
    }
    return out;
  }

  Ref<runtime::Device> open(const Target& target) const override {
    return open_adapter(static_cast<int>(target.integer("", 0)));
  }
};

}  // namespace

Backend& backend() {
  static OpenClBackend instance;
  return instance;
}

}  // namespace weft::opencl
