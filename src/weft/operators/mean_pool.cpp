// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/mean_pool.h"

#include <vector>

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
    if (spec_.whole) return cat("T.{I}(", spec_.kernel[n_], ")");
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
  /// Statements behind which i<axis> is element k<axis> of window c<axis>, and what must hold for
  /// it to be inside; elements outside stand for the nearest one.
  std::string element(std::string& indent, std::vector<std::string>& inside) const {
    const std::string s = cat("s", name_), k = cat("k", name_), i = cat("i", name_);
    if (single()) return cat(indent, i, ": T.{I} = c", name_, "\n");
    std::string out = spec_.written
                          ? cat(indent, s, ": T.{I} = ", start(cat("c", name_)), "\n", indent,
                                "for ", k, " in T.unroll(T.{I}(", spec_.kernel[n_], ")):\n")
                          : cat(indent, s, ": T.{I} = ", from(cat("c", name_)), "\n", indent,
                                "for ", k, " in T.serial(", to(cat("c", name_)), " - ", s, "):\n");
    indent += "    ";
    const std::string at = cat(s, " + ", k);
    const bool sure = spec_.whole || !spec_.written;
    if (!sure) inside.push_back(cat(at, " >= 0 and ", at, " < ", extent()));
    return out + cat(indent, i,
                     ": T.{I} = ", sure ? at : cat("T.max(T.min(", at, ", ", extent(), " - 1), 0)"),
                     "\n");
  }
  /// Statements behind which w<axis> is the k<axis>-th window that has element c<axis>, as above.
  std::string window(std::string& indent, std::vector<std::string>& inside) const {
    const std::string f = cat("f", name_), k = cat("k", name_), w = cat("w", name_),
                      c = cat("c", name_);
    if (single()) return cat(indent, w, ": T.{I} = ", c, "\n");
    if (!spec_.written) {
      std::string out = cat(indent, f, ": T.{I} = ", first(c), "\n", indent, "for ", k,
                            " in T.serial(T.max(", last(c), " + 1 - ", f, ", 0)):\n");
      indent += "    ";
      return out + cat(indent, w, ": T.{I} = ", f, " + ", k, "\n");
    }
    const int kernel = spec_.kernel[n_], stride = spec_.stride[n_];
    std::string out =
        cat(indent, f, ": T.{I} = (", c, " + ", spec_.padding[n_], ") // ", stride, "\n", indent,
            "for ", k, " in T.unroll(T.{I}(", (kernel + stride - 1) / stride, ")):\n");
    indent += "    ";
    const std::string at = cat(f, " - ", k);
    inside.push_back(cat(at, " >= 0 and ", at, " < ", windows()));
    if (kernel % stride != 0)
      inside.push_back(cat("(", at, ") * ", stride, " + ", kernel - spec_.padding[n_], " > ", c));
    return out + cat(indent, w, ": T.{I} = T.max(T.min(", at, ", ", windows(), " - 1), 0)\n");
  }

 private:
  std::string start(const std::string& o) const {
    return cat(o, " * ", spec_.stride[n_], " - ", spec_.padding[n_]);
  }
  const MeanPoolSpec& spec_;
  std::size_t n_;
  std::string name_;
};

std::string places(const char* coordinates, const char* extents, const MeanPoolSpec& spec) {
  std::string at = "p";
  for (int a = spec.first; a < 3; ++a)
    at = cat("(", at, ") * ", extents, kAxisNames[a], " + ", coordinates, kAxisNames[a]);
  return at;
}

/// A thread for each element that is written: e; its plane p and its coordinates c along `extents`
/// follow.
ir::PrimFunc program(const char* name, const MeanPoolSpec& spec, const char* extents,
                     const std::string& body) {
  const std::string index = index_type(spec.narrow);
  ProgramText text(name);
  text.buffer("x", spec.type).buffer("out", spec.type);
  for (const char* s : {"blocks", "size", "xd", "xh", "xw", "od", "oh", "ow"})
    text.scalar(s, index);
  std::string coordinates, rest = "e";
  for (int a = 3; a-- > spec.first;) {
    const char x = kAxisNames[a];
    std::string quotient = cat(rest, " // ", extents, x);
    if (spec.narrow) {
      quotient = cat("T.Cast(\"int32\", T.shift_right(T.Cast(\"int64\", ", rest, ") * factor", x,
                     ", shift", x, "))");
    }
    const std::string before = cat("before_", x);
    coordinates += cat("                ", before, ": T.{I} = ", quotient, "\n                c", x,
                       ": T.{I} = ", rest, " - ", before, " * ", extents, x, "\n");
    rest = before;
  }
  for (int a = spec.first; a < 3 && spec.narrow; ++a) {
    text.scalar(cat("factor", kAxisNames[a]), "int64");
    text.scalar(cat("shift", kAxisNames[a]), "int64");
  }
  return text.parse(
      cat(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            SUM = T.allocate((1,), "{sums}", scope="local")
            e: T.{I} = b * {threads} + t
            if e < size:
)",
          coordinates, "                p: T.{I} = ", rest,
          "\n                SUM[0] = T.{sums}(0)\n", body),
      {{"I", index}, {"threads", cat(kPoolThreads)}, {"type", spec.type}, {"sums", spec.sums}});
}

/// What all sums are divided by; empty where it depends on the window.
std::string common_divisor(const MeanPoolSpec& spec) {
  if (spec.of == MeanOf::number && !spec.adaptive) return cat("T.{sums}(", spec.divisor, ")");
  const auto& k = spec.kernel;
  return spec.whole ? cat("T.{sums}(", k[0] * k[1] * k[2], ")") : "";
}
/// Statements behind which n is what the sum of a window is divided by.
std::string own_divisor(const MeanPoolSpec& spec, const std::string& indent, const char* window) {
  std::string n = "T.{I}(1)";
  for (int a = spec.first; a < 3; ++a)
    n = cat(n, " * (", Axis(spec, a).count(cat(window, kAxisNames[a])), ")");
  return cat(indent, "n: T.{sums} = T.Cast(\"{sums}\", ", n, ")\n");
}

std::string chosen(const std::vector<std::string>& inside, const std::string& value) {
  return inside.empty()
             ? value
             : cat("T.Select(", weft::join(inside, " and "), ", ", value, ", T.{sums}(0))");
}

}  // namespace

ir::PrimFunc mean_pool(const MeanPoolSpec& spec) {
  const std::string outer(16, ' ');
  std::string indent = outer, body, n = common_divisor(spec);
  if (n.empty()) body = own_divisor(spec, outer, "c"), n = "n";
  std::vector<std::string> inside;
  for (int a = spec.first; a < 3; ++a) body += Axis(spec, a).element(indent, inside);
  body += cat(indent, "SUM[0] = SUM[0] + ",
              chosen(inside, cat("T.Cast(\"{sums}\", x[", places("i", "x", spec), "])")), "\n",
              outer, "out[e] = T.Cast(\"{type}\", SUM[0] / ", n, ")\n");
  return program("pool.mean", spec, "o", body);
}

ir::PrimFunc mean_pool_spread(const MeanPoolSpec& spec) {
  const std::string outer(16, ' ');
  std::string indent = outer, body, n = common_divisor(spec);
  std::vector<std::string> inside;
  for (int a = spec.first; a < 3; ++a) body += Axis(spec, a).window(indent, inside);
  const std::string taken = cat("T.Cast(\"{sums}\", x[", places("w", "o", spec), "])");
  if (n.empty()) body += own_divisor(spec, indent, "w");
  body +=
      cat(indent, "SUM[0] = SUM[0] + ", chosen(inside, n.empty() ? cat(taken, " / n") : taken),
          "\n", outer, "out[e] = T.Cast(\"{type}\", SUM[0]", n.empty() ? "" : cat(" / ", n), ")\n");
  return program("pool.mean_spread", spec, "x", body);
}

}  // namespace weft::operators
