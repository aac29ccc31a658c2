// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/cpu/processors.h"

#include <algorithm>
#include <iterator>
#include <vector>

#include "weft/base/error.h"
#include "weft/base/text.h"

namespace weft::cpu {

namespace {

// LLVM 14's, which later versions know too.
constexpr std::string_view kNames[] = {
    "host",
    "generic",
#if defined(__x86_64__)
    "x86-64",
    "x86-64-v2",
    "x86-64-v3",
    "x86-64-v4",
    "nocona",
    "core2",
    "penryn",
    "bonnell",
    "atom",
    "silvermont",
    "goldmont",
    "goldmont-plus",
    "tremont",
    "nehalem",
    "corei7",
    "westmere",
    "sandybridge",
    "ivybridge",
    "haswell",
    "broadwell",
    "skylake",
    "skylake-avx512",
    "cascadelake",
    "cooperlake",
    "cannonlake",
    "icelake-client",
    "icelake-server",
    "tigerlake",
    "rocketlake",
    "alderlake",
    "sapphirerapids",
    "knl",
    "knm",
    "k8",
    "opteron",
    "athlon64",
    "k8-sse3",
    "amdfam10",
    "barcelona",
    "btver1",
    "btver2",
    "bdver1",
    "bdver2",
    "bdver3",
    "bdver4",
    "znver1",
    "znver2",
    "znver3",
#elif defined(__aarch64__)
    "cortex-a35",   "cortex-a53",  "cortex-a55",  "cortex-a57",  "cortex-a72",
    "cortex-a73",   "cortex-a75",  "cortex-a76",  "cortex-a77",  "cortex-a78",
    "cortex-x1",    "neoverse-n1", "neoverse-n2", "neoverse-v1", "apple-m1",
    "thunderx2t99", "tsv110",      "a64fx",       "ampere1",
#endif
};

}  // namespace

void check_processor(const std::string& name) {
  if (std::ranges::find(kNames, name) != std::end(kNames)) return;
  const std::vector<std::string> known(std::begin(kNames), std::end(kNames));
  Error refusal(ErrorKind::value, "cpu.option.processor",
                cat("target cpu knows no processor \"", name, "\""));
  refusal.note(cat("legal: ", join(known, ", ")));
  if (std::string near = did_you_mean(name, known); !near.empty()) refusal.help(near);
  else refusal.help("mcpu=host compiles for this machine");
  throw refusal;
}

}  // namespace weft::cpu
