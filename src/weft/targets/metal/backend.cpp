// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/target/accepts.h"
#include "weft/target/backend.h"
#include "weft/target/default_grid_schedule.h"
#include "weft/target/gpu_rows.h"
#include "weft/target/pipeline.h"
#include "weft/targets/metal/spelling.h"

namespace weft::metal {

namespace {

constexpr std::string_view kAbsent = "weft writes Metal text but has no Metal runtime";

class MetalBackend final : public Backend {
 public:
  std::string_view name() const override { return "metal"; }

  TargetInfo info(const Target& target) const override {
    for (const auto& [key, value] : target.options) {
      if (key != "" && key != "max_threads_per_block" && key != "max_shared_memory_per_block" &&
          !is_lowering_option(key)) {
        throw Error(ErrorKind::value, "metal.option.unknown",
                    cat("target metal has no option \"", key, "\" (given: ", value, ")"))
            .note(
                "options: max_threads_per_block, max_shared_memory_per_block, "
                "share_storage, merge_expressions");
      }
    }
    GroupLimits limits;
    limits.thread_extent[2] = 1024;
    for (std::int64_t& n : limits.block_extent) n = 2147483647;
    limits.threads = target.integer("max_threads_per_block", 1024);
    limits.shared_bytes = target.integer("max_shared_memory_per_block", 32768);
    TargetInfo out = grid_target_info(limits);
    std::erase(out.dtypes, dtypes::float64);
    out.limits["vector_bytes"] = 16;
    out.limits["vector_align"] = 16;
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    return accepts_rows(f, info(target), "metal");
  }

  ir::PrimFunc default_schedule(const ir::PrimFunc& f, const Target& target) const override {
    return default_grid_schedule(f, info(target));
  }

  pass::Pipeline pipeline(const Target& target) const override {
    LoweringOptions options;
    options.vector_lanes = 4;
    options.read(target);
    return standard_pipeline(info(target), "metal", options);
  }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    EmittedSource out = emit_c(kernels, spelling());
    check_shared_bytes(out, info(target).limits.at("max_shared_memory_per_block"), target.text());
    runtime::Binary binary;
    binary.target = target.text();
    binary.format = "metal";
    binary.bytes = out.text;
    binary.source = std::move(out.text);
    binary.kernels = std::move(out.kernels);
    binary.metadata = std::move(out.metadata);
    return binary;
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
