// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/network_sort.h"

#include <algorithm>
#include <bit>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

/// Equal floats and positions need the place of an element beside its key; equal integers are the
/// same.
bool has_places(const SortSpec& s) {
  return s.result == SortResult::positions || s.kind == KeyKind::floating;
}
/// Keys of up to 32 bits share a word with their place.
bool in_a_word(const SortSpec& s) { return has_places(s) && s.bits <= 32; }
bool in_two(const SortSpec& s) { return has_places(s) && s.bits > 32; }
std::string element_type(const SortSpec& s) {
  return s.bits == 64 || in_a_word(s) ? "uint64" : "uint32";
}

/// The statements of a network over `lanes` threads of `items` elements each, at 12 blanks. Thread
/// t's element i is number t * items + i of its row. A merge first compares an element with its
/// mirror image, so that all comparisons have one direction.
class Network {
 public:
  Network(bool two, int items, int lanes) : two_(two), items_(items), lanes_(lanes) {}

  std::string text() {
    const int items = items_;
    for (int size = 2; size <= items * lanes_; size *= 2) {
      if (size <= items) inside(size - 1, size);
      else across(size / items - 1, true);
      for (int d = size / 4; d > 0; d /= 2) {
        if (d < items) inside(d, 2 * d);
        else across(d / items, false);
      }
    }
    return std::move(text_);
  }
  /// The number of the buffer that is not being read when the text ends.
  int free_buffer() const { return phase_; }

 private:
  std::string less(const std::string& a, const std::string& b) const {
    const std::string keys = cat("H[", a, "] < H[", b, "]");
    if (!two_) return keys;
    return cat(keys, " or (H[", a, "] == H[", b, "] and P[", a, "] < P[", b, "])");
  }
  /// Pairs of a thread's own elements: i and i ^ turn, in runs of `size`.
  void inside(int turn, int size) {
    for (int i = 0; i < items_; ++i) {
      const int j = i ^ turn;
      if (j < i || j / size != i / size) continue;
      if (!two_) {
        text_ += cat("            low: T.{E} = T.min(H[", i, "], H[", j, "])\n            H[", j,
                     "] = T.max(H[", i, "], H[", j, "])\n            H[", i, "] = low\n");
        continue;
      }
      text_ += cat("            turn: T.bool = ", less(cat(j), cat(i)), "\n");
      for (const char* x : {"H", "P"}) {
        text_ +=
            cat("            low", x, ": T.", x[0] == 'H' ? "{E}" : "uint32", " = T.Select(turn, ",
                x, "[", j, "], ", x, "[", i, "])\n            ", x, "[", j, "] = T.Select(turn, ",
                x, "[", i, "], ", x, "[", j, "])\n            ", x, "[", i, "] = low", x, "\n");
      }
    }
  }
  /// Pairs of elements of threads t and t ^ turn, mirrored where `mirror`.
  void across(int turn, bool mirror) {
    const std::string at = cat("i * {threads} + t"),
                      other = cat(mirror ? "({items} - 1 - i)" : "i",
                                  " * {threads} + T.bitwise_xor(t, ", turn, ")"),
                      upper = cat("T.bitwise_and(t, ", std::bit_floor(static_cast<unsigned>(turn)),
                                  ") > 0");
    const std::string memory = cat(phase_);
    phase_ = 1 - phase_;
    text_ += cat("            for i in T.unroll({items}):\n                S", memory, "[", at,
                 "] = H[i]\n");
    if (two_) text_ += cat("                Q", memory, "[", at, "] = P[i]\n");
    text_ += cat("            for i in T.unroll({items}):\n                other: T.{E} = S",
                 memory, "[", other, "]\n");
    if (!two_) {
      text_ += cat("                H[i] = T.Select(", upper,
                   ", T.max(H[i], other), T.min(H[i], other))\n");
      return;
    }
    text_ += cat("                place: T.uint32 = Q", memory, "[", other, "]\n",
                 "                less: T.bool = other < H[i] or (other == H[i] and place < P[i])\n"
                 "                more: T.bool = H[i] < other or (other == H[i] and P[i] < place)\n"
                 "                taken: T.bool = T.Select(",
                 upper, ", more, less)\n",
                 "                H[i] = T.Select(taken, other, H[i])\n"
                 "                P[i] = T.Select(taken, place, P[i])\n");
  }

  bool two_;
  int items_, lanes_, phase_ = 0;
  std::string text_;
};

}  // namespace

NetworkText sorting_network(int threads, int items, const std::string& element) {
  Network network(false, items, threads);
  const Values values = {{"E", element}, {"threads", cat(threads)}, {"items", cat(items)}};
  std::string text = fill(network.text(), values);
  return {std::move(text), network.free_buffer()};
}

int network_lanes(const SortSpec& spec, std::int64_t n) {
  const auto wide = static_cast<std::int64_t>(std::bit_ceil(static_cast<std::uint64_t>(n)));
  return static_cast<int>(std::max<std::int64_t>(1, wide / spec.items));
}

std::int64_t network_shared_bytes(const SortSpec& spec) {
  const std::int64_t bytes = element_type(spec) == "uint64" ? 8 : 4;
  return 2 * std::int64_t{spec.tile()} * (bytes + (in_two(spec) ? 4 : 0));
}

ir::PrimFunc sort_network(const SortSpec& spec, int lanes) {
  const std::string index = index_type(spec.narrow), element = element_type(spec);
  const bool positions = spec.result == SortResult::positions;
  const std::string result = positions ? "int64" : cat("uint", spec.bits);
  Values values = {{"I", index},
                   {"E", element},
                   {"K", sort_key_type(spec)},
                   {"threads", cat(spec.threads)},
                   {"items", cat(spec.items)},
                   {"tile", cat(spec.tile())},
                   {"lanes", cat(lanes)},
                   {"most", cat("T.", sort_key_type(spec),
                                spec.bits == 64 ? "(18446744073709551615)" : "(4294967295)")},
                   {"rows_of", cat(spec.threads / lanes)},
                   {"key", sort_key(spec, "u")}};
  std::string start = "H[i] = key", place = "P[i]", memory;
  if (in_a_word(spec)) {
    start =
        "H[i] = T.bitwise_or(T.shift_left(T.Cast(\"uint64\", key), T.uint64(32)), "
        "T.Cast(\"uint64\", e))";
  } else if (in_two(spec)) {
    start += "\n                P[i] = T.Cast(\"uint32\", e)";
    memory = R"(            P = T.allocate(({items},), "uint32", scope="local")
            Q0 = T.allocate(({tile},), "uint32", scope="shared")
            Q1 = T.allocate(({tile},), "uint32", scope="shared")
)";
  }
  // The sorted row goes through memory once more, so that neighbours write neighbours.
  Network network(in_two(spec), spec.items, lanes);
  const std::string text = network.text(),
                    last = cat(in_two(spec) ? "Q" : "S", network.free_buffer());
  std::string value = cat(last, "[at]");
  if (in_a_word(spec)) value = cat("T.bitwise_and(", value, ", T.uint64(4294967295))");
  if (positions) value = cat("T.Cast(\"int64\", ", value, ")");
  else if (has_places(spec)) value = cat("x[row * n + T.Cast(\"{I}\", ", value, ")]");
  else value = cat("T.Cast(\"", result, "\", ", sort_word(spec, value), ")");
  values.emplace_back("start", start);
  values.emplace_back("memory", fill(memory, values));
  values.emplace_back("network", fill(text, values));
  values.emplace_back("held", in_two(spec) ? "P[i]" : "H[i]");
  values.emplace_back("last", last);
  values.emplace_back("value", fill(value, values));
  return ProgramText("sort.network")
      .buffer("x", cat("uint", spec.bits))
      .buffer("out", result)
      .scalar("blocks", index)
      .scalar("rows", index)
      .scalar("n", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding({threads}, thread="threadIdx.x"):
            H = T.allocate(({items},), "{E}", scope="local")
            S0 = T.allocate(({tile},), "{E}", scope="shared")
            S1 = T.allocate(({tile},), "{E}", scope="shared")
{memory}            row: T.{I} = T.min(b * {rows_of} + T.Cast("{I}", t // {lanes}), rows - 1)
            inside: T.bool = b * {rows_of} + T.Cast("{I}", t // {lanes}) < rows
            for i in T.unroll({items}):
                e: T.{I} = T.Cast("{I}", i * {lanes} + t % {lanes})
                u: T.{K} = T.if_then_else(e < n, T.Cast("{K}", x[row * n + e]), T.{K}(0))
                key: T.{K} = T.Select(e < n, {key}, {most})
                {start}
{network}            for i in T.unroll({items}):
                {last}[t // {lanes} * {lanes} * {items} + t % {lanes} * {items} + i] = {held}
            for i in T.unroll({items}):
                e: T.{I} = T.Cast("{I}", i * {lanes} + t % {lanes})
                at: T.int64 = t // {lanes} * {lanes} * {items} + i * {lanes} + t % {lanes}
                if inside and e < n:
                    out[row * n + e] = {value}
)",
             values);
}

}  // namespace weft::operators
