// SPDX-License-Identifier: Apache-2.0
#include "weft/target/text_backend.h"
#include "weft/targets/c/device.h"
#include "weft/targets/c/spelling.h"

namespace weft::c {

namespace {

constexpr std::string_view kFlags = "-O3 -march=native -fno-math-errno -fno-trapping-math -fwrapv";

class CBackend final : public TextBackend {
 public:
  CBackend()
      : TextBackend({.name = "c",
                     .format = "c",
                     .options = {"cc", "flags", "library"},
                     .grid = false,
                     .spelling = spelling}) {}

  TargetInfo rows(const Target&) const override {
    TargetInfo out;
    for (const char* scope : {"global", "shared", "local"}) {
      MemoryInfo memory;
      memory.scope = scope;
      out.memories.push_back(memory);
    }
    out.dtypes = generic_target_info().dtypes;
    return out;
  }

  const CSpelling& spelling_for(const Target& target) const override {
    return target.integer("library", 0) ? library_spelling() : spelling();
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
