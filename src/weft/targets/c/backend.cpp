// SPDX-License-Identifier: Apache-2.0
#include "weft/machine/dot_limits.h"
#include "weft/target/pipeline.h"
#include "weft/target/text_backend.h"
#include "weft/target/transpose_rows.h"
#include "weft/targets/c/device.h"
#include "weft/targets/c/spelling.h"

namespace weft::c {

namespace {

constexpr std::string_view kFlags = "-O3 -march=native -fno-math-errno -fno-trapping-math -fwrapv";

// One width for every machine, so that the text does not depend on where it is written: what AVX2
// has, and with AVX-512 as fast as wider ones.
constexpr std::int64_t kVectorBytes = 32;

bool is_library(const Target& target) { return target.integer("library", 0) != 0; }

/// The option vector_bytes: vectorized loops become vectors of GCC and Clang; 0: they stay loops,
/// as they do in a library unless it names a width, for it is compiled for several.
int vector_bytes(const Target& target) {
  const std::int64_t n = target.integer("vector_bytes", is_library(target) ? 0 : kVectorBytes);
  if (n != 0 && n != 16 && n != 32 && n != 64) {
    throw Error(ErrorKind::value, "target.option.range",
                cat("option \"vector_bytes\" of target ", target.name, " is ", n))
        .note("legal: 16, 32 and 64; 0 leaves loops for the compiler to vectorize")
        .help("take what the machine has: 32 with AVX2, 64 with AVX-512, 16 elsewhere");
  }
  return static_cast<int>(n);
}

class CBackend final : public TextBackend {
 public:
  CBackend()
      : TextBackend({.name = "c",
                     .format = "c",
                     .options = {"cc", "flags", "library", "vector_bytes", "check_bounds"},
                     .grid = false,
                     .spelling = spelling}) {}

  TargetInfo rows(const Target& target) const override {
    TargetInfo out;
    for (const char* scope : {"global", "shared", "local"}) {
      MemoryInfo memory;
      memory.scope = scope;
      out.memories.push_back(memory);
    }
    out.dtypes = generic_target_info().dtypes;
    out.instructions = transpose_rows();
    if (const int bytes = vector_bytes(target)) {
      out.limits[limits::kVectorBytes] = bytes;
      // Of the processor that the text is compiled for: AVX-512 and AVX VNNI, else AVX2 in a few
      // instructions.
      if (bytes == kVectorBytes)
        out.limits[limits::kDotMixedBytes] = 4, out.limits[limits::kDotWords] = 2;
    }
    return out;
  }

  pass::Pipeline pipeline(const Target& target) const override {
    LoweringOptions options;
    options.vector_lanes = options.vector_bytes = vector_bytes(target);
    options.transposes = options.masked_loads = true;
    options.hoist_guards = true;
    options.read(target);
    return standard_pipeline(info(target), options);
  }

  const CSpelling& spelling_for(const Target& target) const override {
    return vector_spelling(is_library(target), vector_bytes(target));
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
