// SPDX-License-Identifier: Apache-2.0
#pragma once
// The history of a schedule: every step with its arguments and results, printable as Python,
// storable as JSON. Blocks, loops and sampled integers are named b0, l0, v0 ... in the order in
// which steps returned them. The JSON form is {"format": "weft.trace", "version": 1, "steps":
// [[name, {field: value}, results]...]}.

#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"
#include "weft/schedule/describe.h"

namespace weft::schedule {

class Schedule;

/// One row of the table of primitives.
struct PrimitiveInfo {
  std::string_view name, doc, result;
  const std::vector<FieldInfo>* fields;
  Value (*call)(Schedule&, const Arguments&);
  Verdict (*check)(const Schedule&, const Arguments&);
};

/// All steps, in the order of the manual.
const std::vector<PrimitiveInfo>& primitives();
/// Throws Error(schedule, "schedule.primitive.unknown") with near misses.
const PrimitiveInfo& find_primitive(std::string_view name);
/// The manual: one section per primitive, in Markdown.
std::string primitives_manual();

struct TraceEntry {
  const PrimitiveInfo* primitive = nullptr;
  Value::List arguments;  // one per field
  Value result;
};

class Trace {
 public:
  const std::vector<TraceEntry>& entries() const { return entries_; }
  void append(TraceEntry entry) { entries_.push_back(std::move(entry)); }
  /// One statement per step on a schedule called `sch`.
  std::string as_python() const;
  Json to_json() const;
  std::string json() const { return to_json().dump(); }

 private:
  std::vector<TraceEntry> entries_;
};

/// How references print within one text.
class Names {
 public:
  virtual ~Names() = default;
  virtual std::string block(BlockRef) const = 0;
  virtual std::string loop(const LoopRef&) const = 0;
  virtual std::string integer(const IntRef&) const = 0;
};
/// A value as Python source.
std::string python_text(const Value& v, const Names& names);
/// "sch.split(i, [None, 128])": defaults left out, required arguments by position.
std::string step_text(const PrimitiveInfo& primitive, const Value::List& arguments,
                      const Names& names, bool keywords);

/// Applies the recorded steps to `sch`. Throws Error(parse, "schedule.trace.*") on malformed
/// traces.
void replay(Schedule& sch, const Json& trace);

}  // namespace weft::schedule
