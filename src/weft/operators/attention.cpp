// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/attention.h"

#include "weft/base/text.h"
#include "weft/operators/attention_text.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

constexpr int kSide = 16;  // threads along queries, and along keys

int padded(int width) { return (width + kSide - 1) / kSide * kSide; }
int pitch(int width) { return padded(width) + 4; }  // neighbouring rows in different banks
/// Neighbouring columns of a thread.
int wide(int width) {
  const int each = padded(width) / kSide;
  return each % 4 == 0 ? 4 : each % 2 == 0 ? 2 : 1;
}

/// Statements of one program. Rows are what a block stays with, columns what it passes over.
class Text {
 public:
  Text(const AttentionSpec& spec, bool rows_are_queries)
      : s_(spec), query_rows_(rows_are_queries) {}

  std::string index() const { return index_type(s_.narrow); }
  int rows() const { return s_.rows * kSide; }
  int columns() const { return s_.columns * kSide; }

  void arrays(ProgramText& p, std::initializer_list<const char*> operands) const {
    for (const char* name : operands) p.buffer(name, s_.type);
    if (s_.mask != AttentionSpec::Mask::none)
      p.buffer("mask", s_.mask == AttentionSpec::Mask::allowed ? "bool" : s_.mask_type);
    if (s_.padding) p.buffer("padding", "bool");
    if (s_.lengths) p.buffer("lengths", "int32");
  }
  void numbers(ProgramText& p, bool with_gradient) const {
    for (const char* name : {"blocks", "tiles", "heads", "group", "n", "m"})
      p.scalar(name, index());
    for (const char* name : {"q", "k", "v", "g"}) {
      if (*name == 'g' && !with_gradient) continue;
      for (const char* axis : {"b", "h", "r"}) p.scalar(cat(name, axis), index());
    }
    if (s_.mask != AttentionSpec::Mask::none)
      for (const char* name : {"mb", "mh", "mr", "mc"}) p.scalar(name, index());
    if (s_.band) p.scalar("low", index()).scalar("high", index());
    p.scalar("scale", "float32");
    if (s_.dropout)
      p.scalar("seed0", "uint32")
          .scalar("seed1", "uint32")
          .scalar("threshold", "uint32")
          .scalar("factor", "float32");
  }

  std::string allocate(const char* name, int elements, bool shared) const {
    return cat(kIn, name, " = T.allocate((", elements, ",), \"float32\", scope=\"",
               shared ? "shared" : "local", "\")\n");
  }

  /// The block's and the thread's place. Later tiles of rows see more columns: they go first.
  std::string place() const {
    std::string out = fill(
        "            tx: T.{I} = t % 16\n"
        "            ty: T.{I} = t // 16\n"
        "            tile: T.{I} = tiles - 1 - b % tiles\n"
        "            {z}: T.{I} = b // tiles\n",
        {{"I", index()}, {"z", query_rows_ ? "z" : "zk"}});
    return out;
  }
  std::string visible() const {
    return cat("            visible: T.", index(), " = ",
               s_.lengths ? "T.min(m, T.Cast(\"" + index() + "\", lengths[bat]))" : "m", "\n");
  }

  /// A tile of an array in shared memory, `to`[row * pitch + column] float32, zeros outside.
  std::string load(std::string_view in, std::string_view to, int count, int width,
                   std::string_view array, std::string_view strides, std::string_view head,
                   std::string_view first, std::string_view limit, std::string_view factor) const {
    const std::string element = cat(array, "[bat * ", strides, "b + ", head, " * ", strides,
                                    "h + (", first, " + r) * ", strides, "r + c]");
    const std::string value =
        s_.type == "float32" ? element : cat("T.Cast(\"float32\", ", element, ")");
    return cat(in, "for i in T.serial(T.{I}(", count * padded(width) / kAttentionThreads, ")):\n",
               in, "    r: T.", index(), " = (i * 256 + t) // ", padded(width), "\n", in,
               "    c: T.", index(), " = (i * 256 + t) % ", padded(width), "\n", in, "    ", to,
               "[r * ", pitch(width), " + c] = T.if_then_else(", first, " + r < ", limit,
               padded(width) == width ? "" : cat(" and c < ", width), ", ", value, factor,
               ", T.float32(0))\n");
  }

  /// The same on the queue: vectors of 16 bytes.
  std::string copy(std::string_view in, std::string_view to, int count, int width,
                   std::string_view array, std::string_view strides, std::string_view head,
                   std::string_view first, std::string_view limit) const {
    const int vectors = count * width / 4;
    const bool partial = vectors % kAttentionThreads != 0;
    const std::string deep = partial ? "    " : "";
    return fill(cat(in, "with T.async_(\"", s_.queue, "\", copied):\n", in,
                    "    for i in T.unroll(T.{I}({each})):\n", in,
                    "        r: T.{I} = (i * 256 + t) // {line}\n", in,
                    "        c: T.{I} = (i * 256 + t) % {line}\n",
                    partial ? cat(in, "        if i * 256 + t < ", vectors, ":\n") : "", in, deep,
                    "        for u in T.vectorized(T.{I}(4)):\n", in, deep,
                    "            {to}[r * {pitch} + c * 4 + u] = T.if_then_else({first} + r < "
                    "{limit}, {array}[(bat * {s}b + {head} * {s}h + ({first} + r) * {s}r + c) * 4 "
                    "+ u], T.float32(0))\n"),
                {{"I", index()},
                 {"each", cat((vectors + kAttentionThreads - 1) / kAttentionThreads)},
                 {"line", cat(width / 4)},
                 {"to", std::string(to)},
                 {"pitch", cat(pitch(width))},
                 {"array", std::string(array)},
                 {"s", std::string(strides)},
                 {"head", std::string(head)},
                 {"first", std::string(first)},
                 {"limit", std::string(limit)}});
  }

  /// to[i, j] = the product of row ty + 16 i of `a` and row tx + 16 j of `b`.
  std::string products(std::string_view in, std::string_view to, std::string_view a,
                       std::string_view b, int width) const {
    const int p = pitch(width);
    std::string out = cat(in, "for e in T.unroll(T.{I}(", s_.rows * s_.columns, ")):\n", in, "    ",
                          to, "[e] = T.float32(0)\n");
    out += cat(in, "for d in T.serial(T.{I}(", padded(width) / 4, ")):\n");
    out += vectors(cat(in, "    "), s_.rows, "AF", cat(a, "[(ty + i * 16) * ", p, " + d * 4 + v]"));
    out +=
        vectors(cat(in, "    "), s_.columns, "BF", cat(b, "[(tx + i * 16) * ", p, " + d * 4 + v]"));
    out += cat(in, "    for v in T.unroll(T.{I}(4)):\n", in, "        for i in T.unroll(T.{I}(",
               s_.rows, ")):\n", in, "            for j in T.unroll(T.{I}(", s_.columns, ")):\n",
               in, "                ", to, "[i * ", s_.columns, " + j] = ", to, "[i * ", s_.columns,
               " + j] + AF[i * 4 + v] * BF[j * 4 + v]\n");
    return out;
  }

  /// to[i, j, v] += the sum over columns k of PS[row, k] * b[k, column]: the thread's columns are
  /// tx * w + 16 w j + v.
  std::string weighted(std::string_view in, std::string_view to, std::string_view b,
                       int width) const {
    const int p = pitch(width), w = wide(width), each = padded(width) / kSide;
    std::string out = cat(in, "for d in T.serial(T.{I}(", columns() / 4, ")):\n");
    out += vectors(cat(in, "    "), s_.rows, "AF",
                   cat("PS[(ty + i * 16) * ", columns() + 4, " + d * 4 + v]"));
    out += cat(in, "    for u in T.unroll(T.{I}(4)):\n", in, "        for j in T.unroll(T.{I}(",
               each / w, ")):\n", in, "            for v in T.vectorized(T.{I}(", w, ")):\n", in,
               "                VF[j * ", w, " + v] = ", b, "[(d * 4 + u) * ", p, " + tx * ", w,
               " + j * ", w * kSide, " + v]\n", in, "        for i in T.unroll(T.{I}(", s_.rows,
               ")):\n", in, "            for j in T.unroll(T.{I}(", each, ")):\n", in,
               "                ", to, "[i * ", each, " + j] = ", to, "[i * ", each,
               " + j] + AF[i * 4 + u] * VF[j]\n");
    return out;
  }

  /// DQ[i, j, v] = the sum over rows k of PS[k, column] * b[k, c]: the thread's columns of PS are
  /// ty * s.columns + i, those of b as above. Then added to the elements of `to`.
  std::string turned(std::string_view in, std::string_view to, std::string_view b,
                     int width) const {
    const int p = pitch(width), w = wide(width), each = padded(width) / kSide;
    return fill(
        cat(in, "for e in T.unroll(T.{I}({all})):\n", in, "    DQ[e] = T.float32(0)\n", in,
            "for d in T.serial(T.{I}({rows})):\n", in, "    for i in T.vectorized(T.{I}({c})):\n",
            in, "        CF[i] = PS[d * {pitch} + ty * {c} + i]\n", in,
            "    for j in T.unroll(T.{I}({parts})):\n", in,
            "        for v in T.vectorized(T.{I}({w})):\n", in,
            "            VF[j * {w} + v] = {b}[d * {p} + tx * {w} + j * {step} + v]\n", in,
            "    for i in T.unroll(T.{I}({c})):\n", in,
            "        for j in T.unroll(T.{I}({each})):\n", in,
            "            DQ[i * {each} + j] = DQ[i * {each} + j] + CF[i] * VF[j]\n", in,
            "for i in T.unroll(T.{I}({c})):\n", in, "    row: T.{I} = start + ty * {c} + i\n", in,
            "    for j in T.unroll(T.{I}({parts})):\n", in,
            "        for v in T.unroll(T.{I}({w})):\n", in,
            "            c: T.{I} = tx * {w} + j * {step} + v\n", in,
            "            if row < n and c < {width}:\n", in,
            "                T.atomic_add({to}[(z * n + row) * {width} + c], DQ[i * {each} + j * "
            "{w} + "
            "v] * scale)\n"),
        {{"I", index()},
         {"all", cat(s_.columns * each)},
         {"rows", cat(rows())},
         {"c", cat(s_.columns)},
         {"pitch", cat(columns() + 4)},
         {"parts", cat(each / w)},
         {"w", cat(w)},
         {"b", std::string(b)},
         {"p", cat(p)},
         {"step", cat(w * kSide)},
         {"each", cat(each)},
         {"to", std::string(to)},
         {"width", cat(width)}});
  }

  /// Stores each of the thread's elements of a compact array of rows.
  std::string store(std::string_view to, std::string_view from, int width, std::string_view plane,
                    std::string_view limit, std::string_view factor) const {
    const int w = wide(width), each = padded(width) / kSide;
    const std::string value = cat(from, "[i * ", each, " + j * ", w, " + v]", factor);
    return fill(cat("            for i in T.unroll(T.{I}({rows})):\n"
                    "                row: T.{I} = first + ty + i * 16\n"
                    "                for j in T.unroll(T.{I}({parts})):\n"
                    "                    for v in T.unroll(T.{I}({w})):\n"
                    "                        c: T.{I} = tx * {w} + j * {step} + v\n"
                    "                        if row < {limit} and c < {width}:\n"
                    "                            {to}[({plane} * {limit} + row) * {width} + c] = ",
                    s_.type == "float32" ? value : cat("T.Cast(\"{type}\", ", value, ")"), "\n"),
                {{"rows", cat(s_.rows)},
                 {"I", index()},
                 {"parts", cat(each / w)},
                 {"w", cat(w)},
                 {"step", cat(w * kSide)},
                 {"limit", std::string(limit)},
                 {"width", cat(width)},
                 {"to", std::string(to)},
                 {"plane", std::string(plane)},
                 {"type", s_.type}});
  }

  /// In loops over i and j: SC[i, j] becomes -inf where the query must not see the key, else the
  /// added mask joins it.
  std::string masked(std::string_view in) const {
    const std::string score = cat("SC[i * ", s_.columns, " + j]");
    std::string out = fill(
        cat(in, "row: T.{I} = first + ty + i * 16\n", in, "col: T.{I} = start + tx + j * 16\n"),
        {{"I", index()}});
    const char* query = query_rows_ ? "row" : "col";
    const char* key = query_rows_ ? "col" : "row";
    std::string seen = cat(key, " < visible and ", query, " < n");
    if (s_.band)
      seen += cat(" and ", key, " >= ", query, " + low and ", key, " <= ", query, " + high");
    const std::string place = cat("mask[bat * mb + h * mh + ", query, " * mr + ", key, " * mc]");
    if (s_.padding) seen += cat(" and padding[bat * m + T.min(", key, ", m - 1)]");
    std::string value = score;
    if (s_.mask == AttentionSpec::Mask::allowed)
      value = cat("T.if_then_else(", place, ", ", score, ", T.float32(\"-inf\"))");
    else if (s_.mask == AttentionSpec::Mask::added)
      value = cat(score, " + ", kLog2e, " * ",
                  s_.mask_type == "float32" ? place : cat("T.Cast(\"float32\", ", place, ")"));
    return cat(out, in, score, " = T.if_then_else(", seen, ", ", value, ", T.float32(\"-inf\"))\n");
  }

  /// `keep` is the factor of a weight.
  std::string kept(std::string_view in) const {
    return dropout_factor(in, query_rows_ ? "row" : "col", query_rows_ ? "col" : "row", "z");
  }

  std::string each_score(std::string_view in, std::string_view body) const {
    return cat(in, "for i in T.unroll(T.{I}(", s_.rows, ")):\n", in, "    for j in T.unroll(T.{I}(",
               s_.columns, ")):\n", body);
  }

  /// The columns that some row of the tile sees: from `begin` to `end`, in tiles.
  std::string range() const {
    const std::string count = cat(columns());
    if (query_rows_)
      return fill(
          s_.band ? "            begin: T.{I} = T.max(T.{I}(0), first + low) // {c}\n"
                    "            end: T.{I} = (T.max(T.{I}(0), T.min(visible, first + {r} + high)) "
                    "+ {c} - 1) // {c}\n"
                  : "            begin: T.{I} = 0\n"
                    "            end: T.{I} = (visible + {c} - 1) // {c}\n",
          {{"I", index()}, {"c", count}, {"r", cat(rows())}});
    return fill(s_.band ? "            begin: T.{I} = T.max(T.{I}(0), first - high) // {c}\n"
                          "            end: T.{I} = (T.max(T.{I}(0), T.min(n, first + {r} - low)) "
                          "+ {c} - 1) // {c}\n"
                        : "            begin: T.{I} = 0\n"
                          "            end: T.{I} = (n + {c} - 1) // {c}\n",
                {{"I", index()}, {"c", count}, {"r", cat(rows())}});
  }

  ir::PrimFunc parse(const ProgramText& p, const std::string& body) const {
    return p.parse(cat("    for b in T.thread_binding(blocks, thread=\"blockIdx.x\"):\n"
                       "        for t in T.thread_binding(T.",
                       index(), "(256), thread=\"threadIdx.x\"):\n", body),
                   {{"I", index()}});
  }

  static constexpr const char* kIn = "            ";
  static constexpr const char* kLog2e = "T.float32(1.4426950408889634)";

 private:
  std::string vectors(std::string_view in, int count, std::string_view to,
                      std::string_view from) const {
    return cat(in, "for i in T.unroll(T.{I}(", count, ")):\n", in,
               "    for v in T.vectorized(T.{I}(4)):\n", in, "        ", to, "[i * 4 + v] = ", from,
               "\n");
  }

  const AttentionSpec& s_;
  const bool query_rows_;
};

constexpr const char* kStep = "                ";  // inside the loop over tiles of columns

}  // namespace

std::int64_t attention_shared(const AttentionSpec& s, bool backward) {
  const std::int64_t rows = s.rows * kSide, columns = s.columns * kSide;
  const std::int64_t both = pitch(s.width) + pitch(s.value_width);
  if (backward) return (rows + columns) * both + rows * (columns + 4);
  return rows * pitch(s.width) + columns * both + rows * (columns + 4) + rows * (kSide + 4);
}

ir::PrimFunc attention_forward(const AttentionSpec& s) {
  const Text x(s, true);
  const int rows = x.rows(), columns = x.columns(), each = padded(s.value_width) / kSide;
  ProgramText p("attention.forward");
  x.arrays(p, {"q", "k", "v"});
  p.buffer("out", s.type).buffer("sums", "float32");
  x.numbers(p, false);
  std::string body = x.place();
  body += fill(
      "            bat: T.{I} = z // heads\n            h: T.{I} = z % heads\n"
      "            kz: T.{I} = h // group\n            first: T.{I} = tile * {rows}\n",
      {{"I", x.index()}, {"rows", cat(rows)}});
  body += x.visible() + x.range();
  body += x.allocate("QS", rows * pitch(s.width), true);
  body += x.allocate("KS", columns * pitch(s.width), true);
  body += x.allocate("VS", columns * pitch(s.value_width), true);
  body += x.allocate("PS", rows * (columns + 4), true);
  body += x.allocate("RS", rows * (kSide + 4), true);
  body += x.allocate("AF", s.rows * 4, false) + x.allocate("BF", s.columns * 4, false);
  body += x.allocate("VF", each, false) + x.allocate("OUT", s.rows * each, false);
  body += x.allocate("SC", s.rows * s.columns, false);
  body += x.allocate("TOP", s.rows, false) + x.allocate("SUM", s.rows, false);
  body += x.allocate("NEW", 1, false) + x.allocate("RF", 4, false);
  body += cat("            for i in T.unroll(T.{I}(", s.rows,
              ")):\n                TOP[i] = T.float32(\"-inf\")\n                SUM[i] = "
              "T.float32(0)\n            for e in T.unroll(T.{I}(",
              s.rows * each, ")):\n                OUT[e] = T.float32(0)\n");
  body += x.load(Text::kIn, "QS", rows, s.width, "q", "q", "h", "first", "n",
                 cat(" * (scale * ", Text::kLog2e, ")"));
  const bool queued = !s.queue.empty();
  if (queued) {
    body += fill("            early: T.{I} = begin * {columns}\n",
                 {{"I", x.index()}, {"columns", cat(columns)}});
    body += x.copy(Text::kIn, "KS", columns, s.width, "k", "k", "kz", "early", "visible");
  }
  body += fill(
      "            for step in T.serial(T.max(end - begin, T.{I}(0))):\n"
      "                start: T.{I} = (begin + step) * {columns}\n",
      {{"I", x.index()}, {"columns", cat(columns)}});
  if (queued) {
    body += cat(kStep, "T.wait(copied, 0)\n");
    body += x.copy(kStep, "VS", columns, s.value_width, "v", "v", "kz", "start", "visible");
  } else {
    body += x.load(kStep, "KS", columns, s.width, "k", "k", "kz", "start", "visible", "");
    body += x.load(kStep, "VS", columns, s.value_width, "v", "v", "kz", "start", "visible", "");
  }
  body += x.products(kStep, "SC", "QS", "KS", s.width);
  const std::string inner(24, ' ');
  body += x.each_score(kStep, x.masked(inner));
  // The largest score of each row: of the thread's columns, then of the row's threads.
  body += fill(
      "                for i in T.unroll(T.{I}({r})):\n"
      "                    NEW[0] = SC[i * {c}]\n"
      "                    for j in T.unroll(T.{I}({rest})):\n"
      "                        NEW[0] = T.if_then_else(SC[i * {c} + j + 1] > NEW[0], SC[i * {c} + "
      "j "
      "+ 1], NEW[0])\n"
      "                    RS[(ty + i * 16) * 20 + tx] = NEW[0]\n"
      "                for i in T.unroll(T.{I}({r})):\n"
      "                    NEW[0] = TOP[i]\n"
      "                    for u in T.unroll(T.{I}(4)):\n"
      "                        for v in T.vectorized(T.{I}(4)):\n"
      "                            RF[v] = RS[(ty + i * 16) * 20 + u * 4 + v]\n"
      "                        for v in T.unroll(T.{I}(4)):\n"
      "                            NEW[0] = T.if_then_else(RF[v] > NEW[0], RF[v], NEW[0])\n"
      "                    base: T.float32 = T.if_then_else(NEW[0] == T.float32(\"-inf\"), "
      "T.float32(0), NEW[0])\n"
      "                    less: T.float32 = T.exp2_flush(TOP[i] - base)\n"
      "                    TOP[i] = NEW[0]\n"
      "                    SUM[i] = SUM[i] * less\n"
      "                    for e in T.unroll(T.{I}({each})):\n"
      "                        OUT[i * {each} + e] = OUT[i * {each} + e] * less\n"
      "                    for j in T.unroll(T.{I}({c})):\n"
      "                        SC[i * {c} + j] = T.exp2_flush(SC[i * {c} + j] - base)\n"
      "                        SUM[i] = SUM[i] + SC[i * {c} + j]\n",
      {{"I", x.index()},
       {"r", cat(s.rows)},
       {"c", cat(s.columns)},
       {"rest", cat(s.columns - 1)},
       {"each", cat(each)}});
  std::string weight = cat(inner, "PS[(ty + i * 16) * ", columns + 4, " + tx + j * 16] = SC[i * ",
                           s.columns, " + j]", s.dropout ? " * keep" : "", "\n");
  if (s.dropout)
    weight = fill(cat(inner, "row: T.{I} = first + ty + i * 16\n", inner,
                      "col: T.{I} = start + tx + j * 16\n", x.kept(inner), weight),
                  {{"I", x.index()}});
  body += x.each_score(kStep, weight);
  if (queued) {
    body += fill("                next: T.{I} = start + {columns}\n",
                 {{"I", x.index()}, {"columns", cat(columns)}});
    body += x.copy(kStep, "KS", columns, s.width, "k", "k", "kz", "next", "visible");
    body += cat(kStep, "T.wait(copied, 1)\n");
  }
  body += x.weighted(kStep, "OUT", "VS", s.value_width);
  if (queued) body += cat(Text::kIn, "T.wait(copied, 0)\n");
  body += fill(
      "            for i in T.unroll(T.{I}({r})):\n"
      "                RS[(ty + i * 16) * 20 + tx] = SUM[i]\n"
      "            for i in T.unroll(T.{I}({r})):\n"
      "                SUM[i] = T.float32(0)\n"
      "                for u in T.unroll(T.{I}(4)):\n"
      "                    for v in T.vectorized(T.{I}(4)):\n"
      "                        RF[v] = RS[(ty + i * 16) * 20 + u * 4 + v]\n"
      "                    for v in T.unroll(T.{I}(4)):\n"
      "                        SUM[i] = SUM[i] + RF[v]\n"
      "                row: T.{I} = first + ty + i * 16\n"
      "                if tx == 0 and row < n:\n"
      "                    sums[z * n + row] = T.if_then_else(SUM[i] == T.float32(0), "
      "T.float32(\"-inf\"), (TOP[i] + T.log2(SUM[i])) * T.float32(0.6931471805599453))\n"
      "                part: T.float32 = T.if_then_else(SUM[i] == T.float32(0), T.float32(0), "
      "T.float32(1) / SUM[i])\n"
      "                for e in T.unroll(T.{I}({each})):\n"
      "                    OUT[i * {each} + e] = OUT[i * {each} + e] * part\n",
      {{"r", cat(s.rows)}, {"I", x.index()}, {"each", cat(each)}});
  body += x.store("out", "OUT", s.value_width, "z", "n", "");
  return x.parse(p, body);
}

ir::PrimFunc attention_delta(const AttentionSpec& s) {
  const std::string index = index_type(s.narrow);
  ProgramText p("attention.delta");
  p.buffer("dout", s.type).buffer("out", s.type).buffer("delta", "float32");
  for (const char* name : {"blocks", "rows", "heads", "n", "gb", "gh", "gr"}) p.scalar(name, index);
  const bool half = s.type != "float32";
  const std::string open = half ? "T.Cast(\"float32\", " : "", close = half ? ")" : "";
  return p.parse(
      R"(    for b in T.thread_binding(blocks, thread="blockIdx.x"):
        for t in T.thread_binding(T.{I}(256), thread="threadIdx.x"):
            PART = T.allocate((256,), "float32", scope="shared")
            SUM = T.allocate((1,), "float32", scope="local")
            row: T.{I} = b * 32 + t // 8
            z: T.{I} = row // n
            SUM[0] = T.float32(0)
            if row < rows:
                for i in T.serial(T.{I}({steps})):
                    c: T.{I} = i * 8 + t % 8
                    if c < {width}:
                        SUM[0] = SUM[0] + {open}dout[z // heads * gb + z % heads * gh + row % n * gr + c]{close} * {open}out[row * {width} + c]{close}
            PART[t] = SUM[0]
            if t % 8 == 0:
                SUM[0] = T.float32(0)
                for i in T.unroll(T.{I}(8)):
                    SUM[0] = SUM[0] + PART[t + i]
                if row < rows:
                    delta[row] = SUM[0]
)",
      {{"I", index},
       {"steps", cat((s.value_width + 7) / 8)},
       {"width", cat(s.value_width)},
       {"open", open},
       {"close", close}});
}

namespace {

/// Both gradients: rows of two arrays XA and XB stay, columns of YA and YB pass. Scores are XA YA',
/// gradients of weights XB YB'; FIRST sums what is due to YA, SECOND (of keys) what is due to YB.
/// `added`: of keys; dq (float32) is added up as well.
class Gradient {
 public:
  Gradient(const AttentionSpec& s, bool queries, bool added = false)
      : s_(s), x_(s, queries), queries_(queries), added_(added) {}

  ir::PrimFunc program() const {
    std::string body = memory() + (queries_ ? opening_of_queries() : opening_of_keys());
    if (queued_) body += cat(in_, "T.wait(copied, 1)\n");
    body += x_.products(in_, "DP", "XB", "YB", s_.value_width);
    if (queued_) body += cat(in_, "T.wait(copied, 0)\n");
    body += x_.products(in_, "SC", "XA", "YA", s_.width);
    return x_.parse(parameters(), body + sums() + stores());
  }

 private:
  ProgramText parameters() const {
    ProgramText p(queries_ ? "attention.queries"
                  : added_ ? "attention.gradient"
                           : "attention.keys");
    x_.arrays(p, {"q", "k", "v", "g"});
    p.buffer("sums", "float32").buffer("delta", "float32");
    if (queries_) p.buffer("dq", s_.type);
    if (added_) p.buffer("dq", "float32");
    if (!queries_) p.buffer("dk", s_.type).buffer("dv", s_.type);
    x_.numbers(p, true);
    return p;
  }

  std::string memory() const {
    const int each = padded(s_.width) / kSide, each_value = padded(s_.value_width) / kSide;
    std::string out = x_.place();
    auto shared = [&](const char* name, int count) { out += x_.allocate(name, count, true); };
    auto own = [&](const char* name, int count) { out += x_.allocate(name, count, false); };
    shared("XA", rows_ * pitch(s_.width)), shared("XB", rows_ * pitch(s_.value_width));
    shared("YA", columns_ * pitch(s_.width)), shared("YB", columns_ * pitch(s_.value_width));
    shared("PS", rows_ * (columns_ + 4));
    own("AF", s_.rows * 4), own("BF", s_.columns * 4), own("VF", std::max(each, each_value));
    own("FIRST", s_.rows * each);
    if (!queries_) own("SECOND", s_.rows * each_value);
    own("SC", s_.rows * s_.columns), own("DP", s_.rows * s_.columns);
    if (added_) own("DQ", s_.columns * each), own("CF", s_.columns);
    own("LOG", numbers_), own("DEL", numbers_);
    auto zeros = [&](const char* name, int count) {
      out += cat("            for e in T.unroll(T.{I}(", count, ")):\n                ", name,
                 "[e] = T.float32(0)\n");
    };
    zeros("FIRST", s_.rows * each);
    if (!queries_) zeros("SECOND", s_.rows * each_value);
    return out;
  }

  /// What passes, YA and YB, of the tile at `start`. On the queue: YB while the step before sums
  /// what is due to YA, YA while weights' gradients are computed.
  std::string bring(const char* in, bool second, const char* head, const char* start) const {
    const char* array = second ? (queries_ ? "v" : "g") : (queries_ ? "k" : "q");
    return x_.copy(in, second ? "YB" : "YA", columns_, second ? s_.value_width : s_.width, array,
                   array, head, start, queries_ ? "visible" : "n");
  }
  std::string bring_first_tiles(const char* head) const {
    if (!queued_) return "";
    return cat(fill("            early: T.{I} = begin * {columns}\n", names_),
               bring(Text::kIn, true, head, "early"), bring(Text::kIn, false, head, "early"));
  }
  /// What a query brings: the logarithm of its sum (to base 2; inf where it sees nothing) and
  /// delta.
  std::string query_numbers(const char* in, const char* row) const {
    return fill(
        cat(in, "for i in T.unroll(T.{I}({count})):\n", in, "    at: T.{I} = ", row, " + i * 16\n",
            in, "    LOG[i] = T.if_then_else(at < n, sums[z * n + at] * ", Text::kLog2e,
            ", T.float32(0))\n", in,
            "    LOG[i] = T.if_then_else(LOG[i] == T.float32(\"-inf\"), T.float32(\"inf\"), "
            "LOG[i])\n",
            in, "    DEL[i] = T.if_then_else(at < n, delta[z * n + at], T.float32(0))\n"),
        {{"count", cat(numbers_)}, {"I", x_.index()}});
  }

  std::string opening_of_queries() const {
    std::string out = fill(
        "            bat: T.{I} = z // heads\n            h: T.{I} = z % heads\n"
        "            kz: T.{I} = h // group\n            first: T.{I} = tile * {rows}\n",
        names_);
    out += x_.visible() + x_.range();
    out += x_.load(Text::kIn, "XA", rows_, s_.width, "q", "q", "h", "first", "n", scaled_);
    out += x_.load(Text::kIn, "XB", rows_, s_.value_width, "g", "g", "h", "first", "n", "");
    out += query_numbers(Text::kIn, "first + ty");
    out += bring_first_tiles("kz");
    out += fill(
        "            for step in T.serial(T.max(end - begin, T.{I}(0))):\n"
        "                start: T.{I} = (begin + step) * {columns}\n",
        names_);
    if (queued_) return out;
    out += x_.load(in_, "YA", columns_, s_.width, "k", "k", "kz", "start", "visible", "");
    return out +
           x_.load(in_, "YB", columns_, s_.value_width, "v", "v", "kz", "start", "visible", "");
  }

  /// One loop over the heads that share these keys and their tiles of queries.
  std::string opening_of_keys() const {
    std::string out = fill(
        "            keys: T.{I} = heads // group\n"
        "            bat: T.{I} = zk // keys\n            kz: T.{I} = zk % keys\n"
        "            first: T.{I} = tile * {rows}\n",
        names_);
    out += x_.visible() + x_.range();
    out += x_.load(Text::kIn, "XA", rows_, s_.width, "k", "k", "kz", "first", "visible", "");
    out += x_.load(Text::kIn, "XB", rows_, s_.value_width, "v", "v", "kz", "first", "visible", "");
    out += fill("            count: T.{I} = T.max(end - begin, T.{I}(0))\n", names_);
    out += bring_first_tiles("(kz * group)");
    out += fill(
        "            for both in T.serial(count * group):\n"
        "                h: T.{I} = kz * group + both // count\n"
        "                z: T.{I} = bat * heads + h\n"
        "                start: T.{I} = (begin + both % count) * {columns}\n",
        names_);
    if (!queued_) {
      out += x_.load(in_, "YA", columns_, s_.width, "q", "q", "h", "start", "n", scaled_);
      out += x_.load(in_, "YB", columns_, s_.value_width, "g", "g", "h", "start", "n", "");
    }
    return out + query_numbers(in_.c_str(), "start + tx");
  }

  /// From scores and gradients of weights to what a tile adds to the sums.
  std::string sums() const {
    const std::string inner(24, ' ');
    const std::string score = cat("SC[i * ", s_.columns, " + j]"),
                      change = cat("DP[i * ", s_.columns, " + j]"),
                      place = cat("PS[(ty + i * 16) * ", columns_ + 4, " + tx + j * 16]");
    const char* own_index = queries_ ? "i" : "j";
    // Queries that pass as they lie are scaled here.
    std::string step =
        queued_ && !queries_ ? cat(inner, score, " = ", score, scaled_, "\n") : std::string();
    step += x_.masked(inner);
    step += cat(inner, score, " = T.exp2_flush(", score, " - LOG[", own_index, "])\n");
    if (s_.dropout) step += x_.kept(inner);
    const char* times = s_.dropout ? " * keep" : "";
    if (!queries_) step += cat(inner, place, " = ", score, times, "\n");
    step += cat(inner, change, " = ", score, " * (", change, times, " - DEL[", own_index, "])\n");
    if (queries_) step += cat(inner, place, " = ", change, "\n");
    std::string out = x_.each_score(in_, step);
    if (!queries_) {
      out += x_.weighted(in_, "SECOND", "YB", s_.value_width);
      out += x_.each_score(in_, cat(inner, place, " = ", change, "\n"));
    }
    const char* next_head = queries_ ? "kz" : "T.min(next_head, heads - 1)";
    if (queued_) {
      // Behind the last tile: a tile of the next head that shares the keys, or nothing that is
      // read.
      out += fill(queries_ ? cat(in_, "next: T.{I} = start + {columns}\n")
                           : cat(in_, "after: T.{I} = both + 1\n", in_,
                                 "next_head: T.{I} = kz * group + after // "
                                 "count\n",
                                 in_, "next: T.{I} = (begin + after % count) * {columns}\n"),
                  names_);
      out += bring(in_.c_str(), true, next_head, "next");
    }
    out += x_.weighted(in_, "FIRST", "YA", s_.width);
    if (queued_) out += bring(in_.c_str(), false, next_head, "next");
    return added_ ? out + x_.turned(in_, "dq", "XA", s_.width) : out;
  }

  std::string stores() const {
    const std::string end = queued_ ? cat(Text::kIn, "T.wait(copied, 0)\n") : std::string();
    if (queries_) return end + x_.store("dq", "FIRST", s_.width, "z", "n", " * scale");
    // Without a queue YA holds queries times scale log2(e).
    return cat(end,
               x_.store("dk", "FIRST", s_.width, "zk", "m",
                        queued_ ? " * scale" : " * T.float32(0.6931471805599453)"),
               x_.store("dv", "SECOND", s_.value_width, "zk", "m", ""));
  }

  const AttentionSpec& s_;
  const Text x_;
  const bool queries_, added_, queued_ = !s_.queue.empty();
  const int rows_ = x_.rows(), columns_ = x_.columns();
  const int numbers_ = queries_ ? s_.rows : s_.columns;  // of queries that a thread reads
  const std::string in_ = kStep, scaled_ = cat(" * (scale * ", Text::kLog2e, ")");
  const Values names_ = {{"I", x_.index()}, {"rows", cat(rows_)}, {"columns", cat(columns_)}};
};

}  // namespace

ir::PrimFunc attention_queries(const AttentionSpec& s) { return Gradient(s, true).program(); }
ir::PrimFunc attention_keys(const AttentionSpec& s) { return Gradient(s, false).program(); }
ir::PrimFunc attention_gradient(const AttentionSpec& s) {
  return Gradient(s, false, true).program();
}

}  // namespace weft::operators
