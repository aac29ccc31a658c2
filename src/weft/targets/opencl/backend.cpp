// SPDX-License-Identifier: Apache-2.0
#include "weft/target/backend.h"
#include "weft/target/accepts.h"
#include "weft/target/default_grid_schedule.h"
#include "weft/target/gpu_rows.h"
#include "weft/target/pipeline.h"
#include "weft/targets/opencl/device.h"
#include "weft/targets/opencl/spelling.h"

namespace weft::opencl {

namespace {

class OpenClBackend final : public Backend {
 public:
  std::string_view name() const override { return "opencl"; }

  TargetInfo info(const Target& target) const override {
    for (const auto& [key, value] : target.options) {
      if (key != "" && key != "max_threads_per_block" && key != "max_shared_memory_per_block" &&
          !is_lowering_option(key)) {
        throw Error(ErrorKind::value, "opencl.option.unknown",
                    cat("target opencl has no option \"", key, "\" (given: ", value, ")"))
            .note(
                "options: a device's number, max_threads_per_block, max_shared_memory_per_block, "
                "share_storage, merge_expressions");
      }
    }
    GroupLimits limits;
    std::string reason;
    std::vector<Adapter> all = adapters(&reason);
    auto i = static_cast<std::size_t>(target.integer("", 0));
    if (i < all.size()) {
      limits.threads = all[i].threads;
      limits.shared_bytes = all[i].shared_bytes;
      for (int d = 0; d < 3; ++d) limits.thread_extent[d] = all[i].sizes[d];
    }
    for (std::int64_t& n : limits.block_extent) n = 2147483647;
    limits.threads = target.integer("max_threads_per_block", limits.threads);
    limits.shared_bytes = target.integer("max_shared_memory_per_block", limits.shared_bytes);
    TargetInfo out = grid_target_info(limits);
    out.limits["vector_bytes"] = 16;
    if (i < all.size() && !all[i].doubles) std::erase(out.dtypes, dtypes::float64);
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    return accepts_rows(f, info(target), "opencl");
  }

  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target& target) const override {
    return default_grid_schedule(f, info(target));
  }

  pass::Pipeline pipeline(const Target& target) const override {
    LoweringOptions options;
    options.vector_lanes = 16;
    options.read(target);
    return standard_pipeline(info(target), "opencl", options);
  }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    EmittedSource out = emit_c(kernels, spelling());
    check_shared_bytes(out, info(target).limits.at("max_shared_memory_per_block"), target.text());
    runtime::Binary binary;
    binary.target = target.text();
    binary.format = "opencl-c";
    binary.bytes = out.text;
    binary.source = std::move(out.text);
    binary.kernels = std::move(out.kernels);
    binary.metadata = std::move(out.metadata);
    return binary;
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
