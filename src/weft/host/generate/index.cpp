// SPDX-License-Identifier: Apache-2.0
// Index arrays and masks: what they do to elements of 1, 2, 4, 8 and 16 bytes, whatever their type.

#include "weft/host/generate/builder.h"
#include "weft/host/generate/kernels.h"

namespace weft::generate {

namespace {

/// An element as words of one type.
struct Width {
  DType word;
  std::int64_t words;
};
Width width_of(int w) {
  static constexpr DType words[] = {dtypes::uint8, dtypes::uint16, dtypes::uint32, dtypes::uint64,
                                    dtypes::uint64};
  return {words[w], w == 4 ? 2 : 1};
}

/// to[i] = from[j], all words read before one is written.
Stmt move(const Width& w, const ir::Buffer& to, const Expr& i, const ir::Buffer& from,
          const Expr& j) {
  std::vector<Expr> words;
  for (std::int64_t k = 0; k < w.words; ++k)
    words.push_back(ir::load(from, {j * number(w.words) + number(k)}));
  return with_values(words, [&](const std::vector<Expr>& v) {
    std::vector<Stmt> all;
    for (std::size_t k = 0; k < v.size(); ++k)
      all.push_back(
          ir::store(to, v[k], {i * number(w.words) + number(static_cast<std::int64_t>(k))}));
    return ir::seq(std::move(all));
  });
}

/// A position that counts from the end where it is negative, and whether it is outside.
struct Resolved {
  Expr at, outside;
};
Stmt resolved(const Expr& position, const Expr& extent,
              const std::function<Stmt(const Resolved&)>& then) {
  return with_values({position}, [&](const std::vector<Expr>& v) {
    const Expr from_end = ir::select(ir::lt(v[0], number(0)), extent, number(0));
    return with_values({v[0] + from_end}, [&](const std::vector<Expr>& at) {
      return then(
          {at[0], ir::call("bitwise_or", {ir::lt(at[0], number(0)), ir::ge(at[0], extent)})});
    });
  });
}

constexpr std::int64_t kFlags = 4;

/// body(i, note) for all i; `note` keeps that something was outside, and acc[0] tells in the end.
ir::PrimFunc noting(
    Program& p, const ir::Buffer& acc,
    const std::function<Stmt(const Expr& i, const std::function<Stmt(const Expr&)>& note)>& body) {
  const ir::Buffer flags = local("flags", dtypes::int64, kFlags);
  const Expr groups = ir::floordiv(p.n, number(kFlags));
  auto step = [&](const Expr& i, const Expr& lane) {
    return body(i, [&](const Expr& outside) {
      return ir::store(
          flags, ir::select(outside, ir::make_const(-1, dtypes::int64), ir::load(flags, {lane})),
          {lane});
    });
  };
  std::vector<Stmt> all;
  all.push_back(vectors("l", number(kFlags),
                        [&](const Expr& l) { return ir::store(flags, number(0), {l}); }));
  all.push_back(loop("g", groups, [&](const Expr& g) {
    return vectors("l", number(kFlags),
                   [&](const Expr& l) { return step(g * number(kFlags) + l, l); });
  }));
  all.push_back(loop("r", Expr(p.n) - groups * number(kFlags),
                     [&](const Expr& r) { return step(groups * number(kFlags) + r, number(0)); }));
  for (std::int64_t width = kFlags / 2; width; width /= 2) {
    all.push_back(vectors("l", number(width), [&](const Expr& l) {
      return ir::store(
          flags,
          ir::call("bitwise_or", {ir::load(flags, {l}), ir::load(flags, {l + number(width)})}),
          {l});
    }));
  }
  all.push_back(ir::store(acc, ir::load(flags, {number(0)}), {number(0)}));
  return p.finish(ir::allocate(flags, ir::seq(std::move(all))));
}

/// out[i] = the offset of position a0[i] along an axis, added to what stands there where `adds`;
/// acc[0] is not 0 where one is outside.
ir::PrimFunc resolve_function(bool adds) {
  Program p;
  const Expr extent = p.scalar("extent", dtypes::int64), step = p.scalar("step", dtypes::int64);
  ir::Buffer at = p.buffer("a0", dtypes::int64), out = p.buffer("out", dtypes::int64),
             acc = p.buffer("acc", dtypes::int64, number(1));
  return noting(p, acc, [&](const Expr& i, const auto& note) {
    return resolved(ir::load(at, {i}), extent, [&](const Resolved& r) {
      const Expr offset = r.at * step;
      return ir::seq(
          {note(r.outside), ir::store(out, adds ? ir::load(out, {i}) + offset : offset, {i})});
    });
  });
}

/// out[i] = a0[offset of position a1[i]]; of a position outside the first element is read.
ir::PrimFunc along_function(const Width& w) {
  Program p;
  const Expr extent = p.scalar("extent", dtypes::int64), step = p.scalar("step", dtypes::int64);
  ir::Buffer in = p.buffer("a0", w.word, ir::make_var("m")), at = p.buffer("a1", dtypes::int64),
             out = p.buffer("out", w.word, Expr(p.n) * number(w.words)),
             acc = p.buffer("acc", dtypes::int64, number(1));
  return noting(p, acc, [&](const Expr& i, const auto& note) {
    return resolved(ir::load(at, {i}), extent, [&](const Resolved& r) {
      return ir::seq({note(r.outside), with_values({ir::select(r.outside, number(0), r.at) * step},
                                                   [&](const std::vector<Expr>& j) {
                                                     return move(w, out, i, in, j[0]);
                                                   })});
    });
  });
}

/// out[i] = a0[a1[i]].
ir::PrimFunc pick_function(const Width& w) {
  Program p;
  ir::Buffer in = p.buffer("a0", w.word, ir::make_var("m")), at = p.buffer("a1", dtypes::int64),
             out = p.buffer("out", w.word, Expr(p.n) * number(w.words));
  return p.finish(vectors("i", p.n, [&](const Expr& i) {
    return with_values({ir::load(at, {i})},
                       [&](const std::vector<Expr>& j) { return move(w, out, i, in, j[0]); });
  }));
}

/// out[a1[i]] = out[a1[i]] + a0[i], in order.
ir::PrimFunc put_add_function(Elem e) {
  Program p;
  ir::Buffer in = p.buffer("a0", e), at = p.buffer("a1", dtypes::int64),
             out = p.buffer("out", dtype_of(e), ir::make_var("m"));
  return p.finish(loop("i", p.n, [&](const Expr& i) {
    return with_values({ir::load(at, {i})}, [&](const std::vector<Expr>& j) {
      return ir::store(out, ir::load(out, {j[0]}) + ir::load(in, {i}), {j[0]});
    });
  }));
}

/// out[a1[i]] = a0[i], in order. Stores that miss the caches wait in a short queue: lines are asked
/// for ahead.
ir::PrimFunc put_function(const Width& w) {
  constexpr std::int64_t kAhead = 32;
  Program p;
  ir::Buffer in = p.buffer("a0", w.word, Expr(p.n) * number(w.words)),
             at = p.buffer("a1", dtypes::int64), out = p.buffer("out", w.word, ir::make_var("m"));
  auto one = [&](const Expr& i) {
    return with_values({ir::load(at, {i})},
                       [&](const std::vector<Expr>& j) { return move(w, out, j[0], in, i); });
  };
  auto ahead = [&](const Expr& i) {
    const Expr line = ir::load(out, {ir::load(at, {i + number(kAhead)}) * number(w.words)});
    return ir::evaluate(
        ir::call("prefetch", {ir::call("address_of", {line}), ir::make_const(1, dtypes::int32),
                              ir::make_const(3, dtypes::int32)}));
  };
  const Expr whole = ir::select(ir::lt(number(kAhead), p.n), Expr(p.n) - number(kAhead), number(0));
  return p.finish(with_value("whole", whole, [&](const Expr& v) {
    return ir::seq({loop("i", v,
                         [&](const Expr& i) {
                           return ir::seq({ahead(i), one(i)});
                         }),
                    loop("r", Expr(p.n) - v, [&](const Expr& r) { return one(v + r); })});
  }));
}

/// acc[0] = how many truth values of n <= kRun are set; truth is what is not 0.
ir::PrimFunc count_function() {
  constexpr std::int64_t kLanes = 64;  // bytes hold kRun / kLanes
  Program p;
  ir::Buffer x = p.buffer("a0", dtypes::uint8), acc = p.buffer("acc", dtypes::int64, number(1));
  ir::Buffer bytes = local("bytes", dtypes::uint8, kLanes),
             sums = local("sums", dtypes::int32, kLanes), total = local("total", dtypes::int64, 1);
  const Expr groups = ir::floordiv(p.n, number(kLanes)), zero = number(0);
  auto set = [&](const Expr& i, DType as) {
    return ir::select(ir::ne(ir::load(x, {i}), ir::make_const(0, dtypes::uint8)),
                      ir::make_const(1, as), ir::make_const(0, as));
  };
  std::vector<Stmt> all;
  all.push_back(vectors("l", number(kLanes), [&](const Expr& l) {
    return ir::store(bytes, ir::make_const(0, dtypes::uint8), {l});
  }));
  all.push_back(loop("g", groups, [&](const Expr& g) {
    return vectors("l", number(kLanes), [&](const Expr& l) {
      return ir::store(bytes, ir::load(bytes, {l}) + set(g * number(kLanes) + l, dtypes::uint8),
                       {l});
    });
  }));
  all.push_back(vectors("l", number(kLanes), [&](const Expr& l) {
    return ir::store(sums, ir::cast(dtypes::int32, ir::load(bytes, {l})), {l});
  }));
  for (std::int64_t width = kLanes / 2; width; width /= 2) {
    all.push_back(vectors("l", number(width), [&](const Expr& l) {
      return ir::store(sums, ir::load(sums, {l}) + ir::load(sums, {l + number(width)}), {l});
    }));
  }
  all.push_back(ir::store(total, ir::cast(dtypes::int64, ir::load(sums, {zero})), {zero}));
  all.push_back(loop("r", Expr(p.n) - groups * number(kLanes), [&](const Expr& r) {
    return ir::store(
        total, ir::load(total, {zero}) + set(groups * number(kLanes) + r, dtypes::int64), {zero});
  }));
  all.push_back(ir::store(acc, ir::load(total, {zero}), {zero}));
  Stmt body = ir::seq(std::move(all));
  for (const ir::Buffer& b : {bytes, sums, total}) body = ir::allocate(b, body);
  return p.finish(body);
}

/// What is marked moves up, without a branch: body(i, to) writes element i to place `to`, which the
/// next one takes over where i is not marked; acc[0] = how many. `out` has one place more.
using Marked = std::function<Stmt(const Expr& i, const Expr& to, const Expr& set)>;
ir::PrimFunc marked(Program& p, const Marked& body) {
  ir::Buffer mask = p.buffer("a1", dtypes::uint8), acc = p.buffer("acc", dtypes::int64, number(1));
  ir::Buffer next = local("next", dtypes::int64, 1);
  const Expr zero = number(0);
  return p.finish(ir::allocate(
      next,
      ir::seq({ir::store(next, zero, {zero}),
               loop("i", p.n,
                    [&](const Expr& i) {
                      const Expr set =
                          ir::select(ir::ne(ir::load(mask, {i}), ir::make_const(0, dtypes::uint8)),
                                     number(1), zero);
                      return with_value("to", ir::load(next, {zero}), [&](const Expr& to) {
                        return with_value("set", set, [&](const Expr& one) {
                          return ir::seq({body(i, to, one), ir::store(next, to + one, {zero})});
                        });
                      });
                    }),
               ir::store(acc, ir::load(next, {zero}), {zero})})));
}

ir::PrimFunc compress_function(const Width& w) {
  Program p;
  ir::Buffer in = p.buffer("a0", w.word, Expr(p.n) * number(w.words)),
             out = p.buffer("out", w.word, (Expr(p.n) + 1) * number(w.words));
  return marked(
      p, [&](const Expr& i, const Expr& to, const Expr&) { return move(w, out, to, in, i); });
}

/// out[i] = the next of `in` where i is marked; `in` has one place more.
ir::PrimFunc expand_function(const Width& w) {
  Program p;
  ir::Buffer in = p.buffer("a0", w.word, (Expr(p.n) + 1) * number(w.words)),
             out = p.buffer("out", w.word, Expr(p.n) * number(w.words));
  return marked(p, [&](const Expr& i, const Expr& to, const Expr& set) {
    std::vector<Expr> words;
    for (std::int64_t k = 0; k < w.words; ++k) {
      words.push_back(ir::load(in, {to * number(w.words) + number(k)}));
      words.push_back(ir::load(out, {i * number(w.words) + number(k)}));
    }
    return with_values(words, [&](const std::vector<Expr>& v) {
      std::vector<Stmt> all;
      for (std::int64_t k = 0; k < w.words; ++k) {
        const auto at = static_cast<std::size_t>(2 * k);
        all.push_back(ir::store(out, ir::select(ir::ne(set, number(0)), v[at], v[at + 1]),
                                {i * number(w.words) + number(k)}));
      }
      return ir::seq(std::move(all));
    });
  });
}

/// out = first + the places that are marked.
ir::PrimFunc places_function() {
  Program p;
  const Expr first = p.scalar("first", dtypes::int64);
  ir::Buffer out = p.buffer("out", dtypes::int64, Expr(p.n) + 1);
  return marked(p, [&](const Expr& i, const Expr& to, const Expr&) {
    return ir::store(out, first + i, {to});
  });
}

}  // namespace

std::vector<Kernel> index_kernels() {
  std::vector<Kernel> out;
  using T = KernelEntry;
  auto add = [&](T::Table table, int row, const std::string& name, ir::PrimFunc f) {
    out.push_back({entry(table, row, Elem::boolean), name, std::move(f)});
  };
  add(T::resolve, 0, "w_resolve", resolve_function(false));
  add(T::resolve, 1, "w_resolve_more", resolve_function(true));
  for (int w = 0; w < kWidths; ++w) {
    const std::string tail = std::to_string(1 << w);
    add(T::along, w, cat("w_along_", tail), along_function(width_of(w)));
    add(T::pick, w, cat("w_pick_", tail), pick_function(width_of(w)));
    add(T::put, w, cat("w_put_", tail), put_function(width_of(w)));
    add(T::compress, w, cat("w_compress_", tail), compress_function(width_of(w)));
    add(T::expand, w, cat("w_expand_", tail), expand_function(width_of(w)));
  }
  for (int e = 0; e < kElems; ++e) {
    const Elem elem = static_cast<Elem>(e);
    if (is_integer(elem) || elem == Elem::float32 || elem == Elem::float64)
      out.push_back(
          {entry(T::put_add, 0, elem), cat("w_put_add_", name_of(elem)), put_add_function(elem)});
  }
  add(T::count, 0, "w_count", count_function());
  add(T::places, 0, "w_places", places_function());
  return out;
}

}  // namespace weft::generate
