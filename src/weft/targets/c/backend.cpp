// SPDX-License-Identifier: Apache-2.0
#include "weft/target/backend.h"
#include "weft/target/accepts.h"
#include "weft/target/pipeline.h"
#include "weft/targets/c/device.h"
#include "weft/targets/c/spelling.h"

namespace weft::c {

namespace {

constexpr std::string_view kFlags = "-O3 -march=native -fno-math-errno -fno-trapping-math -fwrapv";

class CBackend final : public Backend {
 public:
  std::string_view name() const override { return "c"; }

  TargetInfo info(const Target& target) const override {
    for (const auto& [key, value] : target.options) {
      if (key != "" && key != "cc" && key != "flags" && key != "library" &&
          !is_lowering_option(key)) {
        throw Error(ErrorKind::value, "c.option.unknown",
                    cat("target c has no option \"", key, "\" (given: ", value, ")"))
            .note("options: cc, flags, library, share_storage, merge_expressions");
      }
    }
    TargetInfo out;
    for (const char* scope : {"global", "shared", "local"}) {
      MemoryInfo memory;
      memory.scope = scope;
      out.memories.push_back(memory);
    }
    out.dtypes = generic_target_info().dtypes;
    return out;
  }

  Verdict accepts(const ir::PrimFunc& f, const Target& target) const override {
    return accepts_rows(f, info(target), "c");
  }

  pass::Pipeline pipeline(const Target& target) const override {
    LoweringOptions options;
    options.vector_lanes = 0;
    options.narrow = true;
    options.read(target);
    return standard_pipeline(info(target), "c", options);
  }

  runtime::Binary emit(const std::vector<ir::PrimFunc>& kernels,
                       const Target& target) const override {
    EmittedSource out =
        emit_c(kernels, target.integer("library", 0) ? library_spelling() : spelling());
    runtime::Binary binary;
    binary.target = target.text();
    binary.format = "c";
    binary.bytes = out.text;
    binary.source = std::move(out.text);
    binary.kernels = std::move(out.kernels);
    binary.metadata = std::move(out.metadata);
    return binary;
  }

  std::vector<DeviceStatus> devices() const override {
    DeviceStatus status;
    status.name = "c";
    std::string version = compiler_version("cc");
    status.available = !version.empty();
    status.description = version;
    if (!status.available) status.reason = "no program \"cc\" in the search path could be run";
    return {status};
  }

  Ref<runtime::Device> open(const Target& target) const override {
    info(target);
    std::string compiler = target.option("cc", "cc");
    if (compiler_version(compiler).empty()) {
      throw Error(ErrorKind::device, "c.absent",
                  cat("the C compiler \"", compiler, "\" cannot be run"))
          .note("searched: the program's search path")
          .help("install a C compiler, or name one: c:cc=PATH");
    }
    return make_ref<CDevice>(target.text(), compiler, target.option("flags", kFlags));
  }
};

}  // namespace

Backend& backend() {
  static CBackend instance;
  return instance;
}

}  // namespace weft::c
