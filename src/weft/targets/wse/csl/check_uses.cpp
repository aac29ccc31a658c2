// SPDX-License-Identifier: Apache-2.0
// What a program's parts say of each other: flags, destinations and elements of operations, lengths
// that differ, and queues, DSRs and tasks that something uses and nothing prepares.
#include <algorithm>
#include <array>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

/// A setting that is on or off; 1 and 0 stand for it, too.
bool Analyzer::flag_of(const Value& v, Pos pos, std::string_view what) {
  const bool number = v.defined() && v.type->is_any_int() && (v.i == 0 || v.i == 1);
  if (!v.defined() || (v.type->kind != T::bool_ && !number))
    fail(pos, "wse.csl.type.mismatch",
         cat(what, " is true or false, found ", v.defined() ? show(v) : std::string("nothing")));
  return v.i != 0;
}

/// What a route says as a whole, beyond each of its settings.
void Analyzer::check_route(const Value& config, const Route& route, Pos pos) {
  const Value* filter = field_of(config, "filter");
  const Filter& f = route.filter;
  if (filter && f.kind == Filter::none)
    fail(pos, "wse.csl.route.config", "a filter needs a kind: .kind = .{ .range = true }",
         "legal are range, counter and sparse_counter");
  if (f.kind == Filter::range && f.min_index > f.max_index)
    fail(pos, "wse.csl.route.config",
         cat("the filter lets nothing through: min_idx ", f.min_index, " is above max_idx ",
             f.max_index));
  int last = 0;
  for (int k = 1; k <= 3; ++k) {
    if (!route.positions[static_cast<std::size_t>(k - 1)].valid) continue;
    if (k > last + 1)
      fail(pos, "wse.csl.route.switch",
           cat("switch position pos", k, " is given and pos", k - 1, " is not"));
    last = k;
  }
  if (route.current > last)
    fail(pos, "wse.csl.route.switch",
         cat("current_switch_pos is ", route.current, ", and the positions given are 0..", last));
  if ((route.rx == 0 || route.tx == 0) && !route.teardown)
    warn(pos, "wse.csl.route.empty",
         cat("the color ", route.rx == 0 ? "receives from no direction" : "sends to no direction",
             "; .routes has .rx and .tx"));
}

/// A pointer as destination leads to a value of the operation's type.
void Analyzer::check_destination(const Operand& dst, TypeRef type, bool moves, Pos pos,
                                 std::string_view what) {
  if (!dst.type || dst.type->kind != T::pointer) return;
  TypeRef elem = dst.type->elem->kind == T::array ? dst.type->elem->elem : dst.type->elem;
  if (!elem->is_scalar()) return;
  const bool same = elem->size == type->size &&
                    (moves || !(elem->is_float() || type->is_float()) || elem == type);
  if (same) return;
  fail(pos, "wse.csl.dsd.operand",
       cat(what, " writes ", text(type), ", and the destination is a ", text(dst.type)),
       cat("give a variable of type ", text(type), ", or @ptrcast(*", text(type), ", p)"));
}

/// An array of floats under an operation of another type is hardly meant; integers may hold the
/// bits of anything.
void Analyzer::check_element(const Operand& op, TypeRef type, bool bits, Pos pos,
                             std::string_view what) {
  if (!op.type || (op.type->kind != T::mem1d_dsd && op.type->kind != T::mem4d_dsd)) return;
  TypeRef elem = element_of(op);
  if (elem && narrow(elem))
    fail(pos, "wse.csl.dsd.operand",
         cat(what, " works on elements of ", type->bits(),
             " bits, and the descriptor was made over ", text(elem)),
         "descriptors go over integers and floats of 16 and 32 bits");
  if (!elem || !elem->is_float()) return;
  if (type->is_float() ? elem == type : bits && elem->size == type->size) return;
  warn(pos, "wse.csl.dsd.element",
       cat(what, " takes ", text(type), " here, and the descriptor was made over elements of type ",
           text(elem)));
}

namespace {

/// Elements of a memory descriptor that is known; 0 where nothing can be said.
std::int64_t known_length(const Operand& op) {
  if (!op.is_known() || !op.value.obj ||
      (op.type->kind != T::mem1d_dsd && op.type->kind != T::mem4d_dsd))
    return 0;
  const Dsd& d = static_cast<DsdValue*>(op.value.obj.get())->dsd;
  std::int64_t n = 1;
  bool moves = false;
  for (std::size_t k = op.type->kind == T::mem1d_dsd ? 3 : 0; k < 4; ++k) {
    if (d.extent[k] == kUnboundedLength) return 0;
    n *= d.extent[k];
    moves = moves || (d.stride[k] != 0 && d.extent[k] > 0);
  }
  return moves ? n : 0;
}

}  // namespace

/// The first source that has a length sets that of the operation; a shorter operand is overrun.
void Analyzer::check_lengths(const std::vector<Operand>& args, std::size_t sources,
                             const std::vector<Node*>& nodes, std::string_view what) {
  std::array<std::size_t, 3> order{1, sources > 1 ? 2u : 0u, 0};
  std::int64_t length = 0;
  for (std::size_t k : order) {
    const Operand& op = args[k];
    if (op.type->kind == T::pointer || op.type->is_number() || op.type->kind == T::bool_) continue;
    if (op.type->kind != T::mem1d_dsd && op.type->kind != T::mem4d_dsd) return;
    const std::int64_t n = known_length(op);
    if (n == 0) return;
    if (length == 0) length = n;
    if (n < length)
      warn(nodes[k]->pos, "wse.csl.dsd.length",
           cat(what, " goes over ", length, " elements, as many as its first source has; this ",
               k == 0 ? "destination" : "source", " has ", n));
  }
}

void Analyzer::note_fabric_use(const Operand& op, Pos pos) {
  if (!op.is_known() || !op.value.obj ||
      (op.type->kind != T::fabin_dsd && op.type->kind != T::fabout_dsd))
    return;
  const Dsd& d = static_cast<DsdValue*>(op.value.obj.get())->dsd;
  program_->fabric_uses.push_back({op.type->kind == T::fabout_dsd, d.queue, d.color, pos});
}

/// In a comptime block: every task of the program is bound when this runs.
void Analyzer::need_bound_task(TaskSpace space, std::uint16_t id, Pos pos) {
  if (space != TaskSpace::local) return;
  for (const BoundTask& b : program_->tasks) {
    if (b.space == space && b.id == id) return;
  }
  fail(pos, "wse.csl.task.unbound", cat("no task is bound to local task id ", id));
}

/// A color of a PE has one configuration: the layout's or its program's.
void Analyzer::check_local_routes(std::size_t program) {
  if (program_->configured_colors.empty() || layout_->route_sets.size() < 2) return;
  auto& sets = layout_->route_sets_of_program;
  if (sets.empty()) {
    sets.resize(layout_->programs.size());
    for (std::size_t k = 0; k < layout_->tile_program.size(); ++k) {
      if (layout_->tile_program[k] && layout_->tile_routes[k])
        sets[layout_->tile_program[k] - 1].insert(layout_->tile_routes[k]);
    }
  }
  for (std::uint32_t set : sets[program]) {
    for (const ColorRoute& r : layout_->route_sets[set]) {
      auto found = program_->configured_colors.find(r.color);
      if (found == program_->configured_colors.end()) continue;
      report(found->second, "wse.csl.route.twice",
             cat("color ", r.color,
                 " is configured here and by @set_color_config in the layout, for a PE of this "
                 "program"));
      program_->broken = true;
      return;
    }
  }
}

/// What one program uses unprepared, another may prepare: programs of one file share code that
/// only some PEs run. What no program of the layout prepares is an error.
void Analyzer::fail_unless_prepared(std::pair<int, int> what, Pos pos, std::string_view code,
                                    std::string message, std::string note) {
  for (const Unprepared& u : unprepared_) {
    if (u.what == what) return;
  }
  unprepared_.push_back({what, pos, code, std::move(message), std::move(note)});
}

/// Once all programs are compiled.
void Analyzer::report_unprepared() {
  for (Unprepared& u : unprepared_) {
    if (prepared_.contains(u.what)) continue;
    Diagnostic& d = diagnostics_.add(Diagnostic::Level::error, u.pos, u.code, std::move(u.message));
    d.notes.push_back({std::move(u.note), Pos{0xffffffffu, 0, 1}});
  }
}

/// Once all code of a program is compiled.
void Analyzer::check_uses(std::size_t program) {
  check_local_routes(program);
  for (const auto& [file, index] : program_->dsrs_loaded)
    prepared_.insert({static_cast<int>(file), index});
  for (const DsrUse& use : program_->dsr_uses) {
    if (program_->dsrs_loaded.contains({use.file, use.index})) continue;
    fail_unless_prepared(
        {static_cast<int>(use.file), use.index}, use.pos, "wse.csl.dsr.unloaded",
        cat(basic_name(use.file), " ", use.index, " is used, and nothing loads it"),
        "call @load_to_dsr(register, descriptor) first");
  }
  if (program_->changes_queues) return;
  auto initialised = [&](bool output, int queue) -> const QueueInit* {
    for (const QueueInit& q : program_->out.queues) {
      if (q.output == output && q.queue == queue) return &q;
    }
    return nullptr;
  };
  if (options_.arch == Arch::wse2) {  // WSE-3 stops at such an operation when it comes to it
    std::set<std::pair<int, int>> told;
    for (const FabricUse& use : program_->fabric_uses) {
      const QueueInit* init = use.queue == kNone8 ? nullptr : initialised(use.output, use.queue);
      if (!init || init->color == kNone8 || use.color == kNone8 || init->color == use.color)
        continue;
      if (told.insert({use.queue + (use.output ? 8 : 0), use.color}).second)
        warn(use.pos, "wse.csl.queue.other_color",
             cat(use.output ? "output" : "input", " queue ", use.queue,
                 " was initialised with color ", init->color, "; the descriptor names color ",
                 use.color));
    }
    return;
  }
  constexpr int kQueue = -1;  // among the kinds of registers
  for (const QueueInit& q : program_->out.queues) {
    if (!q.output) prepared_.insert({kQueue, q.queue});
  }
  for (const BoundTask& task : program_->tasks) {
    if (!task.data || initialised(false, task.id)) continue;
    fail_unless_prepared({kQueue, task.id}, task.decl->node->pos, "wse.csl.queue.uninitialised",
                         cat("data task \"", name(task.decl->name), "\" waits for input queue ",
                             task.id, ", and nothing initialises it"),
                         cat("add to a comptime block: @initialize_queue(@get_input_queue(",
                             task.id, "), .{ .color = c });"));
  }
}

}  // namespace weft::wse::csl
