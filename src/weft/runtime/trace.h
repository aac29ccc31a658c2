// SPDX-License-Identifier: Apache-2.0
#pragma once
// One trace format for compile passes, kernels, RPC and simulated units: the trace-event JSON that
// Perfetto and chrome://tracing read. process = device, thread = stream or unit. `ts` is
// microseconds; machine events keep the exact cycle as an argument.

#include <cstdint>
#include <mutex>
#include <string>
#include <string_view>
#include <vector>

#include "weft/base/json.h"

namespace weft::runtime {

class TraceSink {
 public:
  /// Returns the track id of (process, thread), creating it at first use.
  int track(std::string_view process, std::string_view thread);
  /// A complete span. `args` is an object or null.
  void span(int track, std::string_view name, double start_us, double duration_us, Json args = {});
  void counter(int track, std::string_view name, double time_us, double value);
  void instant(int track, std::string_view name, double time_us, Json args = {});
  std::size_t size() const;
  void clear();
  std::string to_json() const;
  /// Atomic: writes beside the file, then renames. Throws Error(io, "trace.save").
  void save(const std::string& path) const;

 private:
  struct Event {
    char phase;
    int track;
    std::string name;
    double ts, dur;
    Json args;
  };
  struct Track {
    std::string process, thread;
  };
  mutable std::mutex mutex_;
  std::vector<Event> events_;
  std::vector<Track> tracks_;
};

}  // namespace weft::runtime
