// SPDX-License-Identifier: Apache-2.0
#pragma once
// Time as an event model: stage clocks, tokens with time stamps, one shared read port and one write
// port. It looks at instructions only, never at data, so it is also a cost function. Every
// parameter has a source and was fixed before any result was looked at; none is fitted.

#include <cstdint>
#include <string>
#include <vector>

#include "weft/runtime/stats.h"
#include "weft/runtime/trace.h"
#include "weft/targets/vta/isa.h"

namespace weft::vta {

struct Prepared;

struct TimingParams {
#define WEFT_VTA_TIMING(name, value, unit, source) std::int64_t name = value;
#include "weft/targets/vta/timing.def"
#undef WEFT_VTA_TIMING
};

/// {"bus_bytes": 8, ...} over the defaults. Throws Error(value, "vta.timing.key" |
/// "vta.timing.value").
TimingParams parse_timing(std::string_view json, std::string_view file = "<timing>");
/// "| name | value | unit | source |" rows, for the manual.
std::string timing_table();

struct StageTime {
  std::int64_t busy = 0, stall_token = 0, stall_bus = 0, stall_fetch = 0, idle = 0;
};

struct Timing {
  std::int64_t cycles = 0;
  StageTime stage[3];
  std::int64_t read_busy = 0, write_busy = 0, fetch_busy = 0;  // cycles in which data moved
  std::int64_t gemm_cycles = 0;      // cycles in which the matrix unit took a micro-operation
  std::vector<std::uint32_t> order;  // instructions by start, when asked for
};

/// When each instruction was fetched, began and ended; -1: it never did.
struct StreamTimes {
  std::vector<std::int64_t> fetched, start, end;
};

struct TimingOptions {
  std::int64_t command_depth = 512;
  runtime::TraceSink* trace = nullptr;
  double clock_hz = 1e8;
  std::int64_t start_cycle = 0;  // where the trace begins
  bool keep_order = false;
  StreamTimes* times = nullptr;  // filled, up to a deadlock, too
};

/// Throws the fault "vta.deadlock" when the tokens do not let the stream finish.
Timing estimate(const Prepared& program, const Config& config, const TimingParams& params,
                const TimingOptions& options = {});

}  // namespace weft::vta
