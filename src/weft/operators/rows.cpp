// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/rows.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

/// Nests over rows and along them.
class RowText {
 public:
  explicit RowText(const RowSpec& spec) : spec_(spec) {}

  /// `name` = the operand's elements in the type of the arithmetic; beyond the row's end
  /// `otherwise`. What lies beyond is read at the nearest place inside: loads under a condition
  /// would wait for each other. `factor`: an operand of one row, by which they are multiplied.
  void fetch(std::string_view name, std::string_view operand, std::string_view otherwise,
             std::string_view factor = {}) {
    whole(name);
    const std::string_view place =
        spec_.full ? "j]" : "T.min(j // {L}, moves - 1) * {L} + j % {L}]";
    std::string value =
        widened(cat(operand, "[i * ", spec_.full ? "{W}" : "{columns}", " + ", place));
    if (!factor.empty()) value += cat(" * ", widened(cat(factor, "[", place)));
    nest(cat("fetch_", name),
         spec_.full ? cat(name, "[i, j] = ", value)
                    : cat(name, "[i, j] = T.Select(j < {columns}, ", value, ", ", otherwise, ")"),
         false);
  }
  /// name[i, j] = value; beyond the end 0 where `cleared`.
  void map(std::string_view name, std::string_view value, bool cleared) {
    whole(name);
    nest(name,
         cleared && !spec_.full
             ? cat(name, "[i, j] = T.Select(j < {columns}, ", value, ", T.{C}(0))")
             : cat(name, "[i, j] = ", value),
         false);
  }
  struct Sum {
    std::string_view name, value;
  };
  /// The sums along the row, in one pass.
  void sums(std::initializer_list<Sum> all) {
    std::string init, update;
    for (const Sum& s : all) {
      buffers_ += cat("    ", s.name, " = T.alloc_buffer((rows,), \"{C}\")\n");
      init += cat("                ", s.name, "[i] = T.{C}(0)\n");
      update += cat("            ", s.name, "[i] = ", s.name, "[i] + ", s.value, "\n");
    }
    reduction(cat("sum_", all.begin()->name), init, update);
  }
  void largest(std::string_view name, std::string_view value) {
    buffers_ += cat("    ", name, " = T.alloc_buffer((rows,), \"{C}\")\n");
    reduction(cat("largest_", name), cat("                ", name, "[i] = T.{C}(\"-inf\")\n"),
              cat("            ", name, "[i] = T.max(", name, "[i], ", value, ")\n"));
  }
  void write(std::string_view value) {
    nest("write", cat("out[i * {columns} + j] = T.Cast(\"{type}\", ", value, ")"), !spec_.full);
  }

  ir::PrimFunc parse(int operands) const {
    const std::string index = index_type(spec_.narrow);
    ProgramText text("rows");
    text.unscheduled().buffer("out", spec_.type);
    for (int k = 0; k < operands; ++k) text.buffer(cat("a", k), spec_.type);
    text.scalar("rows", index).scalar("moves", index);
    text.scalar("share", spec_.sums).scalar("eps", spec_.sums);
    const std::string width = cat(spec_.width), lanes = cat(spec_.lanes);
    const Values names = {
        {"I", index},         {"C", spec_.sums},
        {"type", spec_.type}, {"W", width},
        {"L", lanes},         {"columns", spec_.full ? width : cat("(moves * ", lanes, ")")}};
    return text.parse(cat(buffers_, nests_), names);
  }

 private:
  void whole(std::string_view name) {
    buffers_ += cat("    ", name, " = T.alloc_buffer((rows, {W}), \"{C}\")\n");
  }
  std::string widened(std::string_view value) const {
    return spec_.type == spec_.sums ? std::string(value) : cat("T.Cast(\"{C}\", ", value, ")");
  }
  void nest(std::string_view block, std::string_view statement, bool inside) {
    nests_ +=
        cat("    for r, c in T.grid(rows, T.{I}({W})):\n        with T.block(\"", block,
            "\"):\n            i, j = T.axis.remap(\"SS\", [r, c])\n",
            inside ? "            T.where(c < {columns})\n" : "", "            ", statement, "\n");
  }
  void reduction(std::string_view block, std::string_view init, std::string_view update) {
    nests_ +=
        cat("    for r, c in T.grid(rows, T.{I}({W})):\n        with T.block(\"", block,
            "\"):\n            i, j = T.axis.remap(\"SR\", [r, c])\n            with T.init():\n",
            init, update);
  }

  const RowSpec& spec_;
  std::string buffers_, nests_;
};

/// X = the elements about their mean, 0 beyond the end.
void centre(RowText& p) {
  p.fetch("X", "a0", "T.{C}(0)");
  p.sums({{"total", "X[i, j]"}});
  p.map("D", "X[i, j] - total[i] * share", true);
}

}  // namespace

ir::PrimFunc row_program(const RowSpec& spec) {
  RowText p(spec);
  constexpr std::string_view kDeviation = "(T.{C}(1) / T.sqrt(squares[i] * share + eps))";
  switch (spec.op) {
    case RowOperator::softmax:
      p.fetch("X", "a0", "T.{C}(\"-inf\")");
      p.largest("most", "X[i, j]");
      p.map("E", "T.exp(X[i, j] - most[i])", false);
      p.sums({{"total", "E[i, j]"}});
      // One division for neighbours of a thread: divisions are slower than products.
      p.write("E[i, j] * (T.{C}(1) / total[i])");
      return p.parse(1);
    case RowOperator::log_softmax:
      p.fetch("X", "a0", "T.{C}(\"-inf\")");
      p.largest("most", "X[i, j]");
      p.sums({{"total", "T.exp(X[i, j] - most[i])"}});
      p.write("X[i, j] - most[i] - T.log(total[i])");
      return p.parse(1);
    case RowOperator::softmax_gradient:
      p.fetch("X", "a0", "T.{C}(0)");
      p.fetch("Y", "a1", "T.{C}(0)");
      p.sums({{"total", "X[i, j] * Y[i, j]"}});
      p.write("X[i, j] * (Y[i, j] - total[i])");
      return p.parse(2);
    case RowOperator::log_softmax_gradient:
      p.fetch("X", "a0", "T.{C}(0)");
      p.fetch("Y", "a1", "T.{C}(0)");
      p.sums({{"total", "Y[i, j]"}});
      p.write("Y[i, j] - T.exp(X[i, j]) * total[i]");
      return p.parse(2);
    case RowOperator::layer_norm:
      centre(p);
      p.sums({{"squares", "D[i, j] * D[i, j]"}});
      if (!spec.weighted) {
        p.write(cat("D[i, j] * ", kDeviation));
        return p.parse(1);
      }
      p.write(cat("D[i, j] * ", kDeviation, " * T.Cast(\"{C}\", a1[j]) + T.Cast(\"{C}\", a2[j])"));
      return p.parse(3);
    case RowOperator::layer_norm_gradient:
      centre(p);
      p.fetch("Y", "a1", "T.{C}(0)", spec.weighted ? "a2" : "");
      p.sums(
          {{"squares", "D[i, j] * D[i, j]"}, {"plain", "Y[i, j]"}, {"along", "D[i, j] * Y[i, j]"}});
      p.write(cat(kDeviation, " * (Y[i, j] - plain[i] * share - D[i, j] * (", kDeviation, " * ",
                  kDeviation, ") * (along[i] * share))"));
      return p.parse(spec.weighted ? 3 : 2);
  }
  WEFT_CHECK(false, "row operator ", static_cast<int>(spec.op));
}

}  // namespace weft::operators
