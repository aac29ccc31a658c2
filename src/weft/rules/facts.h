// SPDX-License-Identifier: Apache-2.0
#pragma once
// What the rules decide from: numbers of a machine that runs groups of threads, and the sizes that
// a program is expected to meet. Filled in by the owner of the target's table; no rule knows a
// name.

#include <cstdint>
#include <map>
#include <memory>
#include <string>

#include "weft/pass/machine.h"
#include "weft/rules/choices.h"
#include "weft/schedule/rules.h"

namespace weft::rules {

struct Facts {
  std::int64_t threads = 256;    // most of one group
  std::int64_t lanes = 32;       // threads whose neighbouring accesses are one transfer
  std::int64_t processors = 64;  // groups run on so many at once
  std::int64_t groups_each = 8;  // groups that keep one processor's memory busy
  std::int64_t shared_bytes = 32768;
  std::int64_t vector_bytes = 0;      // widest move of one thread; 0: one element
  std::int64_t private_bytes = 4096;  // most of an array that each thread has
  bool copies_ahead = false;          // a queue copies into shared memory while threads compute
  bool warp_products = false;  // bulk copies, and warp groups that multiply tiles of shared memory
  /// Threads of a group where nothing asks for another number.
  std::int64_t group() const { return threads < 256 ? threads : 256; }
  /// Groups from which on every processor is busy.
  std::int64_t groups() const { return processors * groups_each; }
};

/// Facts, and what steps and lowering may ask of the machine.
struct Context {
  Facts facts;
  std::shared_ptr<const schedule::ScheduleRules> schedule_rules;
  pass::Machine machine;
  Choices* choices = nullptr;  // who takes the decisions; null: the rules
};

/// Values that symbolic extents and strides are expected to have, by name: the function attribute
/// "size_hints". A program is right for all values; hints choose between schedules.
using Sizes = std::map<std::string, std::int64_t>;
inline constexpr const char* kSizeHints = "size_hints";
/// Taken for a symbol without a hint.
inline constexpr std::int64_t kUnknownSize = 65536;

}  // namespace weft::rules
