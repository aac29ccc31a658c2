// SPDX-License-Identifier: Apache-2.0
// What roles.h means, executable. Work that runs beside its starter is done late here, when
// somebody waits for it, and every second bulk copy at once: a wait that is missing, or a slot that
// is handed back too early, shows in the result.
#include <array>
#include <cmath>
#include <cstring>
#include <limits>
#include <utility>

#include "weft/ir/build.h"
#include "weft/ir/interpret_internal.h"
#include "weft/ir/roles.h"

namespace weft::ir::interp {

namespace {

constexpr std::int64_t kTile = 64, kGroup = 128;

/// Innermost first.
struct TensorMap {
  char* data = nullptr;
  DType type;
  std::vector<std::int64_t> extents, strides, box, steps;
};

struct Copy {
  TensorMap map;
  char* tile = nullptr;
  std::vector<std::int64_t> first;
  bool load = false, dry = false;
  Reach reach;  // the tile
  void run() const {
    if (dry) return;
    const std::int64_t width = map.type.bytes();
    std::int64_t count = 1;
    for (std::int64_t n : map.box) count *= n;
    for (std::int64_t i = 0; i < count; ++i) {
      std::int64_t rest = i, place = 0;
      bool inside = true;
      for (std::size_t d = 0; d < map.box.size(); ++d) {
        const std::int64_t at = first[d] + rest % map.box[d] * map.steps[d];
        rest /= map.box[d];
        inside = inside && at >= 0 && at < map.extents[d];
        place += at * (d == 0 ? 1 : map.strides[d - 1]);
      }
      char* here = tile + swizzled(i * width);
      if (load && inside) std::memcpy(here, map.data + place * width, at(width));
      else if (load) std::memset(here, 0, at(width));
      else if (inside) std::memcpy(map.data + place * width, here, at(width));
    }
  }
  std::int64_t bytes() const {
    std::int64_t out = map.type.bytes();
    for (std::int64_t n : map.box) out *= n;
    return out;
  }
  static std::size_t at(std::int64_t n) { return static_cast<std::size_t>(n); }
};

}  // namespace

struct Token {
  std::int64_t count = 0, missing = 0, bytes = 0, phase = 0;
  bool announced = false;
  std::vector<Copy> late;
  void step() {
    if (missing == 0 && bytes == 0) ++phase, missing = count;
  }
};

/// A tile that threads stored, until another is stored there.
struct StoredTile {
  Reach reach;
  std::size_t group = 0;  // of 128 threads
  std::int64_t time = 0;  // of Group::clock
};

/// What points hand to the others of their row: the parts of one statement, in order.
struct Parts {
  std::vector<std::vector<float>> given;
  std::size_t taken = 0;
};

struct Tokens {
  std::unordered_map<const char*, Token> at;
  std::unordered_map<const Code*, std::unordered_map<std::size_t, Parts>> parts;  // by point
  std::int64_t copies = 0;
  std::vector<StoredTile> stored;
  std::vector<std::pair<const Frame*, Reach>> unfenced;  // stored since their thread's bulk_fence
};

std::shared_ptr<Tokens> make_tokens() { return std::make_shared<Tokens>(); }

namespace {

/// The address of an access, which may lie outside where only coordinates are meant.
char* address(Frame& fr, const Access& a) {
  return fr.views[at(a.view)].data + a.offset(fr) * a.buffer->dtype.total_bytes();
}

Tokens& tokens(Frame& fr) {
  if (!fr.group || !fr.group->tokens)
    fault(fr, "token", "a token has no meaning before the loops are joined into a launch");
  return *fr.group->tokens;
}

/// The address in another thread's memory, by this thread's indices.
char* address_beside(Frame& fr, Frame& other, const Access& a) {
  const View& w = other.views[at(a.view)];
  if (!w.data)
    fault(fr, "token", cat("a block of the cluster has no \"", a.buffer->name, "\" yet"));
  return w.data + a.offset(fr) * a.buffer->dtype.total_bytes();
}

Token& token_at(Frame& fr, const Access& a, const char* where) {
  auto found = tokens(fr).at.find(where);
  if (found == tokens(fr).at.end())
    fault(fr, "token", cat("an element of \"", a.buffer->name, "\" is no token yet"));
  return found->second;
}
Token& token(Frame& fr, const Access& a) {
  tokens(fr);
  return token_at(fr, a, address(fr, a));
}

char* tile(Frame& fr, const Access& a) {
  char* out = address(fr, a);
  if ((out - fr.views[at(a.view)].data) % 1024 != 0)
    fault(fr, "tile",
          cat("a tile begins ", out - fr.views[at(a.view)].data, " bytes into \"", a.buffer->name,
              "\", which is no multiple of 1024"));
  return out;
}

/// A reach beyond the view would touch other memory.
void inside(Frame& fr, const Access& a, const char* end) {
  const View& w = fr.views[at(a.view)];
  std::int64_t size = 1;
  for (std::size_t d = 0; d < a.buffer->ndim(); ++d) size += (w.shape[d] - 1) * w.strides[d];
  if (end > w.data + size * a.buffer->dtype.total_bytes())
    fault(fr, "bounds", cat("a tile reaches beyond the end of \"", a.buffer->name, "\""));
}

[[noreturn]] void race(Frame& fr, const char* what, const Reach& with, const char* other) {
  fault(fr, "race", cat(what, " meets \"", with.buffer->name, "\" while ", other));
}

/// Nothing that is in flight may read what is written now.
void expect_unread(Frame& fr, const Reach& w, const char* what) {
  for (const Frame& f : fr.group->frames) {
    for (const Started& s : f.started) {
      for (const Reach& r : s.reads) {
        if (r.meets(w)) race(fr, what, r, "work that nobody has waited for still reads it");
      }
    }
  }
}

/// No copy that is in flight may write what is read or written now.
void expect_landed(Frame& fr, const Reach& r, const char* what) {
  for (const auto& [at, t] : tokens(fr).at) {
    for (const Copy& c : t.late) {
      if (c.reach.meets(r)) race(fr, what, c.reach, "a copy into it is in flight");
    }
  }
}

/// What threads have stored is seen by copies and products only behind their fences.
void expect_fenced(Frame& fr, const Reach& r, const char* what) {
  for (const auto& [thread, w] : tokens(fr).unfenced) {
    if (w.meets(r)) race(fr, what, w, "no bulk_fence has followed a store to it");
  }
}

/// A tile of another warp group may be touched once this thread has met that one since.
void expect_met(Frame& fr, const Reach& r, const char* what) {
  for (const StoredTile& s : tokens(fr).stored) {
    if (s.reach.meets(r) && s.group != fr.thread / kGroup && fr.met < s.time)
      race(fr, what, s.reach, "another warp group has stored it and no barrier has followed");
  }
}

void store_tile(Frame& fr, const Reach& r) {
  expect_met(fr, r, "a tile that is stored");
  std::erase_if(tokens(fr).stored, [&](const StoredTile& s) { return s.reach.meets(r); });
  tokens(fr).stored.push_back({r, fr.thread / kGroup, ++fr.group->clock});
  tokens(fr).unfenced.emplace_back(&fr, r);
}

struct TokenCode : Code {
  const EvaluateNode* node = nullptr;
  enum class Op : std::uint8_t { init, signal, signal_in, expect } op = Op::signal;
  Access element;
  ExpPtr number;  // signals, the block of the cluster, bytes
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    const std::int64_t n = number ? number->i(fr) : 0;
    if (op == Op::init) {
      Token fresh;
      fresh.count = fresh.missing = n;
      if (n < 1) fault(fr, "token", cat("a token of ", n, " signals"));
      tokens(fr).at[address(fr, element)] = std::move(fresh);
      return;
    }
    tokens(fr);
    Token& t = op == Op::signal_in
                   ? token_at(fr, element, address_beside(fr, fr.group->beside(fr, n), element))
                   : token(fr, element);
    if (t.missing == 0)
      fault(fr, "token",
            cat("a signal beyond the ", t.count, " that a phase of \"", element.buffer->name,
                "\" takes"));
    if (op == Op::expect) t.bytes += n;
    --t.missing;
    t.step();
    // Whoever waits for the phase may go on before this thread does.
    if (fr.machine->turns != Machine::Turns::scattered && t.missing == t.count)
      fr.group->arrive(fr, this);
  }
  bool ready(Group&, std::size_t) const override { return true; }
  bool together() const override { return false; }
};

struct TokenWaitCode final : Code {
  const EvaluateNode* node = nullptr;
  Access element;
  ExpPtr parity;
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    fr.waited = &token(fr, element);
    fr.parity = parity->i(fr) & 1;
    while (!passed(fr)) fr.group->arrive(fr, this);
    fr.met = fr.group->clock;
  }
  bool ready(Group& g, std::size_t t) const override { return passed(g.frames[t]); }
  bool together() const override { return false; }
  static bool passed(Frame& fr) {
    Token& t = *fr.waited;
    if ((t.phase & 1) != fr.parity) return true;
    for (const Copy& c : std::exchange(t.late, {})) c.run(), t.bytes -= c.bytes();
    t.step();
    return (t.phase & 1) != fr.parity;
  }
};

struct MeetCode final : Code {
  const EvaluateNode* node = nullptr;
  ExpPtr which, count;
  void run(Frame& fr) const override {
    fr.current = node;
    if (!fr.group) fault(fr, "sync", "a barrier has no meaning before the loops are joined");
    fr.meeting = which->i(fr), fr.expected = count->i(fr);
    fr.group->arrive(fr, this);
    if (fr.expected > kGroup) fr.met = fr.group->clock;
  }
  bool together() const override { return false; }
  std::int64_t meeting(const Frame& fr) const override { return fr.meeting; }
};

/// cluster_meet
struct ClusterCode final : Code {
  const EvaluateNode* node = nullptr;
  void run(Frame& fr) const override {
    fr.current = node;
    if (!fr.group) fault(fr, "sync", "a barrier has no meaning before the loops are joined");
    fr.group->arrive(fr, this), fr.met = fr.group->clock;
  }
};

struct BulkCode final : Code {
  const EvaluateNode* node = nullptr;
  bool load = false;
  Access shared, element;  // element: of the token
  ExpPtr blocks;           // of the cluster that receive the box, as bits; null: this one
  ExpPtr map;              // explicit; else `array` with the box
  std::vector<ExpPtr> first;
  Access array;
  BulkBox box;
  void reads(Frame& fr, std::vector<Reach>& out) const override {
    if (load) return;
    std::int64_t bytes = shared.buffer->dtype.bytes();
    if (map) {
      for (std::int64_t n : reinterpret_cast<const TensorMap*>(map->i(fr))->box) bytes *= n;
    } else {
      for (std::int64_t n : box.extents) bytes *= n;
    }
    const char* first = address(fr, shared);
    out.push_back({first, first + bytes, shared.buffer});
  }
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    Copy c;
    c.load = load;
    if (map) {
      c.map = *reinterpret_cast<const TensorMap*>(map->i(fr));
      for (const ExpPtr& e : first) c.first.push_back(e->i(fr));
    } else {
      const View& w = fr.views[at(array.view)];
      c.map.data = w.data, c.map.type = array.buffer->dtype;
      for (std::size_t d = array.index.size(); d-- > 0;) {
        c.first.push_back(array.index[d]->i(fr));
        c.map.extents.push_back(w.shape[d]);
        c.map.box.push_back(box.extents[d]), c.map.steps.push_back(box.steps[d]);
        if (d + 1 < array.index.size()) c.map.strides.push_back(w.strides[d]);
      }
    }
    if (c.first.size() != c.map.box.size())
      fault(fr, "bulk",
            cat("a copy of an array of ", c.map.box.size(), " axes at ", c.first.size(),
                " coordinates"));
    if (c.map.box[0] * c.map.type.bytes() != 128)
      fault(fr, "bulk",
            cat("rows of a bulk copy are ", c.map.box[0] * c.map.type.bytes(),
                " bytes long; legal: 128"));
    c.dry = fr.machine->order_only;
    char* const own = tile(fr, shared);
    if (!blocks) return start(fr, std::move(c), fr, own);
    tokens(fr);
    auto rest = static_cast<std::uint64_t>(blocks->i(fr));
    for (std::int64_t b = 0; rest != 0; ++b, rest >>= 1) {
      if (rest % 2 == 0) continue;
      Frame& other = fr.group->beside(fr, b);
      start(fr, c, other, address_beside(fr, other, shared));
    }
  }
  /// Into the memory of `to`, a thread of this block or another.
  void start(Frame& fr, Copy c, Frame& to, char* tile) const {
    c.tile = tile;
    c.reach = {c.tile, c.tile + c.bytes(), shared.buffer};
    inside(to, shared, c.reach.end);
    if (fr.group && fr.group->tokens) expect_landed(fr, c.reach, "a bulk copy");
    if (!load) {
      if (fr.group && fr.group->tokens)
        expect_fenced(fr, c.reach, "a bulk copy"), expect_met(fr, c.reach, "a bulk copy");
      return c.run();
    }
    expect_unread(fr, c.reach, "a bulk copy");
    Token& t =
        &to == &fr ? token(fr, element) : token_at(fr, element, address_beside(fr, to, element));
    if (tokens(fr).copies++ % 2 == 0) {
      t.late.push_back(std::move(c));
    } else {
      c.run();
      t.bytes -= c.bytes();
      t.step();
    }
  }
};

/// Thread t of 128 holds rows t / 32 * 16 + t % 32 / 4 and 8 further, columns t % 4 * 2 and 1
/// further of every 8: element (j * 2 + h) * 2 + e of its own.
constexpr std::size_t kRow = 4;  // points that hold a row

/// Work for which the points of a row hand parts to each other.
struct RowCode : Code {
  Parts& parts(Group& g, std::size_t thread) const { return g.tokens->parts[this][thread]; }
  void give(Frame& fr, std::vector<float> part) const {
    tokens(fr);
    parts(*fr.group, fr.thread).given.push_back(std::move(part));
  }
  /// Waits for the others; the i-th point's part.
  std::array<const std::vector<float>*, kRow> take(Frame& fr) const {
    const std::size_t turn = parts(*fr.group, fr.thread).taken++, first = fr.thread / kRow * kRow;
    while (!complete(*fr.group, fr.thread, turn)) fr.group->arrive(fr, this);
    std::array<const std::vector<float>*, kRow> out{};
    for (std::size_t i = 0; i < kRow; ++i) out[i] = &parts(*fr.group, first + i).given[turn];
    return out;
  }
  bool complete(Group& g, std::size_t thread, std::size_t turn) const {
    const std::size_t first = thread / kRow * kRow;
    for (std::size_t i = 0; i < kRow; ++i)
      if (parts(g, first + i).given.size() <= turn) return false;
    return true;
  }
  bool ready(Group& g, std::size_t t) const override {
    return complete(g, t, parts(g, t).taken - 1);
  }
  bool together() const override { return false; }
};

/// tile_round and tile_rows.
struct SumsCode final : RowCode {
  const EvaluateNode* node = nullptr;
  Access to, from;
  std::int64_t columns = 0;
  bool rows = false, largest = false;
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    const auto* sums = reinterpret_cast<const float*>(address(fr, from));
    inside(fr, from, reinterpret_cast<const char*>(sums + columns / 2));
    char* out = address(fr, to);
    const DType type = to.buffer->dtype;
    inside(fr, to, out + (rows ? 2 : columns / 2) * type.bytes());
    Lane v;
    if (!rows) {
      for (std::int64_t i = 0; i < columns / 2; ++i)
        v.f = sums[i], write_element(out + i * type.bytes(), type, v);
      return;
    }
    std::vector<float> mine(2, largest ? -std::numeric_limits<float>::infinity() : 0.0f);
    for (std::int64_t i = 0; i < columns / 2; ++i) join(mine[at(i / 2 % 2)], sums[i]);
    give(fr, mine);
    const auto all = take(fr);
    for (std::size_t h = 0; h < 2; ++h) {
      float one = (*all[0])[h], two = (*all[2])[h];
      join(one, (*all[1])[h]), join(two, (*all[3])[h]), join(one, two);
      v.f = one;
      write_element(out + static_cast<std::int64_t>(h) * type.bytes(), type, v);
    }
  }
  void join(float& sum, float x) const { sum = largest ? std::fmax(sum, x) : sum + x; }
};

/// tile_add
struct TileAddCode final : Code {
  const EvaluateNode* node = nullptr;
  Access to, from;
  std::int64_t columns = 0;
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    const auto* sums = reinterpret_cast<const float*>(address(fr, from));
    inside(fr, from, reinterpret_cast<const char*>(sums + columns / 2));
    if (fr.machine->order_only) return;
    auto* out = reinterpret_cast<float*>(address(fr, to));
    inside(fr, to, reinterpret_cast<char*>(out + columns * kTile));
    const auto t = static_cast<std::int64_t>(fr.thread) % kGroup;
    for (std::int64_t i = 0; i < columns / 2; ++i) out[(i / 4 * kGroup + t) * 4 + i % 4] += sums[i];
  }
};

/// bulk_add
struct AddCode final : Code {
  const EvaluateNode* node = nullptr;
  Access to, from;
  ExpPtr count;
  void reads(Frame& fr, std::vector<Reach>& out) const override {
    const char* first = address(fr, from);
    out.push_back({first, first + count->i(fr) * 4, from.buffer});
  }
  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    const std::int64_t n = count->i(fr);
    const auto* numbers = reinterpret_cast<const float*>(address(fr, from));
    auto* out = reinterpret_cast<float*>(address(fr, to));
    inside(fr, from, reinterpret_cast<const char*>(numbers + n));
    if (fr.machine->order_only) return;
    inside(fr, to, reinterpret_cast<char*>(out + n));
    for (std::int64_t i = 0; i < n; ++i) out[i] += numbers[i];
  }
};

struct TileCode final : RowCode {
  const EvaluateNode* node = nullptr;
  bool store = false, turned = false;  // turned: a stored tile has a row for each column
  Access c, a, b;
  std::int64_t columns = kTile;
  bool a_along_m = false, b_along_n = false, held = false;  // held: a lies in local memory
  ExpPtr add;
  /// Where rows of b run along n, it may begin at any column of its first 64.
  std::int64_t column(Frame& fr) const {
    const std::int64_t bytes = (address(fr, b) - fr.views[at(b.view)].data) % 1024;
    return b_along_n && bytes < 128 && bytes % 32 == 0 ? bytes / 2 : 0;
  }
  std::int64_t reach(Frame& fr) const {
    return b_along_n ? (column(fr) + columns + kTile - 1) / kTile * kTile * 128 : columns * 128;
  }

  template <typename Each>
  static void each(Frame& fr, std::int64_t wide, Each&& visit) {
    const auto t = static_cast<std::int64_t>(fr.thread) % kGroup;
    for (std::int64_t j = 0; j < wide / 8; ++j)
      for (std::int64_t h = 0; h < 2; ++h)
        for (std::int64_t e = 0; e < 2; ++e)
          visit((j * 2 + h) * 2 + e, t / 32 * 16 + t % 32 / 4 + 8 * h, j * 8 + t % 4 * 2 + e);
  }

  void reads(Frame& fr, std::vector<Reach>& out) const override {
    if (store) return;
    const char *first = address(fr, a), *second = address(fr, b) - column(fr) * 2;
    out.push_back({second, second + reach(fr), b.buffer});
    if (!held) return out.push_back({first, first + kTile * 128, a.buffer});
    inside(fr, a, first + kTile);
    std::vector<float> part;
    for (std::int64_t i = 0; i < kTile / 2; ++i)
      part.push_back(static_cast<float>(read_element(first + i * 2, a.buffer->dtype).f));
    give(fr, std::move(part));
  }

  void run(Frame& fr) const override {
    fr.current = node;
    fr.machine->tick(node);
    const bool dry = fr.machine->order_only;
    auto* sums = reinterpret_cast<float*>(address(fr, c));
    inside(fr, c, reinterpret_cast<char*>(sums + columns / 2));
    char* from = held ? address(fr, a) : tile(fr, a);
    const DType type = a.buffer->dtype, by_type = b.buffer ? b.buffer->dtype : type;
    if (store) {
      const Reach to{from, from + columns * 128, a.buffer};
      inside(fr, a, to.end);
      if (fr.group && fr.group->tokens)
        expect_unread(fr, to, "a tile that is stored"),
            expect_landed(fr, to, "a tile that is stored"), store_tile(fr, to);
      if (dry) return;
      each(fr, columns, [&](std::int64_t i, std::int64_t row, std::int64_t column) {
        Lane v;
        v.f = sums[i];
        const std::int64_t place = turned ? column * kTile + row : row * kTile + column;
        write_element(from + swizzled(place * 2), type, v);
      });
      return;
    }
    if (!held) inside(fr, a, from + kTile * 128);
    const std::int64_t skipped = column(fr), bytes = reach(fr);
    char* by = skipped > 0 ? address(fr, b) - skipped * 2 : tile(fr, b);
    inside(fr, b, by + bytes);
    if (fr.group && fr.group->tokens) {
      if (!held) expect_landed(fr, {from, from + kTile * 128, a.buffer}, "a product");
      expect_landed(fr, {by, by + bytes, b.buffer}, "a product");
      if (!held) expect_fenced(fr, {from, from + kTile * 128, a.buffer}, "a product");
      expect_fenced(fr, {by, by + bytes, b.buffer}, "a product");
    }
    std::array<const std::vector<float>*, kRow> row_parts{};
    if (held) row_parts = take(fr);
    if (dry) return;
    const bool adds = add->i(fr) != 0;
    each(fr, columns, [&](std::int64_t i, std::int64_t row, std::int64_t n) {
      const std::int64_t column = n + skipped;
      float sum = adds ? sums[i] : 0.0f;
      const std::int64_t terms = 128 / by_type.bytes();  // of a row of 128 bytes
      for (std::int64_t k = 0; k < terms; ++k) {
        const std::int64_t x = a_along_m ? k * kTile + row : row * terms + k,
                           y = b_along_n ? (column / kTile * kTile + k) * kTile + column % kTile
                                         : column * terms + k;
        const float left =
            held ? (*row_parts[at(k % 8 / 2)])[at((k / 8 * 2 + row / 8 % 2) * 2 + k % 2)]
                 : static_cast<float>(read_element(from + swizzled(x * type.bytes()), type).f);
        sum +=
            left * static_cast<float>(read_element(by + swizzled(y * by_type.bytes()), by_type).f);
      }
      sums[i] = sum;
    });
  }
};

struct Hint final : Code {
  void run(Frame&) const override {}
};
struct FenceCode final : Code {
  void run(Frame& fr) const override {
    if (!fr.group || !fr.group->tokens) return;
    std::erase_if(fr.group->tokens->unfenced, [&](const auto& u) { return u.first == &fr; });
  }
};

struct TensorMapExp final : Exp {
  Access first;
  std::vector<ExpPtr> numbers;
  std::int64_t i(Frame& fr) const override {
    auto out = std::make_shared<TensorMap>();
    out->type = first.buffer->dtype;
    out->data = address(fr, first);
    const std::size_t rank = at(static_cast<int>(numbers[0]->i(fr)));
    WEFT_CHECK(numbers.size() == 4 * rank, "a tensor map of rank ", rank, " with ",
               numbers.size() - 1, " numbers");
    auto take = [&](std::size_t from, std::size_t count, std::vector<std::int64_t>& to) {
      for (std::size_t k = 0; k < count; ++k) to.push_back(numbers[from + k]->i(fr));
    };
    take(1, rank, out->extents), take(1 + rank, rank - 1, out->strides);
    take(2 * rank, rank, out->box), take(3 * rank, rank, out->steps);
    fr.machine->maps.push_back(out);
    return reinterpret_cast<std::int64_t>(out.get());
  }
};

}  // namespace

/// The access under an address_of.
Access Compiler::role_access(const Expr& e) {
  const auto* c = as<CallNode>(e);
  const auto* l = c && c->op == "address_of" ? as<LoadNode>(c->args[0]) : nullptr;
  if (!l) throw Error(ErrorKind::verify, "interpret.arity", "the address of an element is missing");
  return access(l->buffer, l->indices);
}

ExpPtr Compiler::tensor_map(const CallNode* e) {
  auto out = std::make_unique<TensorMapExp>();
  out->type = dtypes::int64;
  out->first = role_access(e->args[0]);
  for (std::size_t k = 1; k < e->args.size(); ++k) out->numbers.push_back(expr(e->args[k]));
  return out;
}

CodePtr Compiler::role(const EvaluateNode* s, const CallNode* c) {
  const std::string& op = c->op;
  if (op == "registers") return std::make_unique<Hint>();
  if (op == "bulk_fence") return std::make_unique<FenceCode>();
  if (op == "meet") {
    auto out = make<MeetCode>(s);
    out->which = expr(c->args[0]), out->count = expr(c->args[1]);
    return out;
  }
  if (op == "cluster_meet") return make<ClusterCode>(s);
  if (op == "token_wait") {
    auto out = make<TokenWaitCode>(s);
    out->element = role_access(c->args[0]);
    out->parity = expr(c->args[1]);
    return out;
  }
  if (op.starts_with("token_")) {
    auto out = make<TokenCode>(s);
    out->op = op == "token_init"        ? TokenCode::Op::init
              : op == "token_expect"    ? TokenCode::Op::expect
              : op == "token_signal_in" ? TokenCode::Op::signal_in
                                        : TokenCode::Op::signal;
    out->element = role_access(c->args[0]);
    if (c->args.size() > 1) out->number = expr(c->args[1]);
    return out;
  }
  if (op == "bulk_add") {
    auto out = make<AddCode>(s);
    out->to = role_access(c->args[0]), out->from = role_access(c->args[1]);
    out->count = expr(c->args[2]);
    return out;
  }
  if (op.starts_with("bulk_")) {
    auto out = make<BulkCode>(s);
    out->load = op.starts_with("bulk_load");
    if (op == "bulk_load_each") out->blocks = expr(c->args[3]);
    const Expr& far = c->args[out->load ? 1 : 0];
    out->shared = role_access(c->args[out->load ? 0 : 1]);
    if (out->load) out->element = role_access(c->args[2]);
    const std::size_t first = bulk_numbers(op);
    if (const auto* address = as<CallNode>(far); address && address->op == "address_of") {
      out->array = role_access(far);
      out->box = bulk_box(c, first, out->array.index.size());
    } else {
      out->map = expr(far);
      for (std::size_t k = first; k < c->args.size(); ++k) out->first.push_back(expr(c->args[k]));
    }
    return out;
  }
  if (op == "tile_round" || op == "tile_rows") {
    auto out = make<SumsCode>(s);
    out->rows = op == "tile_rows";
    out->to = role_access(c->args[0]), out->from = role_access(c->args[1]);
    std::int64_t largest = 0;
    if (!is_const_int(c->args[2], &out->columns) ||
        (out->rows && !is_const_int(c->args[3], &largest)))
      throw Error(ErrorKind::verify, "interpret.unsupported",
                  cat("the form of a ", op, " is known only at run time"));
    out->largest = largest != 0;
    return out;
  }
  if (op == "tile_add") {
    auto out = make<TileAddCode>(s);
    out->to = role_access(c->args[0]), out->from = role_access(c->args[1]);
    if (!is_const_int(c->args[2], &out->columns))
      throw Error(ErrorKind::verify, "interpret.unsupported",
                  cat("the form of a ", op, " is known only at run time"));
    return out;
  }
  if (op != "tile_multiply" && !op.starts_with("tile_store")) return nullptr;
  auto out = make<TileCode>(s);
  out->store = op.starts_with("tile_store"), out->turned = op == "tile_store_turned";
  out->c = role_access(c->args[out->store ? 1 : 0]);
  out->a = role_access(c->args[out->store ? 0 : 1]);
  if (out->turned && (!is_const_int(c->args[2], &out->columns) || out->columns % 16 ||
                      out->columns < 16 || out->columns > kTile))
    throw Error(ErrorKind::verify, "interpret.unsupported",
                cat("a ", op, " of other than 16, 32, 48 or 64 columns"));
  if (out->store) return out;
  out->b = role_access(c->args[2]);
  out->held = out->a.buffer->scope == "local";
  std::int64_t m = 0, n = 0;
  if (!is_const_int(c->args[3], &out->columns) || !is_const_int(c->args[4], &m) ||
      !is_const_int(c->args[5], &n))
    throw Error(ErrorKind::verify, "interpret.unsupported",
                cat("the form of a ", op, " is known only at run time"));
  out->a_along_m = m != 0, out->b_along_n = n != 0;
  out->add = expr(c->args[6]);
  return out;
}

}  // namespace weft::ir::interp
