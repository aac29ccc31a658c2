// SPDX-License-Identifier: Apache-2.0
#include "weft/target/target.h"

#include <charconv>

#include "weft/base/error.h"
#include "weft/target/gpu_rows.h"

namespace weft {

namespace {

bool is_name(std::string_view text) {
  if (text.empty()) return false;
  for (char c : text) {
    bool good = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') ||
                c == '_' || c == '-';
    if (!good) return false;
  }
  return true;
}

/// The same target in our form, where options come behind spaces, with or without dashes.
std::string with_colon(std::string_view text) {
  std::string out;
  int words = 0;
  for (const std::string& word : split(text, ' ')) {
    const std::size_t begin = words == 0 ? 0 : word.find_first_not_of('-');
    if (word.empty() || begin == std::string::npos) continue;
    out += cat(words == 0 ? "" : words == 1 ? ":" : ",", std::string_view(word).substr(begin));
    ++words;
  }
  return words > 1 ? out : "";
}

[[noreturn]] void bad(std::string_view text, std::string detail) {
  const std::string ours = with_colon(text);
  throw Error(ErrorKind::value, "target.parse", cat("target \"", text, "\" ", detail))
      .note("the form is NAME, NAME:VALUE or NAME:KEY=VALUE,KEY=VALUE")
      .help(ours.empty() ? "" : cat("write \"", ours, "\""));
}

}  // namespace

Target Target::parse(std::string_view text) {
  Target out;
  std::size_t colon = text.find(':');
  out.name = std::string(trim(text.substr(0, colon)));
  if (out.name.empty()) bad(text, "has no name");
  if (!is_name(out.name))
    bad(text, cat("begins with \"", out.name, "\", which is no name of letters, digits, _ and -"));
  if (colon == std::string_view::npos) return out;
  for (const std::string& item : split(text.substr(colon + 1), ',')) {
    std::string part(trim(item));
    std::size_t equals = part.find('=');
    std::string key = equals == std::string::npos ? "" : std::string(trim(part.substr(0, equals)));
    std::string value = equals == std::string::npos
                            ? part
                            : std::string(trim(std::string_view(part).substr(equals + 1)));
    if (equals != std::string::npos && !is_name(key))
      bad(text, cat("has an option without a key: \"", part, "\""));
    if (value.empty())
      bad(text, key.empty() ? "has an empty option" : cat("gives \"", key, "\" no value"));
    if (!out.options.emplace(key, value).second) {
      bad(text, key.empty() ? cat("has two bare values, the second is \"", value, "\"")
                            : cat("gives \"", key, "\" twice"));
    }
  }
  return out;
}

std::string Target::text() const {
  std::string out = name;
  bool first = true;
  for (const auto& [key, value] : options) {
    out += cat(first ? ":" : ",", key, key.empty() ? "" : "=", value);
    first = false;
  }
  return out;
}

std::int64_t Target::integer(std::string_view key, std::int64_t otherwise) const {
  auto found = options.find(key);
  if (found == options.end()) return otherwise;
  std::int64_t value = 0;
  const std::string& s = found->second;
  auto [end, error] = std::from_chars(s.data(), s.data() + s.size(), value);
  if (error != std::errc() || end != s.data() + s.size()) {
    throw Error(
        ErrorKind::value, "target.option.integer",
        cat("option \"", key, "\" of target ", name, " must be an integer, not \"", s, "\""));
  }
  return value;
}

std::string Target::option(std::string_view key, std::string_view otherwise) const {
  auto found = options.find(key);
  return found == options.end() ? std::string(otherwise) : found->second;
}

const AxisInfo* TargetInfo::axis(std::string_view name) const {
  for (const AxisInfo& row : axes) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const MemoryInfo* TargetInfo::memory(std::string_view scope) const {
  for (const MemoryInfo& row : memories) {
    if (row.scope == scope) return &row;
  }
  return nullptr;
}

const InstructionInfo* TargetInfo::instruction(std::string_view name) const {
  for (const InstructionInfo& row : instructions) {
    if (row.name == name) return &row;
  }
  return nullptr;
}

const TargetInfo& generic_target_info() {
  static const TargetInfo info = [] {
    TargetInfo out;
    std::vector<std::string> blocks, threads;
    for (const char* name : {"blockIdx.x", "blockIdx.y", "blockIdx.z"}) {
      AxisInfo axis;
      axis.name = name;
      axis.group = "blockIdx";
      out.axes.push_back(axis);
      blocks.emplace_back(name);
    }
    for (const char* name : {"vthread", "vthread.x", "vthread.y", "vthread.z"}) {
      AxisInfo axis;
      axis.name = name;
      axis.kind = AxisKind::virtual_;
      axis.level = 1;
      out.axes.push_back(axis);
      threads.emplace_back(name);
    }
    for (const char* name : {"threadIdx.x", "threadIdx.y", "threadIdx.z"}) {
      AxisInfo axis;
      axis.name = name;
      axis.group = "threadIdx";
      axis.level = 2;
      axis.barrier = true;
      axis.reduces = true;
      axis.collectives = {"reduce"};
      out.axes.push_back(axis);
      threads.emplace_back(name);
    }
    MemoryInfo global, shared, local;
    global.scope = "global";
    shared.scope = "shared";
    shared.private_to = blocks;
    local.scope = "local";
    local.private_to = blocks;
    local.private_to.insert(local.private_to.end(), threads.begin(), threads.end());
    out.memories = {global, shared, local};
    out.dtypes = {dtypes::boolean,  dtypes::int8,          dtypes::int16,       dtypes::int32,
                  dtypes::int64,    dtypes::uint8,         dtypes::uint16,      dtypes::uint32,
                  dtypes::uint64,   dtypes::float8_e4m3fn, dtypes::float8_e5m2, dtypes::float16,
                  dtypes::bfloat16, dtypes::float32,       dtypes::float64};
    return out;
  }();
  return info;
}

TargetInfo grid_target_info(const GroupLimits& limits) {
  TargetInfo out = generic_target_info();
  for (AxisInfo& axis : out.axes) {
    std::size_t d = axis.name.back() == 'y' ? 1 : axis.name.back() == 'z' ? 2 : 0;
    if (axis.group == "blockIdx") axis.limit = limits.block_extent[d];
    if (axis.group == "threadIdx") {
      axis.limit = limits.thread_extent[d];
      axis.group_limit = limits.threads;
    }
  }
  for (MemoryInfo& memory : out.memories) {
    if (memory.scope == "shared") memory.bytes = limits.shared_bytes;
  }
  out.limits["max_threads_per_block"] = limits.threads;
  out.limits["max_shared_memory_per_block"] = limits.shared_bytes;
  out.limits["processors"] = limits.processors;
  out.limits["lanes"] = limits.lanes;
  return out;
}

std::string describe(const TargetInfo& info) {
  std::string out = cat(info.symbolic_shapes ? "symbolic" : "constant", "\n");
  for (const AxisInfo& a : info.axes) {
    out += cat("axis ", a.name, " ", static_cast<int>(a.kind), " ", a.limit, " ", a.group, " ",
               a.group_limit, " ", a.level, a.barrier ? " barrier" : "",
               a.reduces ? " reduces" : "", " ", join(a.collectives), "\n");
  }
  for (const MemoryInfo& m : info.memories) {
    out += cat("memory ", m.scope, " ", m.bytes, " ", m.min_transfer_bytes, " ", join(m.private_to),
               " ", m.access, "\n");
  }
  for (const QueueInfo& q : info.queues)
    out += cat("queue ", q.name, " ", q.in_order ? 1 : 0, " ", q.sync, " ", q.outstanding, "\n");
  for (const InstructionInfo& i : info.instructions) {
    out += cat("instruction ", i.name);
    for (const auto& [name, bound] : i.bounds) out += cat(" ", name, " ", bound);
    out += "\n";
  }
  for (DType t : info.dtypes) out += cat(to_string(t), " ");
  for (const auto& [name, limit] : info.limits) out += cat("\n", name, " ", limit);
  return cat(out, "\n");
}

}  // namespace weft
