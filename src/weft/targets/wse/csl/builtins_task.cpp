// SPDX-License-Identifier: Apache-2.0
// Built-ins about colors, queues and tasks.
#include <span>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {
namespace {
constexpr int kTeardownTask = 29;
}  // namespace

int Analyzer::color_of(const Value& v, Pos pos) {
  if (!v.defined() || v.type->kind != T::color)
    fail(pos, "wse.csl.type.mismatch", cat("expected a color, found ", text(v.type)),
         v.type && v.type->is_any_int() ? "@get_color(n) is color n" : "");
  if (v.i < 0 || v.i >= kColors)
    fail(pos, "wse.csl.id.range",
         cat("color ", to_text(v.i), " does not exist; legal are 0..", kColors - 1));
  return static_cast<int>(v.i);
}

Operand Analyzer::make_id(Node* node, T kind, int low, int high) {
  Operand v = arg(node, 0);
  TypeRef t = types_.get(kind);
  if (v.type == t) return v;
  if (!v.type || !v.type->is_any_int()) {
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@get_", basic_name(kind), " takes an integer, found ", text(v.type)));
  }
  if (v.is_known()) {
    if (v.value.i < low || v.value.i > high) {
      fail(node->list[0]->pos, "wse.csl.id.range",
           cat(basic_name(kind), " ", to_text(v.value.i), " does not exist on ",
               options_.arch == Arch::wse3 ? "WSE-3" : "WSE-2", "; legal are ", low, "..", high));
    }
    return known_operand(make_int(t, v.value.i));
  }
  if (kind == T::input_queue || kind == T::output_queue)
    need_known(v, node->pos, cat("the argument of @get_", basic_name(kind)));
  if (v.type != types_.u16)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("at run time @get_", basic_name(kind), " takes a u16, found ", text(v.type)),
         "convert it: @as(u16, value)");
  return in_reg(t, to_reg(v, node->pos));
}

Operand Analyzer::bi_get_color(Node* node, TypeRef) {
  return make_id(node, T::color, 0, kColors - 1);
}
Operand Analyzer::bi_get_input_queue(Node* node, TypeRef) {
  return make_id(node, T::input_queue, 0, 7);
}
Operand Analyzer::bi_get_output_queue(Node* node, TypeRef) {
  return make_id(node, T::output_queue, 0, options_.arch == Arch::wse3 ? 7 : 5);
}
Operand Analyzer::bi_get_ut_id(Node* node, TypeRef) { return make_id(node, T::ut_id, 0, 7); }
Operand Analyzer::bi_get_local_task_id(Node* node, TypeRef) {
  return make_id(node, T::local_task_id, options_.arch == Arch::wse3 ? 8 : 0, 30);
}
Operand Analyzer::bi_get_control_task_id(Node* node, TypeRef) {
  return make_id(node, T::control_task_id, 0, 63);
}

Operand Analyzer::bi_get_data_task_id(Node* node, TypeRef) {
  Operand v = arg(node, 0);
  TypeRef t = types_.get(T::data_task_id);
  T wanted = options_.arch == Arch::wse3 ? T::input_queue : T::color;
  if (!v.type || v.type->kind != wanted) {
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("on ", options_.arch == Arch::wse3 ? "WSE-3" : "WSE-2", " @get_data_task_id takes ",
             options_.arch == Arch::wse3 ? "an input_queue" : "a color", ", found ", text(v.type)));
  }
  if (!v.is_known()) return in_reg(t, to_reg(v, node->pos));
  return known_operand(make_int(t, v.value.i));
}

Operand Analyzer::bind_task(Node* node, T kind) {
  need_program(node->pos, "binding a task");
  if (!known()) fail(node->pos, "wse.csl.builtin.context", "tasks are bound in a comptime block");
  Value task = known_arg(node, 0), id = known_arg(node, 1);
  bind_task(node, task, node->list[0]->pos, id, node->list[1]->pos, kind);
  return void_operand();
}

void Analyzer::bind_task(Node* node, const Value& task, Pos task_pos, Value id, Pos id_pos,
                         T kind) {
  Pos pos = node->pos;
  bool callable = (task.type->kind == T::function || task.type->kind == T::fn) && task.p;
  if (!callable || !static_cast<const Decl*>(task.p)->node->has(kTask)) {
    fail(task_pos, "wse.csl.task.expected",
         cat("expected a task, found ",
             task.type->kind == T::function ? "a function" : text(task.type)));
  }
  if (kind == T::data_task_id && id.type->kind == T::color && options_.arch == Arch::wse2)
    id.type = types_.get(T::data_task_id);
  if (id.type->kind != kind) {
    fail(id_pos, "wse.csl.type.mismatch",
         cat("expected a ", basic_name(kind), ", found ", text(id.type)),
         id.type->is_any_int() ? cat("@get_", basic_name(kind), "(",
                                     kind == T::data_task_id ? "color or queue" : "n", ")")
                               : std::string());
  }
  Decl* d = static_cast<Decl*>(const_cast<void*>(task.p));
  BoundTask bound;
  bound.decl = d;
  bound.id = static_cast<std::uint16_t>(id.i);
  bound.data = kind == T::data_task_id;
  bound.space = kind == T::local_task_id      ? TaskSpace::local
                : kind == T::control_task_id  ? TaskSpace::control
                : options_.arch == Arch::wse3 ? TaskSpace::queue
                                              : TaskSpace::color;
  if (kind == T::local_task_id) warn_reserved(pos, "local task", bound.id, {27, 28, 30});
  if (kind == T::control_task_id)
    warn_reserved(pos, "control task", bound.id, {33, 34, 35, 36, 37});
  if (bound.space == TaskSpace::local && bound.id == kTeardownTask &&
      !program_->out.teardown_handlers.empty())
    fail(pos, "wse.csl.teardown.twice", "id 29 is that of teardowns, and a color has a handler",
         "handlers of colors, or one task for all of them");
  for (const BoundTask& old : program_->tasks) {
    if (old.space == bound.space && old.id == bound.id) {
      fail(pos, "wse.csl.task.bound",
           cat("id ", bound.id, " is already bound to task \"", name(old.decl->name), "\""));
    }
  }
  FunctionInstance* fn = plain_instance(d, pos);
  TaskBinding binding;
  binding.space = bound.space;
  binding.id = bound.id;
  binding.function = static_cast<std::uint16_t>(fn->index);
  int bits = 0;
  for (const FieldType& f : fn->type->fields) {
    if (!f.type->is_scalar())
      fail(pos, "wse.csl.task.arguments",
           cat("a task cannot take an argument of type ", text(f.type)));
    binding.args.push_back(bytecode_type(f.type));
    bits += f.type->bits();
    if (bound.data && f.type->bits() != 16 && f.type->bits() != 32 && f.type->bits() <= 32)
      fail(pos, "wse.csl.task.arguments",
           cat("an argument of data task \"", name(d->name), "\" is ", text(f.type),
               "; a wavelet holds one value of 32 bits or two of 16"));
  }
  if (kind == T::local_task_id && !binding.args.empty()) {
    fail(pos, "wse.csl.task.arguments",
         cat("local task \"", name(d->name), "\" cannot take arguments"));
  }
  if (bound.data) {
    if (binding.args.empty())
      fail(pos, "wse.csl.task.arguments",
           cat("data task \"", name(d->name), "\" needs an argument: the data of a wavelet"));
    if (bits > 32)
      fail(pos, "wse.csl.task.arguments",
           cat("the arguments of data task \"", name(d->name), "\" take ", bits,
               " bits; a wavelet has 32"));
  }
  if (fn->type->elem->kind != T::void_)
    fail(pos, "wse.csl.task.result",
         cat("task \"", name(d->name), "\" cannot return ", text(fn->type->elem)));
  program_->out.tasks.push_back(std::move(binding));
  program_->tasks.push_back(bound);
}

Operand Analyzer::bi_bind_local_task(Node* node, TypeRef) {
  return bind_task(node, T::local_task_id);
}
Operand Analyzer::bi_bind_data_task(Node* node, TypeRef) {
  return bind_task(node, T::data_task_id);
}
Operand Analyzer::bi_bind_control_task(Node* node, TypeRef) {
  return bind_task(node, T::control_task_id);
}

/// A data task of a queue, and the control task that starts instead of it at times: the one of
/// number 0 in the queue's table.
Operand Analyzer::bi_bind_rotating_tasks(Node* node, TypeRef) {
  need_wse3(node->pos, "@bind_rotating_tasks");
  need_program(node->pos, "binding a task");
  if (!known()) fail(node->pos, "wse.csl.builtin.context", "tasks are bound in a comptime block");
  bind_task(node, known_arg(node, 0), node->list[0]->pos, known_arg(node, 2), node->list[2]->pos,
            T::data_task_id);
  Value alt = known_arg(node, 1), config = known_arg(node, 3);
  const Pos pos = node->pos, alt_pos = node->list[1]->pos, config_pos = node->list[3]->pos;
  if (config.type->kind != T::struct_)
    fail(config_pos, "wse.csl.type.mismatch", cat("expected a struct, found ", text(config.type)));
  Rotation rotation;
  rotation.queue = static_cast<std::uint8_t>(known_arg(node, 2).i);
  bool limited = false;
  for (std::size_t k = 0; k < config.type->fields.size(); ++k) {
    const std::string& f = name(config.type->fields[k].name);
    const Value& v = aggregate(config).at(static_cast<std::int64_t>(k));
    if (f != "limit" && f != "init")
      fail(config_pos, "wse.csl.settings.unknown",
           cat("rotating tasks have no setting \"", f, "\""), "legal are limit and init");
    if (!v.type->is_any_int() || v.i < 0 || v.i > 0xffffffffu)
      fail(config_pos, "wse.csl.id.range",
           cat(f, " is a number from 0 to 2^32 - 1, found ", show(v)));
    (f == "limit" ? rotation.limit : rotation.init) = static_cast<std::uint32_t>(v.i);
    limited = limited || f == "limit";
  }
  if (!limited || rotation.init > rotation.limit)
    fail(config_pos, "wse.csl.task.rotation",
         limited ? cat("init is ", rotation.init, ", limit ", rotation.limit,
                       ": init may not exceed limit")
                 : std::string("rotating tasks need a .limit"));
  const std::size_t number = program_->out.rotations.size();
  if (number == 2)
    fail(pos, "wse.csl.task.rotation", "a PE has two pairs of rotating tasks; this is a third");
  program_->out.rotations.push_back(rotation);
  // The queue's table is known when all comptime blocks have run.
  program_->deferred.push_back([this, node, alt, alt_pos, number] {
    Rotation& r = program_->out.rotations[number];
    int table = 0;
    for (const QueueInit& q : program_->out.queues) {
      if (!q.output && q.queue == r.queue) table = q.control_table;
    }
    r.entry = static_cast<std::uint8_t>(table * program_->out.control_stride & 63);
    bind_task(node, alt, alt_pos, make_int(types_.get(T::control_task_id), r.entry), alt_pos,
              T::control_task_id);
  });
  return void_operand();
}

Analyzer::TaskRef Analyzer::task_ref(const Operand& op, Pos pos, bool) {
  TaskRef out;
  TypeRef t = op.type;
  if (op.is_known() && t && (t->kind == T::function || t->kind == T::fn) && op.value.p) {
    const Decl* d = static_cast<const Decl*>(op.value.p);
    for (const BoundTask& b : program_->tasks) {
      if (b.decl == d) {
        out.space = b.space;
        out.id = b.id;
        return out;
      }
    }
    fail(pos, "wse.csl.task.unbound", cat("\"", name(d->name), "\" is bound to no task id"));
  }
  const bool wse3 = options_.arch == Arch::wse3;
  if (t && (wse3 ? t->kind == T::color : t->kind == T::input_queue || t->kind == T::ut_id))
    fail(pos, "wse.csl.task.expected",
         cat("on WSE-", wse3 ? 3 : 2, " no task is known by a value of type ", text(t)),
         wse3 ? "wavelets are blocked by their input queue: legal are input_queue, data_task_id, "
                "local_task_id, ut_id and the name of a task"
              : "wavelets are blocked by their color: legal are color, data_task_id, "
                "local_task_id and the name of a task");
  switch (t ? t->kind : T::void_) {
    case T::local_task_id: out.space = TaskSpace::local; break;
    case T::control_task_id: out.space = TaskSpace::control; break;
    case T::data_task_id: out.space = wse3 ? TaskSpace::queue : TaskSpace::color; break;
    case T::color: out.space = TaskSpace::color; break;
    case T::input_queue: out.space = TaskSpace::queue; break;
    case T::ut_id: out.space = TaskSpace::microthread; break;
    default:
      fail(pos, "wse.csl.task.expected", cat("expected a task or a task id, found ", text(t)));
  }
  if (op.is_known()) {
    out.id = static_cast<std::uint16_t>(op.value.i);
  } else {
    out.known = false;
    out.reg = to_reg(op, pos);
  }
  return out;
}

Operand Analyzer::task_control(Node* node, Op known_op, Op reg_op) {
  need_program(node->pos, "activating and blocking");
  Operand v = arg(node, 0);
  Pos pos = node->pos;
  if (known_op == Op::activate && v.type && v.type->kind != T::local_task_id &&
      v.type->kind != T::function && v.type->kind != T::fn) {
    fail(node->list[0]->pos, "wse.csl.task.activate",
         cat("@activate takes a local task, found ", text(v.type)));
  }
  if (v.type && v.type->kind == T::control_task_id)
    fail(node->list[0]->pos, "wse.csl.task.activate",
         cat("a control task runs when its control wavelet comes; found ", text(v.type)),
         "@block and @unblock take the color (WSE-2) or the input queue (WSE-3) of the wavelets");
  if (known()) {
    program_->deferred.push_back([this, v, pos, known_op] {
      TaskRef t = task_ref(v, pos, true);
      TaskState* state = nullptr;
      for (TaskState& s : program_->out.states) {
        if (s.space == t.space && s.id == t.id) state = &s;
      }
      if (!state) {
        program_->out.states.push_back({t.space, t.id, false, false, false});
        state = &program_->out.states.back();
      }
      if (known_op == Op::activate) {
        need_bound_task(t.space, t.id, pos);
        state->active = true;
      }
      if (known_op == Op::block) state->blocked = true;
      if (known_op == Op::unblock) state->unblocked = true;
    });
    return void_operand();
  }
  TaskRef t = task_ref(v, pos, true);
  if (t.known) {
    emit(Insn::with_imm(known_op, static_cast<std::uint8_t>(t.space), 0, t.id), pos);
  } else {
    emit({reg_op, static_cast<std::uint8_t>(t.space), t.reg, 0, 0}, pos);
  }
  return void_operand();
}

Operand Analyzer::bi_activate(Node* node, TypeRef) {
  return task_control(node, Op::activate, Op::activater);
}
Operand Analyzer::bi_block(Node* node, TypeRef) {
  return task_control(node, Op::block, Op::blockr);
}
Operand Analyzer::bi_unblock(Node* node, TypeRef) {
  return task_control(node, Op::unblock, Op::unblockr);
}

Completion Analyzer::completion(const Operand& what, Completion::Kind kind, Pos pos,
                                std::uint16_t* reg) {
  TaskRef t = task_ref(what, pos, kind == Completion::unblock);
  if (!t.known && reg) *reg = t.reg;
  else if (!t.known)
    fail(pos, "wse.csl.comptime.runtime_value",
         "the task of an operation's completion must be known at compile time");
  if (kind == Completion::activate && t.space != TaskSpace::local) {
    fail(pos, "wse.csl.task.activate", "only a local task can be activated at completion");
  }
  Completion c;
  c.kind = kind;
  c.space = t.space;
  c.id = t.known ? t.id : kNone16;
  return c;
}

namespace {
Priority priority_of(const std::string& n) {
  return n == "high"     ? Priority::high
         : n == "medium" ? Priority::medium
         : n == "low"    ? Priority::low
                         : Priority::unset;
}
}  // namespace

/// `.priority = .{ .high = true }`.
Priority Analyzer::priority_from(const Value& v, Pos pos) {
  if (v.type->kind != T::struct_ || v.type->fields.size() != 1) {
    fail(pos, "wse.csl.settings.priority",
         "a priority is .{ .high = true }, .{ .medium = true } or .{ .low = true }");
  }
  const std::string& n = name(v.type->fields[0].name);
  Priority p = priority_of(n);
  if (p == Priority::unset)
    fail(pos, "wse.csl.settings.priority", cat("there is no priority \"", n, "\""));
  return flag_of(aggregate(v).at(0), pos, n) ? p : Priority::unset;
}

Operand Analyzer::bi_initialize_queue(Node* node, TypeRef) {
  need_program(node->pos, "@initialize_queue");
  if (!known())
    fail(node->pos, "wse.csl.builtin.context", "queues are initialised in a comptime block");
  Value q = known_arg(node, 0);
  Pos pos = node->pos;
  if (q.type->kind != T::input_queue && q.type->kind != T::output_queue) {
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("expected a queue, found ", text(q.type)));
  }
  QueueInit init;
  init.output = q.type->kind == T::output_queue;
  init.queue = static_cast<std::uint8_t>(q.i);
  if (node->list.size() > 1) {
    Value config = known_arg(node, 1);
    if (config.type->kind != T::struct_)
      fail(node->list[1]->pos, "wse.csl.type.mismatch",
           cat("expected a struct, found ", text(config.type)));
    for (std::size_t k = 0; k < config.type->fields.size(); ++k) {
      const std::string& f = name(config.type->fields[k].name);
      const Value& v = aggregate(config).at(static_cast<std::int64_t>(k));
      if (f == "color") init.color = static_cast<std::uint8_t>(color_of(v, node->list[1]->pos));
      else if (f == "priority") init.priority = priority_from(v, node->list[1]->pos);
      else if (f == "ctrl_table_id") {
        if (!v.type->is_any_int() || v.i < 0 || v.i > 7)
          fail(node->list[1]->pos, "wse.csl.id.range",
               cat("ctrl_table_id is an integer from 0 to 7, found ", show(v)));
        init.control_table = static_cast<std::uint8_t>(v.i);
      } else {
        fail(
            node->list[1]->pos, "wse.csl.settings.unknown",
            cat("@initialize_queue has no setting \"", f, "\""),
            f.starts_with("dense")
                ? "dense mode of SDK 2.10 is not built; legal are color, priority and ctrl_table_id"
                : "legal are color, priority and ctrl_table_id");
      }
    }
  }
  if (init.color == kNone8 && (!init.output || options_.arch == Arch::wse3)) {
    fail(pos, "wse.csl.queue.color",
         cat(init.output ? "output" : "input", " queue ", init.queue, " needs a .color"));
  }
  warn_reserved(pos, init.output ? "output queue" : "input queue", init.queue, {0});
  if (!init.output && options_.arch == Arch::wse3)
    warn_reserved(pos, "input queue", init.queue, {1});
  if (!program_->queues.insert({init.output, init.queue}).second) {
    fail(pos, "wse.csl.queue.twice",
         cat(init.output ? "output" : "input", " queue ", init.queue, " is initialised twice"));
  }
  for (const QueueInit& old : program_->out.queues) {
    if (!init.output && !old.output && old.color == init.color)
      fail(pos, "wse.csl.queue.shared",
           cat("input queue ", init.queue, " is given color ", init.color, ", which input queue ",
               old.queue, " takes already"));
  }
  program_->out.queues.push_back(init);
  return void_operand();
}

Operand Analyzer::bi_set_teardown_handler(Node* node, TypeRef) {
  need_program(node->pos, "@set_teardown_handler");
  Value fn = known_arg(node, 0), c = known_arg(node, 1);
  if ((fn.type->kind != T::function && fn.type->kind != T::fn) || !fn.p)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("expected a function, found ", text(fn.type)));
  FunctionInstance* f = plain_instance(static_cast<Decl*>(const_cast<void*>(fn.p)), node->pos);
  auto color = static_cast<std::uint8_t>(color_of(c, node->list[1]->pos));
  for (const BoundTask& t : program_->tasks) {
    if (t.space == TaskSpace::local && t.id == kTeardownTask)
      fail(node->pos, "wse.csl.teardown.twice",
           cat("task \"", name(t.decl->name), "\" is bound to id 29, that of teardowns"),
           "handlers of colors, or one task for all of them");
  }
  for (auto& [old, handler] : program_->out.teardown_handlers) {
    if (old == color)
      fail(node->pos, "wse.csl.teardown.twice",
           cat("color ", color, " already has a teardown handler"));
  }
  program_->out.teardown_handlers.push_back({color, static_cast<std::uint16_t>(f->index)});
  return void_operand();
}

// ---- routes ----

std::uint8_t Analyzer::port_set(const Value& v, Pos pos, bool out) {
  std::uint8_t bits = 0;
  if (v.type->is_any_int()) {  // constants of <directions>, combined with |
    only_in(Sdk::v2, pos, "a route as a bit vector", "name its directions, .{ EAST, RAMP }");
    const int shift = out ? 5 : 0;
    const Int128 legal = Int128{0x1f} << shift;
    if (v.i < 0 || (v.i & ~legal) != 0)
      fail(pos, "wse.csl.route.direction",
           cat("expected bits of ", out ? "TX_" : "RX_", " constants, found ", to_text(v.i)),
           cat("legal are ", out ? "TX_EAST" : "RX_EAST",
               " and so on of <directions>, combined "
               "with |"));
    return static_cast<std::uint8_t>(v.i >> shift);
  }
  auto add = [&](const Value& d) {
    if (d.type->kind != T::direction)
      fail(pos, "wse.csl.route.direction", cat("expected a direction, found ", text(d.type)));
    bits |= port_bit(static_cast<int>(d.i));
  };
  if (v.type->kind == T::direction) {
    add(v);
  } else if (v.type->is_aggregate() && v.obj) {
    for (std::int64_t k = 0; k < aggregate(v).count; ++k) add(aggregate(v).at(k));
  } else {
    fail(pos, "wse.csl.route.direction",
         cat("expected directions such as .{ EAST, RAMP }, found ", text(v.type)));
  }
  return bits;
}

bool Analyzer::route_from(const Value& config, Route& route, int color, Pos pos) {
  if (config.type->kind != T::struct_)
    fail(pos, "wse.csl.route.config",
         cat("a color's configuration is a struct, found ", text(config.type)));
  auto each = [&](const Value& s, auto&& take, std::string_view what, std::string_view legal) {
    if (s.type->kind != T::struct_)
      fail(pos, "wse.csl.route.config", cat(what, " is a struct, found ", text(s.type)));
    for (std::size_t k = 0; k < s.type->fields.size(); ++k) {
      const std::string& f = name(s.type->fields[k].name);
      if (!take(f, aggregate(s).at(static_cast<std::int64_t>(k)))) {
        fail(pos, "wse.csl.route.config", cat(what, " has no setting \"", f, "\""),
             cat("legal are ", legal));
      }
    }
  };
  auto number = [&](const Value& v, int high) {
    if (!v.type->is_any_int() && v.type->kind != T::bool_)
      fail(pos, "wse.csl.route.config", cat("expected an integer, found ", text(v.type)));
    if (v.i < 0 || v.i > high)
      fail(pos, "wse.csl.route.config", cat("expected 0..", high, ", found ", to_text(v.i)));
    return static_cast<std::uint16_t>(v.i);
  };
  /// One of several choices, each with a flag: .{ .always_pop = true }.
  auto choose = [&](const Value& v, auto& chosen, auto choices, std::string_view what,
                    std::string_view legal) {
    std::string before;
    each(
        v,
        [&](const std::string& g, const Value& w) {
          for (const auto& [label, choice] : choices) {
            if (g != label) continue;
            if (!flag_of(w, pos, g)) return true;
            if (!before.empty())
              fail(pos, "wse.csl.route.config",
                   cat(what, " is both ", before, " and ", g, "; it is one of ", legal));
            before = g;
            chosen = choice;
            return true;
          }
          return false;
        },
        what, legal);
  };
  auto pop_mode = [&](const Value& v) {
    static constexpr std::pair<std::string_view, PopMode> kModes[] = {
        {"no_pop", PopMode::none},
        {"always_pop", PopMode::always},
        {"pop_on_advance", PopMode::on_advance},
        {"pop_on_advance_nop", PopMode::on_advance_nop}};
    choose(v, route.pop, std::span(kModes), "pop_mode",
           "no_pop, always_pop, pop_on_advance and pop_on_advance_nop");
  };
  auto routes = [&](const std::string& f, const Value& v) {
    if (f == "rx") route.rx = port_set(v, pos, false);
    else if (f == "tx") route.tx = port_set(v, pos, true);
    else if (f == "color_swap_x") route.swap_x = flag_of(v, pos, f);
    else if (f == "color_swap_y") route.swap_y = flag_of(v, pos, f);
    else if (f == "pop_mode") pop_mode(v);  // where older programs have it
    else return false;
    return true;
  };
  auto switches = [&](const std::string& f, const Value& v) {
    if (f.size() == 4 && f.starts_with("pos") && f[3] >= '1' && f[3] <= '3') {
      SwitchPosition& p = route.positions[static_cast<std::size_t>(f[3] - '1')];
      each(
          v,
          [&](const std::string& g, const Value& w) {
            if (g == "rx") p.rx = port_set(w, pos, false), p.valid = true;
            else if (g == "tx") p.tx = port_set(w, pos, true), p.valid = true;
            else if (g == "invalid") p.valid = !flag_of(w, pos, g) && p.valid;
            else return false;
            return true;
          },
          cat("switch position ", f), "rx, tx and invalid");
      if (p.rx && p.tx && options_.arch == Arch::wse2) {
        fail(pos, "wse.csl.route.switch",
             cat("on WSE-2 ", f, " changes either rx or tx, not both"));
      }
    } else if (f == "current_switch_pos") {
      route.current = static_cast<std::uint8_t>(number(v, 3));
    } else if (f == "ring_mode") {
      route.ring = flag_of(v, pos, f);
    } else if (f == "pop_mode") {
      pop_mode(v);
    } else {
      return false;
    }
    return true;
  };
  auto filter = [&](const std::string& f, const Value& v) {
    Filter& g = route.filter;
    if (f == "kind") {
      static constexpr std::pair<std::string_view, Filter::Kind> kKinds[] = {
          {"range", Filter::range},
          {"counter", Filter::counter},
          {"sparse_counter", Filter::sparse_counter}};
      choose(v, g.kind, std::span(kKinds), "the kind of a filter",
             "range, counter and sparse_counter");
    } else if (f == "min_idx") g.min_index = number(v, 0xffff);
    else if (f == "max_idx") g.max_index = number(v, 0xffff);
    else if (f == "count_data") g.count_data = flag_of(v, pos, f);
    else if (f == "count_control") g.count_control = flag_of(v, pos, f);
    else if (f == "filter_control") g.filter_control = flag_of(v, pos, f);
    else if (f == "init_counter") g.init_counter = number(v, 0xffff);
    else if (f == "limit1") g.limit1 = number(v, 0xffff);
    else if (f == "limit2") g.limit2 = number(v, 0xffff);
    else if (f == "max_counter") g.max_counter = number(v, 0xffff);
    else if (f != "fast_mode") return false;
    return true;
  };
  each(
      config,
      [&](const std::string& f, const Value& v) {
        if (f == "routes") each(v, routes, "routes", "rx, tx, color_swap_x and color_swap_y");
        else if (f == "switches")
          each(v, switches, "switches", "pos1..pos3, current_switch_pos, ring_mode and pop_mode");
        else if (f == "filter")
          each(v, filter, "filter",
               "kind, min_idx, max_idx, count_data, count_control, init_counter, limit1, limit2, "
               "max_counter and filter_control");
        else if (f == "teardown") route.teardown = flag_of(v, pos, f);
        else return false;
        return true;
      },
      "a color's configuration", "routes, switches, filter and teardown");
  check_route(config, route, pos);
  if (options_.arch == Arch::wse3) {
    bool any = route.positions[0].valid || route.positions[1].valid || route.positions[2].valid;
    bool legal = color <= 9 || color == 12 || color == 13 || color == 16 || color == 17 ||
                 color == 20 || color == 21;
    if (any && !legal)
      fail(pos, "wse.csl.route.switch",
           cat("on WSE-3 color ", color,
               " has no switches; legal are 0..9, 12, 13, 16, 17, 20 and 21"));
    auto several = [](std::uint8_t bits) { return (bits & (bits - 1)) != 0; };
    bool wide = several(route.rx);
    for (const SwitchPosition& p : route.positions) wide = wide || (p.valid && several(p.rx));
    if (wide)
      fail(pos, "wse.csl.route.receive",
           "on WSE-3 a color receives from exactly one direction, in each switch position");
  }
  return true;
}

}  // namespace weft::wse::csl
