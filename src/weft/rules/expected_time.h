// SPDX-License-Identifier: Apache-2.0
#pragma once
// How long a scheduled function is expected to run, from what its loops do and what the machine
// reaches: a number to rank schedules by, before any is built.

#include "weft/ir/node.h"
#include "weft/rules/facts.h"

namespace weft::rules {

/// A machine with groups of threads. Clocks are of one processor.
struct GridRates {
  double processors = 64, clocks_per_microsecond = 1500, memory_bytes_per_microsecond = 1e6;
  double lanes = 32, issues = 4;                // instructions of `lanes` threads in a clock
  double shared_bytes = 128, cache_bytes = 64;  // in a clock, of one processor
  double threads = 2048, registers = 65536, memory_shared = 233472;  // of one processor
  double latency = 700, barrier = 40;  // clocks: a fetch from memory; a hand-over
  double launch = 2.0;                 // microseconds
};
/// A host's processor.
struct HostRates {
  double processors = 1, clocks_per_microsecond = 3000;
  double vector_bytes = 32, registers = 16;
  double cache1 = 32768, cache2 = 1048576;
  double cache2_bytes = 24, memory_bytes = 6;  // in a clock
};

/// The models, with what the table says in place of what they assume.
GridRates grid_rates(const TargetInfo& info);
HostRates host_rates(const TargetInfo& info);

/// Microseconds; 0 where the function holds what this does not read (warps with roles). What a
/// schedule leaves to lowering (no bound loop) counts as one thread.
double expected_time(const ir::PrimFunc& f, const GridRates& rates);
double expected_time(const ir::PrimFunc& f, const HostRates& rates);

}  // namespace weft::rules
