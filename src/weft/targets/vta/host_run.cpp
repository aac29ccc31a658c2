// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <cstring>

#include "weft/arith/sum.h"
#include "weft/targets/vta/host_copy.h"

namespace weft::vta {

namespace {

class Runner {
 public:
  struct Source {
    const std::byte* data;
    std::int64_t count;  // elements
  };
  Runner(const HostCopy& c, std::byte* dst, std::int64_t dst_count, std::vector<Source> sources)
      : c_(c), dst_(dst), dst_count_(dst_count), src_(std::move(sources)) {}

  void run() {
    std::vector<std::int64_t> from;
    for (const auto& f : c_.from) from.push_back(f.base);
    std::vector<std::int64_t> guards;
    for (const auto& g : c_.guards) guards.push_back(g.value.base);
    level(0, c_.to.base, from, guards);
  }

 private:
  void level(std::size_t d, std::int64_t to, const std::vector<std::int64_t>& from,
             const std::vector<std::int64_t>& guards) {
    if (d + 1 >= c_.extents.size()) return row(to, from, guards);
    std::vector<std::int64_t> f = from, g = guards;
    for (std::int64_t i = 0; i < c_.extents[d]; ++i) {
      level(d + 1, to, f, g);
      to += c_.to.step[d];
      for (std::size_t k = 0; k < f.size(); ++k) f[k] += c_.from[k].step[d];
      for (std::size_t k = 0; k < g.size(); ++k) g[k] += c_.guards[k].value.step[d];
    }
  }

  /// The innermost loop: [first, end) is inside all guards.
  void row(std::int64_t to, const std::vector<std::int64_t>& from,
           const std::vector<std::int64_t>& guards) {
    bool scalar = c_.extents.empty();
    std::size_t d = scalar ? 0 : c_.extents.size() - 1;
    std::int64_t n = scalar ? 1 : c_.extents[d], first = 0, end = n;
    auto step = [&](const HostCopy::Index& x) { return scalar ? 0 : x.step[d]; };
    std::int64_t begin = 0, stop = n;  // where something is written
    for (std::size_t k = 0; k < guards.size(); ++k) {
      const HostCopy::Guard& g = c_.guards[k];
      std::int64_t s = step(g.value), v = guards[k], from_i = 0, to_i = n;
      if (s == 0) {
        if (v < g.low || v >= g.high) to_i = 0;
      } else if (s > 0) {  // low <= v + s i < high
        from_i = -arith::floor_div(v - g.low, s), to_i = arith::floor_div(g.high - 1 - v, s) + 1;
      } else {
        from_i = -arith::floor_div(g.high - 1 - v, -s), to_i = arith::floor_div(v - g.low, -s) + 1;
      }
      first = std::max(first, from_i), end = std::min(end, to_i);
      if (g.skip) begin = std::max(begin, from_i), stop = std::min(stop, to_i);
    }
    stop = std::clamp<std::int64_t>(stop, begin, std::max(begin, n));
    if (begin >= n) return;
    first = std::clamp(first, begin, stop);
    end = std::clamp(end, first, stop);
    std::int64_t ds = step(c_.to);
    if (c_.fill) {
      for (std::int64_t i = begin; i < first; ++i) put(to + i * ds, c_.otherwise);
      for (std::int64_t i = end; i < stop; ++i) put(to + i * ds, c_.otherwise);
    }
    if (first >= end) return;
    to += first * ds;
    std::int64_t count = end - first;
    if (from.size() == 1)
      return run_of(to, ds, from[0] + first * step(c_.from[0]), step(c_.from[0]), count);
    for (std::int64_t i = first; i < end; ++i, to += ds) {
      for (std::size_t k = 0; k < from.size(); ++k) {
        std::int64_t at = from[k] + i * step(c_.from[k]);
        check(to, at, k);
        dst_[to * c_.dst_bytes + static_cast<std::int64_t>(k)] = src_[k].data[at];
      }
    }
  }

  void check(std::int64_t to, std::int64_t from, std::size_t part = 0) const {
    if (to < 0 || to >= dst_count_ || from < 0 || from >= src_[part].count) [[unlikely]]
      throw Error(ErrorKind::value, "vta.host.bounds",
                  cat("a host copy reaches element ", to < 0 || to >= dst_count_ ? to : from,
                      " of ", to < 0 || to >= dst_count_ ? dst_count_ : src_[part].count))
          .note("the module's loops and the arrays' sizes contradict each other");
  }

  void put(std::int64_t to, std::int64_t value) {
    check(to, 0);
    std::memcpy(dst_ + to * c_.dst_bytes, &value, static_cast<std::size_t>(c_.dst_bytes));
  }

  template <typename T>
  void same(std::int64_t to, std::int64_t ds, std::int64_t from, std::int64_t fs, std::int64_t n) {
    T* d = reinterpret_cast<T*>(dst_) + to;
    const T* s = reinterpret_cast<const T*>(src_[0].data) + from;
    for (std::int64_t i = 0; i < n; ++i) d[i * ds] = s[i * fs];
  }

  void run_of(std::int64_t to, std::int64_t ds, std::int64_t from, std::int64_t fs,
              std::int64_t n) {
    check(to, from);
    check(to + (n - 1) * ds, from + (n - 1) * fs);
    if (c_.dst_bytes == c_.src_bytes) {
      if (ds == 1 && fs == 1) {
        std::memcpy(dst_ + to * c_.dst_bytes, src_[0].data + from * c_.src_bytes,
                    static_cast<std::size_t>(n * c_.dst_bytes));
        return;
      }
      switch (c_.dst_bytes) {
        case 1: return same<std::uint8_t>(to, ds, from, fs, n);
        case 2: return same<std::uint16_t>(to, ds, from, fs, n);
        case 4: return same<std::uint32_t>(to, ds, from, fs, n);
        default: return same<std::uint64_t>(to, ds, from, fs, n);
      }
    }
    for (std::int64_t i = 0; i < n; ++i, to += ds, from += fs) {
      std::int64_t v = 0;
      std::memcpy(&v, src_[0].data + from * c_.src_bytes, static_cast<std::size_t>(c_.src_bytes));
      int unused = 64 - 8 * c_.src_bytes;
      v = static_cast<std::int64_t>(static_cast<std::uint64_t>(v) << unused);
      v = c_.src_signed ? v >> unused
                        : static_cast<std::int64_t>(static_cast<std::uint64_t>(v) >> unused);
      std::memcpy(dst_ + to * c_.dst_bytes, &v, static_cast<std::size_t>(c_.dst_bytes));
    }
  }

  const HostCopy& c_;
  std::byte* dst_;
  std::int64_t dst_count_;
  std::vector<Source> src_;  // of each part
};

}  // namespace

void run(const HostCopy& c, const std::vector<HostSpan>& params) {
  if (c.points() == 0) return;
  const HostSpan& d = params.at(static_cast<std::size_t>(c.dst));
  std::vector<Runner::Source> sources;
  for (int part : c.src) {
    const HostSpan& s = params.at(static_cast<std::size_t>(part));
    sources.push_back({s.data, static_cast<std::int64_t>(s.bytes) / c.src_bytes});
  }
  Runner(c, d.data, static_cast<std::int64_t>(d.bytes) / c.dst_bytes, std::move(sources)).run();
}

std::int64_t bytes_moved(const HostCopy& c) {
  return c.points() * (c.dst_bytes + c.src_bytes * static_cast<std::int64_t>(c.from.size()));
}

namespace {

[[noreturn]] void damaged(std::string what) {
  throw Error(ErrorKind::emit, "vta.binary.damaged", cat("the binary is no VTA program: ", what));
}

Json index_json(const HostCopy::Index& x) {
  Json out = Json::array();
  out.push_back(x.base);
  for (std::int64_t s : x.step) out.push_back(s);
  return out;
}

HostCopy::Index index_from(const Json& json, std::size_t loops) {
  const auto& row = json.as_array();
  if (row.size() != loops + 1) damaged("an index of a host copy has the wrong length");
  HostCopy::Index out{row[0].as_int(), {}};
  for (std::size_t i = 1; i < row.size(); ++i) out.step.push_back(row[i].as_int());
  constexpr std::int64_t kFar = std::int64_t{1} << 40;
  for (std::int64_t v : out.step) {
    if (v > kFar || v < -kFar) damaged(cat("a step of ", v));
  }
  if (out.base > kFar || out.base < -kFar) damaged(cat("an offset of ", out.base));
  return out;
}

}  // namespace

Json to_json(const HostCopy& c) {
  Json out = Json::object();
  Json extents = Json::array(), from = Json::array(), guards = Json::array();
  for (std::int64_t e : c.extents) extents.push_back(e);
  for (const auto& f : c.from) from.push_back(index_json(f));
  for (const auto& g : c.guards) {
    Json row = Json::array();
    row.push_back(index_json(g.value));
    row.push_back(g.low);
    row.push_back(g.high);
    row.push_back(g.skip);
    guards.push_back(std::move(row));
  }
  out["extents"] = std::move(extents);
  Json sources = Json::array();
  for (int part : c.src) sources.push_back(part);
  out["dst"] = c.dst, out["src"] = std::move(sources);
  out["dst_bytes"] = c.dst_bytes, out["src_bytes"] = c.src_bytes;
  out["signed"] = c.src_signed;
  out["to"] = index_json(c.to);
  out["from"] = std::move(from);
  out["guards"] = std::move(guards);
  out["fill"] = c.fill;
  out["otherwise"] = c.otherwise;
  return out;
}

HostCopy host_copy_from_json(const Json& json, std::size_t params) {
  HostCopy c;
  try {
    std::int64_t points = 1;
    for (const Json& e : json.at("extents").as_array()) {
      c.extents.push_back(e.as_int());
      if (e.as_int() < 0 || e.as_int() > (std::int64_t{1} << 32))
        damaged("an extent of a host copy");
      points *= std::max<std::int64_t>(e.as_int(), 1);
      if (points > (std::int64_t{1} << 36)) damaged("a host copy that never ends");
    }
    auto number = [&](const char* key, std::int64_t most) {
      std::int64_t v = json.at(key).as_int();
      if (v < 0 || v > most) damaged(cat("\"", key, "\" of a host copy is ", v));
      return static_cast<int>(v);
    };
    auto last = static_cast<std::int64_t>(params) - 1;
    c.dst = number("dst", last);
    for (const Json& part : json.at("src").as_array()) {
      if (part.as_int() < 0 || part.as_int() > last)
        damaged(cat("\"src\" of a host copy is ", part.as_int()));
      c.src.push_back(static_cast<int>(part.as_int()));
    }
    c.dst_bytes = number("dst_bytes", 8), c.src_bytes = number("src_bytes", 8);
    for (int b : {c.dst_bytes, c.src_bytes}) {
      if (b != 1 && b != 2 && b != 4 && b != 8) damaged(cat("elements of ", b, " bytes"));
    }
    c.src_signed = json.at("signed").as_bool();
    c.to = index_from(json.at("to"), c.extents.size());
    for (const Json& f : json.at("from").as_array())
      c.from.push_back(index_from(f, c.extents.size()));
    if (c.src.size() != c.from.size())
      damaged(cat(c.src.size(), " arrays for ", c.from.size(), " parts of a host copy"));
    if (c.from.empty() ||
        (c.from.size() > 1 && (static_cast<int>(c.from.size()) != c.dst_bytes || c.src_bytes != 1)))
      damaged(cat("a host copy of ", c.from.size(), " parts"));
    constexpr std::int64_t kMost = std::int64_t{1} << 62;
    for (const Json& g : json.at("guards").as_array()) {
      const auto& row = g.as_array();
      c.guards.push_back({index_from(row.at(0), c.extents.size()),
                          std::clamp(row.at(1).as_int(), -kMost, kMost),
                          std::clamp(row.at(2).as_int(), -kMost, kMost), row.at(3).as_bool()});
    }
    c.fill = json.at("fill").as_bool();
    c.otherwise = json.at("otherwise").as_int();
  } catch (const std::out_of_range&) {
    damaged("a host copy lacks a part");
  }
  return c;
}

std::string to_c(const HostCopy& c, std::string_view indent) {
  std::string out, pad(indent);
  auto type = [](int bytes, bool is_signed) {
    return cat(is_signed ? "int" : "uint", bytes * 8, "_t");
  };
  auto sum = [&](const HostCopy::Index& x) {
    std::string text = x.base ? std::to_string(x.base) : "";
    for (std::size_t i = 0; i < x.step.size(); ++i) {
      if (!x.step[i]) continue;
      text += cat(text.empty() ? "" : " + ",
                  x.step[i] == 1 ? "" : cat("INT64_C(", x.step[i], ") * "), "i", i);
    }
    return text.empty() ? std::string("0") : text;
  };
  for (std::size_t i = 0; i < c.extents.size(); ++i, pad += "  ")
    out += cat(pad, "for (int64_t i", i, " = 0; i", i, " < ", c.extents[i], "; ++i", i, ")\n");
  std::string condition, skip;
  for (const HostCopy::Guard& g : c.guards) {
    constexpr std::int64_t kFar = std::int64_t{1} << 61;
    std::string& into = g.skip || !c.fill ? skip : condition;
    if (g.low > -kFar) into += cat(into.empty() ? "" : " && ", sum(g.value), " >= ", g.low);
    if (g.high < kFar) into += cat(into.empty() ? "" : " && ", sum(g.value), " < ", g.high);
  }
  std::string value, dst = type(c.dst_bytes, true), src = type(c.src_bytes, c.src_signed);
  std::string target = cat("((", dst, "*)p", c.dst, ")[", sum(c.to), "]");
  for (std::size_t k = 0; k < c.from.size(); ++k) {
    std::string part = cat("((const ", c.from.size() > 1 ? "uint8_t" : src, "*)p", c.src[k], ")[",
                           sum(c.from[k]), "]");
    value += cat(k ? " | " : "", c.from.size() > 1 ? cat("(uint32_t)", part, " << ", 8 * k) : part);
  }
  if (!condition.empty()) value = cat("(", condition, ") ? ", value, " : ", c.otherwise);
  if (!skip.empty()) out += cat(pad, "if (", skip, ")\n"), pad += "  ";
  out += cat(pad, target, " = (", dst, ")(", value, ");\n");
  return out;
}

}  // namespace weft::vta
