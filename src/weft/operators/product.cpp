// SPDX-License-Identifier: Apache-2.0
#include "weft/operators/product.h"

#include <algorithm>
#include <vector>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/operators/program_text.h"

namespace weft::operators {

namespace {

using NameList = std::vector<std::string>;

class ProductWriter {
 public:
  explicit ProductWriter(const ProductSpec& spec) : s_(spec), text_("product") {
    // Planes of tiles are the parts of sums of each batch.
    if (spec.rank_batch > 0)
      planes_ = "batches * parts", batch_ = "z // T.max(parts, 1)", part_ = "z % T.max(parts, 1)";
  }

  ir::PrimFunc write() {
    text_.unscheduled().distinct();
    text_.buffer("out", s_.out).buffer("a", s_.a).buffer("b", s_.b);
    if (s_.bias) text_.buffer("bias", s_.sum);
    for (const char* name : {"batches", "parts", "steps", "m_units", "n_units", "k_units", "slab"})
      text_.scalar(name, "int64");
    const std::int64_t unit_m = s_.unit_m(), unit_n = s_.unit_n();
    const NameList dm = scalars("dm", s_.rank_m), dn = scalars("dn", s_.rank_n);
    dk_ = scalars("dk", s_.rank_k), db_ = scalars("db", s_.rank_batch);
    const NameList am = scalars("am", s_.rank_m);
    a_.k = scalars("ak", s_.rank_k), a_.batch = scalars("ab", s_.rank_batch);
    b_.k = scalars("bk", s_.rank_k);
    const NameList bn = scalars("bn", s_.rank_n);
    b_.batch = scalars("bb", s_.rank_batch);
    const NameList om = scalars("om", s_.rank_m), on = scalars("on", s_.rank_n),
                   ob = scalars("ob", s_.rank_batch);
    const std::string m = in_units("m_units", unit_m), n = in_units("n_units", unit_n);
    const std::string rows = rounded(m, s_.rows), columns = rounded(n, s_.columns);
    terms_ = cat("(steps * ", s_.depth, ")"), k_ = in_units("k_units", s_.unit_k());
    body_ += cat("    S = T.alloc_buffer((", planes_, ", ", rows, ", ", columns, "), \"{C}\")\n");
    if (tabled()) places();
    a_ = {"A_tile",  "a",  s_.a,   a_.k,        a_.batch,     am,        dm,
          "m_units", rows, unit_m, s_.vector_a, s_.a_along_k, s_.lines_a};
    b_ = {"B_tile",  "b",     s_.b,   b_.k,        b_.batch,     bn,        dn,
          "n_units", columns, unit_n, s_.vector_b, s_.b_along_k, s_.lines_b};
    tile(a_), tile(b_);
    nest({planes_, rows, columns, terms_}, {"z", "i", "j", "k"}, "product",
         R"(            with T.init():
                S[z, i, j] = T.{C}(0)
            S[z, i, j] = S[z, i, j] + A_tile[z, )" +
             std::string(s_.lines_a ? "i, k" : "k, i") + "] * B_tile[z, " +
             (s_.lines_b ? "j, k" : "k, j") + "]\n",
         true);
    store(m, n, unit_m, unit_n, dm, dn, om, on, ob);
    const auto f = ir::edit(text_.parse(body_, {{"C", s_.sum}}));
    if (s_.narrow) f->attrs = ir::with_annotation(f->attrs, "narrow_positions", true);
    return f;
  }

 private:
  struct Operand {
    std::string tile, from, type;
    NameList k, batch, steps, extents;
    std::string units, padded;
    std::int64_t unit = 1, vector = 1;
    bool along_k = false, lines = false;
  };

  bool tabled() const { return s_.rank_k > 1; }
  NameList scalars(std::string_view prefix, int count) {
    NameList out;
    for (int i = 0; i < count; ++i) {
      out.push_back(cat(prefix, i));
      text_.scalar(out.back(), "int64");
    }
    return out;
  }
  static std::string in_units(std::string_view units, std::int64_t unit) {
    return unit > 1 ? cat("(", units, " * ", unit, ")") : std::string(units);
  }
  static std::string rounded(std::string_view extent, std::int64_t tile) {
    return cat("((", extent, " + ", tile - 1, ") // ", tile, " * ", tile, ")");
  }
  /// Where the `linear`-th element of axes lies. `unit`: of the last extent, which counts vectors.
  /// `whole`: quotients of what is not negative.
  static std::string position(std::string_view linear, const NameList& extents,
                              const NameList& steps, std::int64_t unit = 1, bool whole = false) {
    std::string out, rest(linear);
    auto quotient = [&](const char* op, const char* call, const std::string& by) {
      return whole ? cat("T.", call, "(", rest, ", ", by, ")") : cat("(", rest, ") ", op, " ", by);
    };
    for (std::size_t i = extents.size(); i-- > 0;) {
      std::string at = cat("(", rest, ")");
      if (i > 0) {
        const std::string own = i + 1 == extents.size() ? in_units(extents[i], unit) : extents[i];
        // At least one, so that quotients may be computed ahead of conditions.
        const std::string by = cat("T.max(", own, ", 1)");
        at = cat("(", quotient("%", "truncmod", by), ")");
        rest = quotient("//", "truncdiv", by);
      }
      out += cat(out.empty() ? "" : " + ", at, " * ", steps[i]);
    }
    return out.empty() ? "0" : out;
  }
  std::string converted(std::string_view value, std::string_view type) const {
    return type == s_.sum ? std::string(value) : cat("T.Cast(\"{C}\", ", value, ")");
  }

  void nest(const NameList& extents, const NameList& iters, std::string_view block,
            std::string_view statements, bool reduces = false) {
    std::string loops, kinds;
    for (const std::string& i : iters) loops += cat(loops.empty() ? "" : ", ", i, "_");
    for (std::size_t i = 0; i < iters.size(); ++i)
      kinds += reduces && i + 1 == iters.size() ? "R" : "S";
    body_ +=
        cat("    for ", loops, " in T.grid(", weft::join(extents, ", "),
            "):\n        with T.block(\"", block, "\"):\n            ", weft::join(iters, ", "),
            " = T.axis.remap(\"", kinds, "\", [", loops, "])\n", statements);
  }

  std::string place(std::string_view at) const {
    return cat("T.Cast(\"", index_type(s_.narrow), "\", ", at, ")");
  }
  /// Positions along several summed axes, divided once for a tile.
  void places() {
    for (const char* name : {"A_place", "B_place"})
      body_ += cat("    ", name, " = T.alloc_buffer((", planes_, ", ", terms_, "), \"",
                   index_type(s_.narrow), "\")\n");
    // In the width of positions: a step waits for these quotients.
    const std::string term = place(cat(part_, " * ", terms_, " + k"));
    auto all = [&](NameList names) {
      for (std::string& name : names) name = place(name);
      return names;
    };
    const NameList extents = all(dk_);
    nest({planes_, terms_}, {"z", "k"}, "places",
         cat("            A_place[z, k] = ", position(term, extents, all(a_.k), 1, true),
             "\n            B_place[z, k] = ", position(term, extents, all(b_.k), 1, true), "\n"));
  }

  void tile(const Operand& o) {
    body_ += cat("    ", o.tile, " = T.alloc_buffer((", planes_, ", ", o.lines ? o.padded : terms_,
                 ", ", o.lines ? terms_ : o.padded, "), \"{C}\")\n");
    const bool vectors = o.vector > 1, across = vectors && !o.along_k;
    const std::string term = cat(part_, " * ", terms_, " + k");
    const std::string along =
        tabled() ? cat("T.Cast(\"int64\", ", o.from == "a" ? "A" : "B", "_place[z, k])")
        : vectors && o.along_k ? cat("(", term, ") // ", o.vector)
                               : position(term, dk_, o.k);
    const std::string at = cat(
        position(batch_, db_, o.batch), " + ",
        position(across ? cat("x // ", o.vector) : "x", o.extents, o.steps, across ? 1 : o.unit),
        " + ", along);
    const std::string inside = cat("x < ", in_units(o.units, o.unit), " and ", term, " < ", k_);
    NameList extents{planes_}, iters{"z"};
    auto axis = [&](const std::string& extent, const char* iter) {
      extents.push_back(extent), iters.emplace_back(iter);
    };
    if (!o.along_k) axis(terms_, "k");
    axis(o.padded, "x");
    if (o.along_k) axis(terms_, "k");
    const std::string from =
        vectors ? cat("(", at, ") * ", o.vector, " + ", across ? "x" : "k", " % ", o.vector) : at;
    nest(extents, iters, o.tile,
         cat("            ", o.tile, o.lines ? "[z, x, k]" : "[z, k, x]", " = T.if_then_else(",
             inside, ", ", converted(cat(o.from, "[", from, "]"), o.type), ", T.{C}(0))\n"));
  }

  void store(const std::string& m, const std::string& n, std::int64_t unit_m, std::int64_t unit_n,
             const NameList& dm, const NameList& dn, const NameList& om, const NameList& on,
             const NameList& ob) {
    const std::int64_t v = s_.vector_out;
    const std::string at =
        cat(position(batch_, db_, ob), " + ", part_, " * slab + ", position("i", dm, om, unit_m),
            " + ", position(v > 1 ? cat("j // ", v) : "j", dn, on, v > 1 ? 1 : unit_n));
    std::string value = "S[z, i, j]";
    // The parts of a sum are added up afterwards: one of them has it.
    if (s_.bias) value += cat(" + T.Select(", part_, " == 0, bias[j], T.{C}(0))");
    if (s_.out != s_.sum) value = cat("T.Cast(\"", s_.out, "\", ", value, ")");
    nest({planes_, m, n}, {"z", "i", "j"}, "store",
         cat("            out[", v > 1 ? cat("(", at, ") * ", v, " + j % ", v) : at, "] = ", value,
             "\n"));
  }

  const ProductSpec& s_;
  ProgramText text_;
  std::string body_, terms_, k_, planes_ = "parts", batch_ = "0", part_ = "z";
  NameList dk_, db_;
  Operand a_, b_;
};

}  // namespace

ir::PrimFunc product_program(const ProductSpec& spec) { return ProductWriter(spec).write(); }

}  // namespace weft::operators
