// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/mean_pool.h"

#include "weft/base/text.h"
#include "weft/operators/pool.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr char kAxisNames[] = "dhw";

/// Text about window `o` of one axis.
class Axis {
 public:
  Axis(const MeanPoolSpec& spec, int number)
      : spec_(spec), n_(static_cast<std::size_t>(number)), name_(1, kAxisNames[number]) {}

  std::string extent() const { return cat("x", name_); }
  std::string windows() const { return cat("o", name_); }
  bool single() const {
    return !spec_.adaptive && spec_.kernel[n_] == 1 && spec_.stride[n_] == 1 &&
           spec_.padding[n_] == 0;
  }
  /// Its first element inside, and the one after its last.
  std::string from(const std::string& o) const {
    if (spec_.adaptive) return cat("(", o, ") * ", extent(), " // ", windows());
    return cat("T.max(", start(o), ", 0)");
  }
  std::string to(const std::string& o) const {
    if (spec_.adaptive)
      return cat("((", o, " + 1) * ", extent(), " + ", windows(), " - 1) // ", windows());
    return cat("T.min(", start(o), " + ", spec_.kernel[n_], ", ", extent(), ")");
  }
  /// What it counts in the divisor.
  std::string count(const std::string& o) const {
    if (spec_.of != MeanOf::with_border || spec_.adaptive) return cat(to(o), " - ", from(o));
    return cat("T.min(", spec_.kernel[n_], ", ", extent(), " + ", spec_.padding[n_], " - (",
               start(o), "))");
  }
  /// The first and the last window that have element `i`.
  std::string first(const std::string& i) const {
    if (spec_.adaptive) return cat(i, " * ", windows(), " // ", extent());
    return cat("T.max(", i, " + ", spec_.padding[n_] - spec_.kernel[n_] + spec_.stride[n_],
               ", 0) // ", spec_.stride[n_]);
  }
  std::string last(const std::string& i) const {
    if (spec_.adaptive) return cat("((", i, " + 1) * ", windows(), " - 1) // ", extent());
    return cat("T.min((", i, " + ", spec_.padding[n_], ") // ", spec_.stride[n_], ", ", windows(),
               " - 1)");
  }

 private:
  std::string start(const std::string& o) const {
    return cat(o, " * ", spec_.stride[n_], " - ", spec_.padding[n_]);
  }
  const MeanPoolSpec& spec_;
  std::size_t n_;
  std::string name_;
};

/// A thread for each element that is written: e; p and its coordinates along `extents` follow.
constexpr const char* kThreads =
    R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            SUM = T.allocate((1,), "{sums}", scope="local")
            e: T.{I} = b * {threads} + t
            if e < size:
                rows: T.{I} = e // {n}w
                cw: T.{I} = e - rows * {n}w
                planes: T.{I} = rows // {n}h
                ch: T.{I} = rows - planes * {n}h
                p: T.{I} = planes // {n}d
                cd: T.{I} = planes - p * {n}d
                SUM[0] = T.{sums}(0)
{body})";

ir::PrimFunc program(const char* name, const MeanPoolSpec& spec, const char* extents,
                     const std::string& body) {
  const std::string index = index_type(spec.narrow);
  ProgramText text(name);
  text.buffer("x", spec.type).buffer("out", spec.type);
  for (const char* s : {"blocks", "size", "xd", "xh", "xw", "od", "oh", "ow"})
    text.scalar(s, index);
  Values values = {{"I", index},
                   {"threads", cat(kPoolThreads)},
                   {"type", spec.type},
                   {"sums", spec.sums},
                   {"n", extents}};
  values.emplace_back("body", fill(body, values));
  return text.parse(kThreads, values);
}

std::string divisor(const MeanPoolSpec& spec, const std::array<std::string, 3>& counts) {
  return spec.of == MeanOf::number && !spec.adaptive
             ? cat("T.{I}(", spec.divisor, ")")
             : cat(counts[0], " * ", counts[1], " * ", counts[2]);
}

}  // namespace

ir::PrimFunc mean_pool(const MeanPoolSpec& spec) {
  std::string indent(16, ' '), body;
  std::array<std::string, 3> counts;
  for (int a = 0; a < 3; ++a) {
    const Axis axis(spec, a);
    const std::string x(1, kAxisNames[a]), o = cat("c", x);
    body += cat(indent, "n", x, ": T.{I} = ", axis.count(o), "\n");
    counts[static_cast<std::size_t>(a)] = cat("n", x);
  }
  const std::string mean = divisor(spec, counts);
  for (int a = 0; a < 3; ++a) {
    const Axis axis(spec, a);
    const std::string x(1, kAxisNames[a]), o = cat("c", x);
    if (axis.single()) {
      body += cat(indent, "i", x, ": T.{I} = ", o, "\n");
      continue;
    }
    body += cat(indent, "f", x, ": T.{I} = ", axis.from(o), "\n", indent, "for k", x,
                " in T.serial(", axis.to(o), " - f", x, "):\n");
    indent += "    ";
    body += cat(indent, "i", x, ": T.{I} = f", x, " + k", x, "\n");
  }
  body += cat(indent,
              "SUM[0] = SUM[0] + T.Cast(\"{sums}\", x[((p * xd + id) * xh + ih) * xw + iw])\n"
              "                out[e] = T.Cast(\"{type}\", SUM[0] / T.Cast(\"{sums}\", ",
              mean, "))\n");
  return program("pool.mean", spec, "o", body);
}

ir::PrimFunc mean_pool_spread(const MeanPoolSpec& spec) {
  std::string indent(16, ' '), body;
  std::array<std::string, 3> counts;
  for (int a = 0; a < 3; ++a) {
    const Axis axis(spec, a);
    const std::string x(1, kAxisNames[a]), i = cat("c", x), o = cat("w", x);
    counts[static_cast<std::size_t>(a)] = cat("n", x);
    if (axis.single()) {
      body += cat(indent, o, ": T.{I} = ", i, "\n");
    } else {
      body += cat(indent, "f", x, ": T.{I} = ", axis.first(i), "\n", indent, "for k", x,
                  " in T.serial(T.max(", axis.last(i), " + 1 - f", x, ", 0)):\n");
      indent += "    ";
      body += cat(indent, o, ": T.{I} = f", x, " + k", x, "\n");
    }
    body += cat(indent, "n", x, ": T.{I} = ", axis.count(o), "\n");
  }
  body += cat(indent,
              "SUM[0] = SUM[0] + T.Cast(\"{sums}\", x[((p * od + wd) * oh + wh) * ow + ww]) / "
              "T.Cast(\"{sums}\", ",
              divisor(spec, counts), ")\n                out[e] = T.Cast(\"{type}\", SUM[0])\n");
  return program("pool.mean_spread", spec, "x", body);
}

}  // namespace weft::operators
