// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/trace.h"

#include <map>

#include "weft/base/file.h"

namespace weft::runtime {

int TraceSink::track(std::string_view process, std::string_view thread) {
  std::lock_guard lock(mutex_);
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    if (tracks_[i].process == process && tracks_[i].thread == thread) return static_cast<int>(i);
  }
  tracks_.push_back({std::string(process), std::string(thread)});
  return static_cast<int>(tracks_.size() - 1);
}

void TraceSink::span(int track, std::string_view name, double start_us, double duration_us,
                     Json args) {
  std::lock_guard lock(mutex_);
  events_.push_back({'X', track, std::string(name), start_us, duration_us, std::move(args)});
}

void TraceSink::counter(int track, std::string_view name, double time_us, double value) {
  std::lock_guard lock(mutex_);
  Json args = Json::object();
  args["value"] = value;
  events_.push_back({'C', track, std::string(name), time_us, 0, std::move(args)});
}

void TraceSink::instant(int track, std::string_view name, double time_us, Json args) {
  std::lock_guard lock(mutex_);
  events_.push_back({'i', track, std::string(name), time_us, 0, std::move(args)});
}

std::size_t TraceSink::size() const {
  std::lock_guard lock(mutex_);
  return events_.size();
}

void TraceSink::clear() {
  std::lock_guard lock(mutex_);
  events_.clear();
}

std::string TraceSink::to_json() const {
  std::lock_guard lock(mutex_);
  std::map<std::string, int> processes;
  std::string out = "{\"displayTimeUnit\":\"ns\",\"traceEvents\":[\n";
  bool first = true;
  auto put = [&](const Json& event) {
    if (!first) out += ",\n";
    first = false;
    out += event.dump();
  };
  for (std::size_t i = 0; i < tracks_.size(); ++i) {
    auto [it, fresh] =
        processes.emplace(tracks_[i].process, static_cast<int>(processes.size()) + 1);
    Json name = Json::object();
    name["ph"] = "M";
    name["pid"] = it->second;
    if (fresh) {
      Json process = name;
      process["name"] = "process_name";
      process["args"]["name"] = tracks_[i].process;
      put(process);
    }
    name["tid"] = static_cast<int>(i) + 1;
    name["name"] = "thread_name";
    name["args"]["name"] = tracks_[i].thread;
    put(name);
  }
  for (const Event& event : events_) {
    Json item = Json::object();
    item["ph"] = std::string(1, event.phase);
    item["pid"] = processes[tracks_[static_cast<std::size_t>(event.track)].process];
    item["tid"] = event.track + 1;
    item["name"] = event.name;
    item["ts"] = event.ts;
    if (event.phase == 'X') item["dur"] = event.dur;
    if (event.phase == 'i') item["s"] = "t";
    if (!event.args.is_null()) item["args"] = event.args;
    put(item);
  }
  return out + "\n]}\n";
}

void TraceSink::save(const std::string& path) const { write_file_atomic(path, to_json()); }

}  // namespace weft::runtime
