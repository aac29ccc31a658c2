// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "weft/base/hash.h"
#include "weft/base/text.h"
#include "weft/ir/atomic.h"
#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/text.h"
#include "weft/ir/visit.h"
#include "weft/pass/race_run.h"

namespace weft::pass::races {

using namespace ir;

// ---- what a statement uses

/// What evaluating an expression reads of watched memory.
void Run::find_reads(const Expr& e, const StmtNode* s, const Under& under,
                     std::vector<Access>& out) const {
  if (!e) return;
  auto all = [&](std::initializer_list<Expr> parts) {
    for (const Expr& part : parts) find_reads(part, s, under, out);
  };
  switch (e->kind) {
    case ExprKind::int_imm:
    case ExprKind::float_imm:
    case ExprKind::string_imm:
    case ExprKind::var: return;
    case ExprKind::cast: return all({as<CastNode>(e)->value});
    case ExprKind::not_: return all({as<NotNode>(e)->a});
    case ExprKind::broadcast: return all({as<BroadcastNode>(e)->value});
    case ExprKind::ramp: return all({as<RampNode>(e)->base, as<RampNode>(e)->stride});
    case ExprKind::select:
      return all({as<SelectNode>(e)->condition, as<SelectNode>(e)->a, as<SelectNode>(e)->b});
    case ExprKind::let: return all({as<LetNode>(e)->value, as<LetNode>(e)->body});
    case ExprKind::call: {
      const auto* c = as<CallNode>(e);
      if (c->op != "if_then_else") {
        for (const Expr& a : c->args) find_reads(a, s, under, out);
        return;
      }
      all({c->args[0]});
      for (bool arm : {true, false}) {
        Under inner = under;
        inner.emplace_back(c->args[0], arm);
        find_reads(c->args[arm ? 1 : 2], s, inner, out);
      }
      return;
    }
    case ExprKind::load: {
      const auto* l = as<LoadNode>(e);
      for (const Expr& i : l->indices) find_reads(i, s, under, out);
      if (watched(l->buffer.get()) && !l->indices.empty()) {
        Access a;
        a.buffer = l->buffer;
        a.index = l->indices[0];
        a.statement = s;
        a.under = under;
        out.push_back(std::move(a));
      }
      return;
    }
    default:
      if (is_binary(e->kind)) all({as<BinaryNode>(e)->a, as<BinaryNode>(e)->b});
  }
}

/// The accesses of a statement itself, without the statements inside it.
const std::vector<Access>& Run::accesses_of(const Stmt& s) {
  auto [it, fresh] = accesses_.try_emplace(s.get());
  if (!fresh) return it->second;
  std::vector<Access>& out = it->second;
  if (const auto* t = as<LetStmtNode>(s)) find_reads(t->value, s.get(), {}, out);
  if (const auto* t = as<IfNode>(s)) find_reads(t->condition, s.get(), {}, out);
  if (const auto* t = as<EvaluateNode>(s)) find_reads(t->value, s.get(), {}, out);
  if (const auto* t = as<ForNode>(s)) {
    find_reads(t->min, s.get(), {}, out);
    find_reads(t->extent, s.get(), {}, out);
  }
  if (const auto* t = as<StoreNode>(s)) {
    const CallNode* atomic = as_atomic(t);
    find_reads(atomic ? atomic->args[1] : t->value, s.get(), {}, out);
    for (const Expr& i : t->indices) find_reads(i, s.get(), {}, out);
    if (!watched(t->buffer.get()) || t->indices.empty()) return out;
    Access a;
    a.buffer = t->buffer;
    a.index = t->indices[0];
    a.stored = t->value;
    a.statement = s.get();
    if (atomic) a.atomic = atomic->op;
    a.local = is_local(t->value);
    for (Access& r : out) {
      const bool same = r.buffer == t->buffer && same_expr(r.index, a.index);
      a.adds = a.adds || (same && !atomic);
      r.adds = same && !atomic;
    }
    out.push_back(std::move(a));
  }
  return out;
}

bool Run::is_local(const Expr& e) const {
  bool found = false;
  for_each_expr(e, [&](const Expr& x) {
    if (const auto* l = as<LoadNode>(x))
      found = found || inside_.count(l->buffer.get()) || own_.count(l->buffer.get());
    if (const auto* v = as<VarNode>(x)) found = found || local_.count(v);
  });
  return found;
}

void Run::touch_all(const Stmt& s, const Points& active) {
  for (const Access& a : accesses_of(s)) {
    if (a.under.empty()) {
      touch(a, active);
      continue;
    }
    Points some = active;
    const bool before = certain_;
    for (const auto& [condition, arm] : a.under) {
      const Numbers v = values_.eval(condition, some);
      if (!v.all_known()) certain_ = false;
      Points kept;
      for (std::size_t i = 0; i < some.size(); ++i) {
        if (!v.known_at(i) || (v.at(i) != 0) == arm) kept.push_back(some[i]);
      }
      some = std::move(kept);
    }
    if (!some.empty()) touch(a, some);
    certain_ = before;
  }
}

// ---- elements

Run::Cell& Run::cell_of(Cells& cells, std::int64_t element) {
  const bool inside = element >= 0 && element < static_cast<std::int64_t>(cells.row.size());
  Cell& cell = inside ? cells.row[static_cast<std::size_t>(element)] : cells.others[element];
  if (cell.epoch != epoch_) {
    cell = {};
    cell.epoch = epoch_;
  }
  return cell;
}

void Run::touch(const Access& a, const Points& active) {
  const int lanes = a.index->dtype.lanes;
  const BufferNode* b = a.buffer.get();
  const bool crosses = crossings_.watches(b);
  // Where data decides whether it happens, only what adds to an element is sure to clash.
  const bool across = crosses && !token_ && (certain_ || a.adds || !a.atomic.empty());
  const bool in_cells = setup_.together && (!crosses || across);
  for (int lane = 0; lane < lanes; ++lane) {
    report_.accesses += static_cast<std::int64_t>(active.size());
    accesses_left_ -= static_cast<std::int64_t>(active.size());
    if (accesses_left_ < 0) throw Exhausted{};
    const Numbers at = values_.eval(a.index, active, lane);
    if (!at.all_known()) {
      if (a.atomic.empty()) unchecked(cat("an index of \"", a.buffer->name, "\" depends on data"));
    }
    Hashes written;
    if (a.stored) written = values_.signature(a.stored, active, lane, own_);
    // Several points may store one value at one element, so only values that differ are refused.
    const bool differs = !written.uniform || a.local || a.adds;
    if (!at.all_known() && (crosses || shared_by_group(b)) && a.stored && a.atomic.empty() &&
        differs && active.size() > 1)
      crossings_.blind(a, use(a.statement, active[0]), use(a.statement, active[1]));
    for (std::size_t i = 0; i < active.size(); ++i) {
      if (!at.known_at(i)) continue;
      const std::int64_t element = at.at(i);
      const auto p = static_cast<std::int32_t>(active[i]);
      const std::uint64_t value = a.stored ? written.at(i) : 0;
      if (in_cells) touch_cell(a, element, p, value);
      if (!across) continue;
      const std::int64_t group = setup_.group[static_cast<std::size_t>(p)];
      const std::uint64_t told =
          a.local ? hash_combine(value, static_cast<std::uint64_t>(group) + 1) : value;
      if (a.stored) crossings_.write(a, element, group, told, use(a.statement, p));
      else crossings_.read(a, element, group, use(a.statement, p));
    }
  }
}

void Run::touch_cell(const Access& a, std::int64_t element, std::int32_t p, std::uint64_t value) {
  const BufferNode* b = a.buffer.get();
  if (!in_flight_.empty()) check_flying(a, element, p);
  Cell& cell = cell_of(cells_[b], element);
  if (!a.stored) {
    if (cell.writer >= 0 && (cell.writers || cell.writer != p))
      race(b, element, cell.wrote, cell.writer, a.statement, p, "write/read");
    if (cell.reader >= 0 && cell.reader != p) {
      cell.readers = true;
      cell.other_reader = cell.reader;
    }
    cell.reader = p;
    cell.read = a.statement;
  } else if (token_) {  // lands at a wait; nobody may be using the element meanwhile
    if (cell.reader >= 0 && (cell.readers || cell.reader != p))
      race(b, element, cell.read, cell.reader, a.statement, p, "read/asynchronous write");
    if (cell.writer >= 0 && (cell.writers || cell.writer != p))
      race(b, element, cell.wrote, cell.writer, a.statement, p, "write/asynchronous write");
    in_flight_[b][element] = {p, a.statement};
    started_[{p, token_}].back().push_back({b, element, value, a.statement});
  } else {
    write(a, cell, element, p, value);
  }
}

void Run::check_flying(const Access& a, std::int64_t element, std::int32_t p) {
  auto flying = in_flight_.find(a.buffer.get());
  if (flying == in_flight_.end()) return;
  auto found = flying->second.find(element);
  if (found == flying->second.end() || (a.stored && token_ && found->second.first == p)) return;
  race(a.buffer.get(), element, found->second.second, found->second.first, a.statement, p,
       a.stored ? "asynchronous write/write" : "read before the copy was waited for");
}

void Run::write(const Access& a, Cell& cell, std::int64_t element, std::int32_t p,
                std::uint64_t value) {
  const BufferNode* b = a.buffer.get();
  if (cell.reader >= 0 && (cell.readers || cell.reader != p))
    race(b, element, cell.read, cell.reader == p ? cell.other_reader : cell.reader, a.statement, p,
         "read/write");
  const bool joins = !a.atomic.empty() && a.atomic == cell.atomic;
  if (cell.writer >= 0 && (cell.writers || cell.writer != p) && !joins) {
    if (value == cell.value && a.atomic.empty() && cell.atomic.empty()) ++report_.same_value_writes;
    else race(b, element, cell.wrote, cell.writer, a.statement, p, "write/write");
  }
  if (cell.writer >= 0 && cell.writer != p) cell.writers = true;
  cell.writer = p;
  cell.value = value;
  cell.wrote = a.statement;
  cell.atomic = a.atomic;
}

// ---- between groups

std::int64_t Crossings::add_points(const Setup& setup) {
  axes_ = setup.axes;
  const auto first = static_cast<std::int64_t>(places_.size());
  for (std::int64_t p = 0; p < setup.points(); ++p) {
    std::vector<std::int64_t> at;
    for (const auto& axis : setup.at) at.push_back(axis[static_cast<std::size_t>(p)]);
    places_.push_back(std::move(at));
  }
  return first;
}

Crossings::Cell& Crossings::cell(const BufferNode* b, std::int64_t element) {
  if (at_buffer_ != b) {
    at_ = &cells_[b];
    at_buffer_ = b;
  }
  return (*at_)[element];
}

bool Crossings::wrote(const BufferNode* b, std::int64_t element, std::int64_t group,
                      const Cell& cell) const {
  return cell.writer == group || (!also_.empty() && also_.count({b, element, group}) > 0) ||
         (partial && writers_.count({b, group}) > 0);
}

void Crossings::read(const Access& a, std::int64_t element, std::int64_t group, const Use& use) {
  const BufferNode* b = a.buffer.get();
  Cell& cell = this->cell(b, element);
  if (cell.writer >= 0) {  // reading back what the group itself has written is no exchange
    if (!wrote(b, element, group, cell)) race(b, element, cell.write, use, "write/read");
    return;
  }
  if (cell.reader >= 0 && cell.reader != group) {
    cell.readers = true;
    cell.other_read = cell.read;
  }
  cell.reader = group;
  cell.read = use;
}

void Crossings::write(const Access& a, std::int64_t element, std::int64_t group,
                      std::uint64_t value, const Use& use) {
  const BufferNode* b = a.buffer.get();
  Cell& cell = this->cell(b, element);
  if (const std::pair writer(b, group); writer != last_writer_) {
    writers_.insert(writer);
    last_writer_ = writer;
  }
  if (cell.reader >= 0 && (cell.readers || cell.reader != group))
    race(b, element, cell.reader != group ? cell.read : cell.other_read, use, "read/write");
  if (cell.writer >= 0 && cell.writer != group) {
    if (!a.atomic.empty() && a.atomic == cell.atomic) {
      also_.insert({b, element, group});
      return;
    }
    if (value != cell.value || !a.atomic.empty() || !cell.atomic.empty())
      race(b, element, cell.write, use, "write/write");
    else also_.insert({b, element, group});
    return;
  }
  cell.writer = group;
  cell.value = value;
  cell.write = use;
  cell.atomic = a.atomic;
}

void Crossings::blind(const Access& a, const Use& first, const Use& second) {
  race(a.buffer.get(), -1, first, second,
       a.adds ? "addition to an element that data chooses"
              : "store to an element that data chooses");
}

// ---- messages

std::string Crossings::text(const Use& use) const {
  std::string out;
  if (use.statement) {
    std::string line = print(Stmt(use.statement));
    line = line.substr(0, line.find('\n'));
    while (!line.empty() && line.back() == ' ') line.pop_back();
    if (line.size() > 160) line = line.substr(0, 157) + "...";
    out = cat("\"", line, "\"");
  }
  if (use.place < 0) return out.empty() ? "another point" : out + " by several points";
  std::string at;
  const auto& where = places_[static_cast<std::size_t>(use.place)];
  for (std::size_t i = 0; i < where.size(); ++i)
    at += cat(i ? ", " : "", axes_[i], " = ", where[i]);
  return cat(out, out.empty() ? "" : " ", "at ", at);
}

void Crossings::race(const BufferNode* buffer, std::int64_t element, const Use& first,
                     const Use& second, std::string what) {
  const std::string name = buffer ? buffer->name : "";
  for (const Race& r : report_.races) {
    if (r.kernel == kernel_ && r.buffer == name && r.what == what) return;
  }
  const auto* store = second.statement ? as<StoreNode>(Stmt(second.statement)) : nullptr;
  bool adds = false;
  if (store && store->buffer.get() == buffer) {
    for_each_expr(store->value, [&](const Expr& e) {
      const auto* l = as<LoadNode>(e);
      adds = adds || (l && l->buffer.get() == buffer);
    });
  }
  report_.races.push_back({kernel_, name, buffer ? buffer->scope : "", element, first.place,
                           second.place, std::move(what), text(first), text(second), adds});
}

Use Run::use(const StmtNode* s, std::int64_t point) const {
  return {s, point < 0 ? -1 : place_ + point};
}

void Run::race(const BufferNode* b, std::int64_t element, const StmtNode* first,
               std::int64_t first_point, const StmtNode* second, std::int64_t second_point,
               std::string what) {
  crossings_.race(b, element, use(first, first_point), use(second, second_point), std::move(what));
}

void Run::unchecked(std::string what) {
  std::string text = cat(setup_.name, ": ", what);
  auto& list = report_.unchecked;
  if (std::find(list.begin(), list.end(), text) == list.end()) list.push_back(std::move(text));
}

}  // namespace weft::pass::races
