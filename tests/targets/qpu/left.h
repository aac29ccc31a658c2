// SPDX-License-Identifier: Apache-2.0
#pragma once
// What a launch leaves behind, on every engine and number of threads: memory, clocks, statistics,
// notes and faults must be the same.

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <initializer_list>
#include <string>
#include <utility>
#include <vector>

#include "weft/sim/simulator.h"
#include "weft/targets/qpu/emulator.h"
#include "weft/targets/qpu/engine/translate.h"

#include <weft/qpu.h>

namespace weft::qpu {

inline hw::Emulator& emulator() {
  return static_cast<hw::Emulator&>(static_cast<sim::SimDevice&>(*device()).simulator());
}

/// The emulator's options as they were, at the end.
struct Options {
  hw::EmulatorOptions before = emulator().options();
  ~Options() { emulator().options() = before; }
};

struct Left {
  std::vector<std::uint32_t> words;  // of arrays that the work kept
  std::int64_t cycles = 0;
  std::string stats, notes, fault;
};

template <typename T>
void keep(Left& left, const SharedArray<T>& a) {
  std::size_t at = left.words.size();
  left.words.resize(at + a.size());
  std::memcpy(left.words.data() + at, a.data(), a.size() * 4);
}

struct Way {
  hw::Engine engine;
  int threads;
  // More than one thread: 0: all from the beginning; otherwise the others join after so many
  // instructions.
  std::int64_t join_after = 0;
};

/// What `work` leaves the first way, once all ways have left the same. Translated programs are left
/// out where the host cannot run them.
inline Left same_all_ways(const std::string& name, std::initializer_list<Way> ways,
                          const std::function<void(Left&)>& work) {
  Options options;
  Left first;
  bool begun = false;
  for (auto [engine, threads, join_after] : ways) {
    if (engine == hw::Engine::translated && !hw::translation_missing().empty()) continue;
    hw::EmulatorOptions& o = emulator().options();
    o.engine = engine, o.threads = threads, o.count_instructions = false;
    o.optimisation = 0, o.file_cache = false;
    o.division = join_after ? hw::Division::joined : hw::Division::always;
    o.join_after = join_after;
    emulator().clear_stats();
    takeNotes();
    Left left;
    try {
      work(left);
    } catch (const Error& e) {
      left.fault = e.what();
    }
    left.stats = emulator().stats().table();
    for (const Note& n : takeNotes())
      left.notes += cat(n.code, " ", n.message, " ", n.source, " ", n.count, "\n");
    if (!begun) first = left;
    begun = true;
    auto which = cat(name, ", engine ", static_cast<int>(engine), ", ", threads, " threads",
                     join_after ? cat(" after ", join_after) : "");
    EXPECT_EQ(left.cycles, first.cycles) << which;
    EXPECT_EQ(left.fault, first.fault) << which;
    EXPECT_EQ(left.stats, first.stats) << which;  // clocks, stalls, hits and misses
    EXPECT_EQ(left.notes, first.notes) << which;
    EXPECT_TRUE(left.words == first.words) << which;
  }
  return first;
}

}  // namespace weft::qpu
