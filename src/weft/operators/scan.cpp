// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/scan.h"

#include "weft/base/error.h"
#include "weft/base/text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

bool is_float_name(std::string_view type) { return type.starts_with("float"); }

std::string join_text(ScanOp op) {
  switch (op) {
    case ScanOp::sum: return "({a} + {b})";
    case ScanOp::prod: return "({a} * {b})";
    case ScanOp::max: return "T.max({a}, {b})";
    default: return "T.min({a}, {b})";
  }
}

std::string neutral(ScanOp op, const std::string& type) {
  if (op == ScanOp::sum) return cat("T.", type, "(0)");
  if (op == ScanOp::prod) return cat("T.", type, "(1)");
  if (is_float_name(type)) return cat("T.", type, op == ScanOp::max ? "(\"-inf\")" : "(\"inf\")");
  return cat(op == ScanOp::max ? "T.min_value(\"" : "T.max_value(\"", type, "\")");
}

std::string converted(const ScanSpec& spec, std::string_view value) {
  return spec.from == spec.type ? std::string(value)
                                : cat("T.Cast(\"", spec.type, "\", ", value, ")");
}

bool has_positions(const ScanSpec& spec) {
  return spec.value == ScanValue::packed || spec.value == ScanValue::record;
}

/// What element `place` of x, `at` of its line, brings into the combination.
std::string loaded(const ScanSpec& spec, const std::string& place, const std::string& at) {
  if (spec.value == ScanValue::element) return converted(spec, cat("x[", place, "]"));
  const Values values = {{"place", place},
                         {"at", at},
                         {"I", index_type(spec.narrow)},
                         {"K", spec.key_type},
                         {"key", spec.key}};
  const std::string key = fill("T.let(T.Cast(\"{K}\", x[{place}]), lambda u: {key})", values);
  if (spec.value == ScanValue::key) return key;
  if (spec.value == ScanValue::record)
    return cat("T.Select(", key, fill(" == run[{place}], {at}, T.{I}(0))", values));
  return cat("T.bitwise_or(T.shift_left(T.Cast(\"uint64\", ", key,
             fill("), T.uint64(32)), T.Cast(\"uint64\", {at}))", values));
}

/// Stores what was combined up to `place` of a line whose element k is `first` + k * `step` in x.
std::string stored(const ScanSpec& spec, int indent, const std::string& place,
                   const std::string& value, const std::string& first, const std::string& step) {
  const std::string blanks(static_cast<std::size_t>(indent), ' ');
  if (!has_positions(spec)) return cat(blanks, "out[", place, "] = ", value, "\n");
  const bool packed = spec.value == ScanValue::packed;
  return fill(
      "{b}found: T.{I} = {found}\n{b}out[{place}] = T.Cast(\"int64\", found)\n"
      "{b}values[{place}] = x[{first} + found * {step}]\n",
      {{"b", blanks},
       {"I", index_type(spec.narrow)},
       {"found", packed ? cat("T.Cast(\"", index_type(spec.narrow), "\", T.bitwise_and(", value,
                              ", T.uint64(4294967295)))")
                        : value},
       {"place", place},
       {"first", first},
       {"step", step}});
}

/// The arrays of a program that applies, or of one that reduces.
ProgramText arrays_of(const ScanSpec& spec, std::string_view name, std::string_view sums,
                      bool apply) {
  ProgramText text(name);
  text.buffer("x", spec.from);
  if (spec.value == ScanValue::record) text.buffer("run", spec.key_type);
  text.buffer(sums, spec.type);
  if (apply) text.buffer("out", has_positions(spec) ? "int64" : spec.type);
  if (apply && has_positions(spec)) text.buffer("values", spec.from);
  return text;
}

Values values_of(const ScanSpec& spec) {
  return {{"I", index_type(spec.narrow)},
          {"type", spec.type},
          {"threads", cat(spec.threads)},
          {"items", cat(spec.items)},
          {"last", cat(spec.items - 1)},
          {"end", cat(spec.threads - 1)},
          {"tile", cat(spec.threads * spec.items)},
          // A word more after every 32 keeps the threads of a warp on different banks.
          {"padded", cat(spec.threads * spec.items * 33 / 32 + 1)},
          {"none", neutral(spec.op, spec.type)}};
}

std::string join(const ScanSpec& spec, std::string a, std::string b) {
  return fill(join_text(spec.op), {{"a", std::move(a)}, {"b", std::move(b)}});
}

/// P[0] becomes the combination of P, at 12 blanks.
std::string tree_text(const ScanSpec& spec) {
  std::string tree;
  for (int half = spec.threads / 2; half >= 1; half /= 2) {
    tree += cat("            if t < ", half,
                ":\n                P[t] = ", join(spec, "P[t]", cat("P[t + ", half, "]")), "\n");
  }
  return tree;
}

/// C[0] becomes what came before part b of row `row`.
std::string before_text(const ScanSpec& spec) {
  if (!spec.cut) return "            C[0] = {none}\n";
  return cat(
      R"(            C[0] = {none}
            for k in T.serial((b - row * parts + {threads} - 1) // {threads}):
                at: T.{I} = k * {threads} + t
                C[0] = )",
      join(spec, "C[0]", "T.if_then_else(at < b - row * parts, sums[row * parts + at], {none})"),
      "\n            P[t] = C[0]\n", tree_text(spec), "            C[0] = P[0]\n");
}

}  // namespace

ir::PrimFunc scan_reduce(const ScanSpec& spec) {
  const std::string tree = tree_text(spec);
  Values values = values_of(spec);
  values.emplace_back("tree", tree);
  values.emplace_back(
      "sum", join(spec, "A[i]",
                  cat("T.if_then_else(at < stop, ", loaded(spec, "row * n + at", "at"), ", ",
                      neutral(spec.op, spec.type), ")")));
  values.emplace_back("both", join(spec, "A[0]", "A[i + 1]"));
  const std::string index = index_type(spec.narrow);
  return arrays_of(spec, "scan.reduce", "sums", false)
      .scalar("blocks", index)
      .scalar("n", index)
      .scalar("parts", index)
      .scalar("per", index)
      .parse(R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            P = T.allocate(({threads},), "{type}", scope="shared")
            A = T.allocate(({items},), "{type}", scope="local")
            row: T.{I} = b // parts
            first: T.{I} = b % parts * per
            stop: T.{I} = T.min(first + per, n)
            for i in T.unroll(T.{I}({items})):
                A[i] = {none}
            for k in T.serial((stop - first + {tile} - 1) // {tile}):
                for i in T.unroll(T.{I}({items})):
                    at: T.{I} = first + k * {tile} + i * {threads} + t
                    A[i] = {sum}
            for i in T.unroll(T.{I}({last})):
                A[0] = {both}
            P[t] = A[0]
{tree}            if t == 0:
                sums[b] = P[0]
)",
             values);
}

ir::PrimFunc scan_apply(const ScanSpec& spec, bool exclusive) {
  const std::string index = index_type(spec.narrow);
  Values values = values_of(spec);
  const BlockScan scan = block_scan("P", "Q", spec.threads, join_text(spec.op), 16);
  values.emplace_back("scan", scan.text);
  values.emplace_back("R", scan.result);
  values.emplace_back("load", loaded(spec, "row * n + at", "at"));
  values.emplace_back(
      "store", stored(spec, 24, "row * n + at",
                      cat("S[i * ", spec.threads, " + t + (i * ", spec.threads, " + t) // 32]"),
                      "row * n", "1"));
  values.emplace_back("next",
                      join(spec, "A[i]", "S[t * {items} + i + 1 + (t * {items} + i + 1) // 32]"));
  values.back().second = fill(values.back().second, {{"items", cat(spec.items)}});
  values.emplace_back("before_thread", join(spec, "C[0]", cat(scan.result, "[T.max(t - 1, 0)]")));
  values.emplace_back("total", join(spec, "C[0]", cat(scan.result, "[", spec.threads - 1, "]")));
  values.emplace_back("before", fill(before_text(spec), values));
  values.emplace_back("element", exclusive ? "T.if_then_else(i == 0, B[0], " +
                                                 join(spec, "B[0]", "A[T.max(i - 1, 0)]") + ")"
                                           : join(spec, "B[0]", "A[i]"));
  return arrays_of(spec, exclusive ? "scan.apply_exclusive" : "scan.apply", "sums", true)
      .scalar("blocks", index)
      .scalar("n", index)
      .scalar("parts", index)
      .scalar("per", index)
      .parse(R"(    for c in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            S = T.allocate(({padded},), "{type}", scope="shared")
            P = T.allocate(({threads},), "{type}", scope="shared")
            Q = T.allocate(({threads},), "{type}", scope="shared")
            A = T.allocate(({items},), "{type}", scope="local")
            B = T.allocate((1,), "{type}", scope="local")
            C = T.allocate((1,), "{type}", scope="local")
            b: T.{I} = blocks - 1 - c
            row: T.{I} = b // parts
            first: T.{I} = b % parts * per
            stop: T.{I} = T.min(first + per, n)
{before}            for k in T.serial((stop - first + {tile} - 1) // {tile}):
                begin: T.{I} = first + k * {tile}
                for i in T.unroll(T.{I}({items})):
                    at: T.{I} = begin + i * {threads} + t
                    S[i * {threads} + t + (i * {threads} + t) // 32] = T.if_then_else(at < stop, {load}, {none})
                A[0] = S[t * {items} + t * {items} // 32]
                for i in T.unroll(T.{I}({last})):
                    A[i + 1] = {next}
                P[t] = A[{last}]
{scan}                B[0] = T.if_then_else(t > 0, {before_thread}, C[0])
                for i in T.unroll(T.{I}({items})):
                    S[t * {items} + i + (t * {items} + i) // 32] = {element}
                C[0] = {total}
                for i in T.unroll(T.{I}({items})):
                    at: T.{I} = begin + i * {threads} + t
                    if at < stop:
{store})",
             values);
}

namespace {

constexpr const char* kLine = R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}({threads}), thread="threadIdx.x"):
            A = T.allocate((1,), "{type}", scope="local")
            line: T.{I} = b * {threads} + t
            if line < lines:
                i: T.{I} = line % inner
                p: T.{I} = line // inner % parts
                o: T.{I} = line // inner // parts
                first: T.{I} = p * per
                A[0] = {start}
                for j in T.serial(T.max(T.min(per, n - first), 0)):
                    A[0] = {next}
{after})";

ir::PrimFunc lines_program(const ScanSpec& spec, bool apply) {
  const std::string index = index_type(spec.narrow);
  Values values = {
      {"I", index},
      {"type", spec.type},
      {"threads", cat(kScanLineThreads)},
      {"next", join(spec, "A[0]", loaded(spec, "(o * n + first + j) * inner + i", "first + j"))}};
  const std::string none = neutral(spec.op, spec.type);
  if (apply) {
    values.emplace_back("start",
                        cat("T.if_then_else(p > 0, before[T.max(line - inner, 0)], ", none, ")"));
    values.emplace_back("after", stored(spec, 20, "(o * n + first + j) * inner + i", "A[0]",
                                        "o * n * inner + i", "inner"));
  } else {
    values.emplace_back("start", none);
    values.emplace_back("after", "                sums[line] = A[0]\n");
  }
  ProgramText text = arrays_of(spec, apply ? "scan.lines_apply" : "scan.lines_reduce",
                               apply ? "before" : "sums", apply);
  for (const char* name : {"blocks", "lines", "n", "inner", "parts", "per"})
    text.scalar(name, index);
  return text.parse(kLine, values);
}

}  // namespace

ir::PrimFunc scan_lines_reduce(const ScanSpec& spec) { return lines_program(spec, false); }
ir::PrimFunc scan_lines_apply(const ScanSpec& spec) { return lines_program(spec, true); }

}  // namespace weft::operators
