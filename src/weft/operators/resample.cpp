// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/resample.h"

#include <vector>

#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

class ResampleText {
 public:
  explicit ResampleText(const ResampleSpec& spec) : spec_(spec) {
    for (int a = 0; a < 3; ++a) {
      if (spec.axes[static_cast<std::size_t>(a)]) axes_.push_back(a);
    }
  }

  ir::PrimFunc parse() {
    line("g: T.{I} = b // position_blocks");
    line("w: T.{I} = b % position_blocks * {threads} + t");
    line("if w < positions:");
    ++depth_;
    coordinates(spec_.adjoint ? "n" : "m");
    spec_.adjoint ? gathered() : interpolated();
    const std::string index = index_type(spec_.narrow);
    ProgramText text(spec_.adjoint ? "resample.adjoint" : "resample");
    text.buffer("x", spec_.type).buffer("out", spec_.type);
    for (const char* name : {"blocks", "position_blocks", "positions", "planes"})
      text.scalar(name, index);
    for (int a : axes_)
      text.scalar(cat("n", a), index)
          .scalar(cat("m", a), index)
          .scalar(cat("step", a), spec_.sums)
          .scalar(cat("bias", a), spec_.sums);
    return text.parse(cat("    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
                          "        for t in T.thread_binding(T.{I}({threads}), "
                          "thread=\"threadIdx.x\"):\n",
                          spec_.adjoint ? "            SUM = T.allocate(({planes},), \"{C}\", "
                                          "scope=\"local\")\n"
                                        : "",
                          body_),
                      {{"I", index},
                       {"C", spec_.sums},
                       {"type", spec_.type},
                       {"threads", cat(kResampleThreads)},
                       {"planes", cat(kResamplePlanes)}});
  }

 private:
  void line(const std::string& text) {
    body_ += cat(std::string(static_cast<std::size_t>(12 + 4 * depth_), ' '), text, "\n");
  }
  /// c0, c1, ...: where position w lies along each axis of an image with these extents.
  void coordinates(const char* extent) {
    std::string left = "w";
    for (std::size_t i = axes_.size(); i-- > 0;) {
      const int a = axes_[i];
      if (i == 0) {
        line(cat("c", a, ": T.{I} = ", left));
        return;
      }
      line(cat("q", a, ": T.{I} = ", left, " // ", extent, a));
      line(cat("c", a, ": T.{I} = ", left, " - q", a, " * ", extent, a));
      left = cat("q", a);
    }
  }
  /// low, high, part: the neighbours of place `at` of the resized image, and how far it is from
  /// the first.
  void neighbours(int a, const std::string& at) {
    line(cat("s", a, ": T.{C} = T.max(T.Cast(\"{C}\", ", at, ") * step", a, " + bias", a,
             ", T.{C}(0))"));
    line(cat("low", a, ": T.{I} = T.min(T.Cast(\"{I}\", s", a, "), n", a, " - 1)"));
    line(cat("high", a, ": T.{I} = T.min(low", a, " + 1, n", a, " - 1)"));
    line(cat("part", a, ": T.{C} = s", a, " - T.Cast(\"{C}\", low", a, ")"));
  }
  std::string extents(const char* letter) const {
    std::string out;
    for (int a : axes_) out += cat(out.empty() ? "" : " * ", letter, a);
    return out;
  }
  std::string widened(const std::string& value) const {
    return spec_.type == spec_.sums ? value : cat("T.Cast(\"{C}\", ", value, ")");
  }
  void interpolated() {
    for (int a : axes_) neighbours(a, cat("c", a));
    line("for k in T.unroll(T.{I}({planes})):");
    ++depth_;
    line("p: T.{I} = g * {planes} + k");
    line("if p < planes:");
    ++depth_;
    line(cat("base: T.{I} = p * (", extents("n"), ")"));
    const std::size_t corners = std::size_t{1} << axes_.size();
    for (std::size_t corner = 0; corner < corners; ++corner) {
      std::string place;
      for (std::size_t i = 0; i < axes_.size(); ++i) {
        const int a = axes_[i];
        const std::string at = cat(corner >> (axes_.size() - 1 - i) & 1 ? "high" : "low", a);
        place = place.empty() ? at : cat("(", place, ") * n", a, " + ", at);
      }
      line(cat("v", corner, ": T.{C} = ", widened(cat("x[base + ", place, "]"))));
    }
    // Pairs that differ in the last axis first.
    std::string name = "v";
    for (std::size_t i = axes_.size(), left = corners / 2; i-- > 0; left /= 2) {
      const std::string next = cat("u", i, "_");
      for (std::size_t k = 0; k < left; ++k)
        line(cat(next, k, ": T.{C} = ", name, 2 * k, " + (", name, 2 * k + 1, " - ", name, 2 * k,
                 ") * part", axes_[i]));
      name = next;
    }
    line(cat("out[p * positions + w] = T.Cast(\"{type}\", ", name, "0)"));
  }
  /// Each element of the image asks the places around it how much of it they took.
  void gathered() {
    line("for k in T.unroll(T.{I}({planes})):");
    line("    SUM[k] = T.{C}(0)");
    const int outside = depth_;
    std::string place, weight;
    for (int a : axes_) {
      const std::string c = cat("c", a), n = cat("n", a), m = cat("m", a);
      // One place more on each side for rounding; the first and last elements also take what lies
      // beyond the image.
      auto reached = [&](const char* sign) {
        return cat("T.Cast(\"{I}\", T.floor((T.Cast(\"{C}\", ", c, ") ", sign, " T.{C}(1) - bias",
                   a, ") / step", a, "))");
      };
      line(cat("from", a, ": T.{I} = T.Select(", c, " == 0, 0, T.max(", reached("-"), " - 1, 0))"));
      line(cat("to", a, ": T.{I} = T.Select(", c, " == ", n, " - 1, ", m, ", T.min(", reached("+"),
               " + 2, ", m, "))"));
      line(cat("for i", a, " in T.serial(T.max(to", a, " - from", a, ", 0)):"));
      ++depth_;
      line(cat("j", a, ": T.{I} = from", a, " + i", a));
      neighbours(a, cat("j", a));
      line(cat("weight", a, ": T.{C} = T.Select(low", a, " == ", c, ", T.{C}(1) - part", a,
               ", T.{C}(0)) + T.Select(high", a, " == ", c, ", part", a, ", T.{C}(0))"));
      const std::string at = cat("j", a);
      place = place.empty() ? at : cat("(", place, ") * ", m, " + ", at);
      weight += cat(weight.empty() ? "" : " * ", "weight", a);
    }
    line("for k in T.unroll(T.{I}({planes})):");
    ++depth_;
    line("if g * {planes} + k < planes:");
    ++depth_;
    line(cat("SUM[k] = SUM[k] + ",
             widened(cat("x[(g * {planes} + k) * (", extents("m"), ") + ", place, "]")), " * (",
             weight, ")"));
    depth_ = outside;
    line("for k in T.unroll(T.{I}({planes})):");
    ++depth_;
    line("if g * {planes} + k < planes:");
    line("    out[(g * {planes} + k) * positions + w] = T.Cast(\"{type}\", SUM[k])");
  }

  const ResampleSpec& spec_;
  std::vector<int> axes_;
  std::string body_;
  int depth_ = 0;
};

}  // namespace

ir::PrimFunc resample_program(const ResampleSpec& spec) { return ResampleText(spec).parse(); }

}  // namespace weft::operators
