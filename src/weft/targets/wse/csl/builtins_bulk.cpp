// SPDX-License-Identifier: Apache-2.0
// The DSD operations and @map.
#include <algorithm>
#include <utility>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

namespace {

wse::Operand make_operand(wse::Operand::Kind kind, std::uint16_t index) {
  wse::Operand o;
  o.kind = kind;
  o.index = index;
  return o;
}

DsrFile file_of(TypeRef t) {
  return t->kind == T::dsr_dest   ? DsrFile::dest
         : t->kind == T::dsr_src0 ? DsrFile::src0
                                  : DsrFile::src1;
}

}  // namespace

void Analyzer::check_reach(const Operand& op, std::int64_t bytes, Pos pos) {
  if (!op.is_known() || !op.value.obj ||
      (op.type->kind != T::mem1d_dsd && op.type->kind != T::mem4d_dsd))
    return;
  const auto& v = *static_cast<DsdValue*>(op.value.obj.get());
  if (!v.global || !v.global->type || (v.dsd.flags & Dsd::kIndexOffset)) return;
  std::int64_t low = static_cast<std::int16_t>(v.dsd.base), high = low;
  for (std::size_t k = op.type->kind == T::mem1d_dsd ? 3 : 0; k < 4; ++k) {
    if (v.dsd.extent[k] == 0 || v.dsd.extent[k] == kUnboundedLength) return;
    const std::int64_t span = v.dsd.stride[k] * bytes * (v.dsd.extent[k] - 1);
    (span < 0 ? low : high) += span;
  }
  const auto size = static_cast<std::int64_t>(v.global->type->size);
  if (low >= 0 && high + bytes <= size) return;
  warn(pos, "wse.csl.dsd.bounds",
       cat("the operand reaches elements ", low / bytes, "..", high / bytes, " of ", bytes,
           " bytes in ",
           v.global->name ? cat("\"", name(v.global->name), "\"") : std::string("a constant"),
           ", which holds ", size / bytes));
}

wse::Operand Analyzer::bulk_operand(Operand op, TypeRef scalar, bool is_dst, Pos pos,
                                    std::string_view what) {
  TypeRef t = op.type;
  if (t && t->is_dsd()) {
    if (is_dst && t->kind == T::fabin_dsd)
      fail(pos, "wse.csl.dsd.operand", "a fabin_dsd cannot be a destination");
    if (!is_dst && t->kind == T::fabout_dsd)
      fail(pos, "wse.csl.dsd.operand", "a fabout_dsd cannot be a source");
    note_fabric_use(op, pos);
    const bool constant = op.is_known();
    wse::Operand o = make_operand(wse::Operand::dsd, to_dreg(op, pos));
    o.loaded = constant && std::ranges::any_of(frame_->loops, [](const LoopLabel& l) {
                 return !l.is_block && !l.known && !l.unrolled;
               });
    return o;
  }
  if (t && t->kind == T::fifo)
    return make_operand(wse::Operand::fifo, static_cast<std::uint16_t>(op.value.i));
  if (t && t->is_dsr() && t->kind != T::xdsr) {
    wse::Operand o = make_operand(wse::Operand::dsr, static_cast<std::uint16_t>(op.value.i));
    o.file = file_of(t);
    if (is_dst && o.file == DsrFile::src1)
      fail(pos, "wse.csl.dsr.file", "a dsr_src1 cannot be a destination");
    program_->dsr_uses.push_back({t->kind, static_cast<int>(op.value.i), pos});
    return o;
  }
  if (is_dst) {
    if (!t || t->kind != T::pointer || t->elem->kind == T::fn)
      fail(pos, "wse.csl.dsd.operand",
           cat(what, " needs a descriptor, a DSR, a FIFO or a pointer as destination, found ",
               text(t)),
           t && t->kind == T::array ? "a descriptor of an array: @get_dsd(mem1d_dsd, .{ "
                                      ".base_address = &A, .extent = n })"
                                    : "");
    if (t->elem->kind == T::array && t->elem->count() > 1)
      fail(pos, "wse.csl.dsd.operand",
           cat(what, " writes one number through a pointer, found ", text(t)),
           "&A[0], or a descriptor of the array");
    if (t->is_const) fail(pos, "wse.csl.assign.constant", "the destination is constant");
    op.temp = false;
    return make_operand(wse::Operand::pointer, to_reg(op, pos));
  }
  if (!t) fail(pos, "wse.csl.dsd.operand", cat(what, ": a source has no value"));
  if (t->kind == T::comptime_int || t->kind == T::comptime_float)
    op = coerce(op, scalar, pos, what);
  if (!op.type->is_scalar() || op.type->kind == T::pointer || op.type->size != scalar->size) {
    const bool converts = op.type->is_number() && scalar->is_number();
    fail(pos, "wse.csl.dsd.operand",
         cat(what, " takes descriptors, DSRs, FIFOs and scalars of type ", text(scalar), ", found ",
             text(op.type)),
         converts ? cat("@as(", text(scalar), ", x) converts a number") : std::string());
  }
  if (scalar->is_float() && op.type != scalar) {
    fail(pos, "wse.csl.dsd.operand",
         cat(what, " takes scalars of type ", text(scalar), ", found ", text(op.type)),
         cat("@as(", text(scalar), ", x) converts a number, @bitcast(", text(scalar),
             ", x) takes its bits"));
  }
  // A move takes the bits of whatever has their number.
  if (!scalar->is_float() && op.type->is_float() && !what.starts_with("@mov")) {
    fail(pos, "wse.csl.dsd.operand",
         cat(what, " takes integers of ", scalar->bits(), " bits, found ", text(op.type)),
         cat("@as(", text(scalar), ", x) converts a number, @bitcast(", text(scalar),
             ", x) takes its bits"));
  }
  op.temp = false;
  return make_operand(wse::Operand::value, to_reg(op, pos));
}

namespace {

bool commutes(Bulk code) {
  switch (code) {
    case Bulk::add16:
    case Bulk::addc16:
    case Bulk::and16:
    case Bulk::or16:
    case Bulk::xor16:
    case Bulk::faddh:
    case Bulk::fadds:
    case Bulk::fmulh:
    case Bulk::fmuls:
    case Bulk::fmaxh:
    case Bulk::fmaxs: return true;
    default: return false;
  }
}

}  // namespace

Operand Analyzer::bulk(Node* node, TypeRef, Bulk code) {
  static constexpr BulkInfo rows[] = {
#define WEFT_WSE_BULK(name, d, s, n, k, w2, w3) {#name, d, s, n, k != 0, w2, w3},
#include "weft/targets/wse/bulk.def"
#undef WEFT_WSE_BULK
  };
  const BulkInfo& info = rows[static_cast<std::size_t>(code)];
  std::size_t fixed = 1u + info.sources + (info.scalar ? 1 : 0);
  std::string what = cat("@", info.name);
  Pos pos = node->pos;
  need_program(pos, what);
  need_runtime(pos, what);
  if (node->list.size() != fixed && node->list.size() != fixed + 1) {
    fail(pos, "wse.csl.builtin.arguments",
         cat(what, " takes ", fixed, " operands and optional settings, found ", node->list.size(),
             " arguments"));
  }
  TypeRef fp16 = types_.get(static_cast<T>(fp16_kind()));
  bool real = info.name[0] == 'f' || info.name.starts_with("xp");
  bool single = info.src_bytes == 4;
  TypeRef scalar = real ? (single ? types_.f32 : fp16) : single ? types_.u32 : types_.u16;
  if (info.name.starts_with("xp")) scalar = types_.u16;
  if (info.name == "mov16" || info.name == "mov32") scalar = single ? types_.u32 : types_.u16;
  BulkOp op;
  op.code = code;
  op.fp_bf16 = options_.fp16 == Ty::bf16;
  op.fp_cb16 = options_.fp16 == Ty::cb16;
  std::vector<Operand> args;
  for (std::size_t k = 0; k < fixed; ++k) {
    Operand v = arg(node, k);
    // Integer sources of integer operations may be negative literals.
    if (v.is_known() && v.type->kind == T::comptime_int && !scalar->is_float() && v.value.i < 0) {
      v = coerce(v, single ? types_.i32 : types_.i16, node->list[k]->pos);
    }
    args.push_back(std::move(v));
  }
  if (info.sources > 1 && args[1].type->kind == T::fifo)
    fail(node->list[1]->pos, "wse.csl.dsd.operand", cat("the first source of ", what, " is a FIFO"),
         "of two sources the second may be a FIFO, and only that");
  check_operands(info, args, node->list, what);
  check_reach(args[0], bulk_info(code).dst_bytes, node->list[0]->pos);
  for (std::size_t k = 0; k < info.sources; ++k) {
    const bool wide = k == 0 && (code == Bulk::faddhs || code == Bulk::fmachs);
    const bool narrow = k == 1 && code == Bulk::fscales;
    check_reach(args[k + 1],
                wide     ? 4
                : narrow ? 2
                         : bulk_info(code).src_bytes,
                node->list[k + 1]->pos);
  }
  op.dst = bulk_operand(args[0], scalar, true, node->list[0]->pos, what);
  op.src0 =
      bulk_operand(args[1], (info.name == "faddhs" || info.name == "fmachs") ? types_.f32 : scalar,
                   false, node->list[1]->pos, what);
  if (info.sources > 1) {
    TypeRef second = scalar;
    if (code == Bulk::fscaleh || code == Bulk::fscales || code == Bulk::sll16 ||
        code == Bulk::slr16 || code == Bulk::sar16)
      second = types_.i16;
    op.src1 = bulk_operand(args[2], second, false, node->list[2]->pos, what);
    const bool scales = code == Bulk::fscaleh || code == Bulk::fscales;  // one number by another
    if (op.src0.kind == wse::Operand::value && op.src1.kind == wse::Operand::value &&
        !(scales && op.dst.kind == wse::Operand::pointer))
      fail(pos, "wse.csl.dsd.operand",
           cat("at most one source of ", what, " is a scalar, and both are"),
           "compute with + - * / what needs no descriptor");
    // A sum into one number starts from the number among the sources, whichever it is.
    if (op.dst.kind == wse::Operand::pointer && op.src0.kind != wse::Operand::value &&
        op.src1.kind == wse::Operand::value && commutes(code))
      std::swap(op.src0, op.src1);
  }
  if (info.scalar) {
    op.scalar = bulk_operand(args[fixed - 1], scalar, false, node->list[fixed - 1]->pos, what);
    if (op.scalar.kind != wse::Operand::value)
      fail(node->list[fixed - 1]->pos, "wse.csl.dsd.operand",
           cat("the last operand of ", what, " is a scalar"));
  }
  if (options_.arch == Arch::wse3 && info.sources > 1 && args[1].type->kind == T::fabin_dsd &&
      args[2].type->kind == T::fabin_dsd) {
    fail(pos, "wse.csl.dsd.operand", "on WSE-3 an operation has at most one fabin_dsd operand",
         "stage the other one through a FIFO");
  }
  if (node->list.size() > fixed)
    parse_settings(arg(node, fixed), op.settings, &op.regs, node->list[fixed]->pos);
  if (op.settings.async) {
    bool fabric = false;
    for (const Operand& a : args)
      fabric = fabric || a.type->kind == T::fabin_dsd || a.type->kind == T::fabout_dsd ||
               a.type->is_dsr();
    if (!fabric)
      fail(pos, "wse.csl.settings.async", cat("an asynchronous ", what, " needs a fabric operand"));
  }
  program_->out.bulks.push_back(op);
  std::uint16_t r = new_reg(pos);
  emit(Insn::with_imm(Op::bulk, static_cast<std::uint8_t>(Ty::b1), r,
                      static_cast<std::int32_t>(program_->out.bulks.size() - 1)),
       pos);
  return in_reg(types_.bool_, r);
}

/// What the types and lengths of an operation's operands say.
void Analyzer::check_operands(const BulkInfo& info, const std::vector<Operand>& args,
                              const std::vector<Node*>& nodes, std::string_view what) {
  const std::string_view n = info.name;
  TypeRef fp16 = types_.get(static_cast<T>(fp16_kind()));
  auto type_of = [&](bool real, int bytes) {
    return bytes == 4 ? (real ? types_.f32 : types_.u32) : real ? fp16 : types_.u16;
  };
  const bool real = (n[0] == 'f' && !n.ends_with("xp16")) || n.starts_with("xp");
  const bool moves = n.starts_with("mov") || n.starts_with("fmov");
  const bool bits = n == "and16" || n == "or16" || n == "xor16" || n.starts_with("s");
  TypeRef dst = type_of(real, info.dst_bytes);
  check_destination(args[0], dst, moves, nodes[0]->pos, what);
  for (std::size_t k = 0; moves && k < 2; ++k) {  // moves take bits, but whole ones
    if (TypeRef e = element_of(args[k]); e && narrow(e))
      check_element(args[k], dst, true, nodes[k]->pos, what);
  }
  if (!moves) {
    check_element(args[0], dst, bits, nodes[0]->pos, what);
    TypeRef src = type_of(n[0] == 'f', info.src_bytes);
    for (std::size_t k = 0; k < info.sources; ++k) {
      const bool scale = k == 1 && n.starts_with("fscale");
      const bool wide = k == 0 && (n == "faddhs" || n == "fmachs");
      check_element(args[k + 1],
                    scale  ? types_.i16
                    : wide ? types_.f32
                           : src,
                    bits, nodes[k + 1]->pos, what);
    }
  }
  check_lengths(args, info.sources, nodes, what);
}

/// Drops the data wavelets of a fabin_dsd until a control wavelet comes.
Operand Analyzer::bi_dfilt(Node* node, TypeRef) {
  need_program(node->pos, "@dfilt");
  need_runtime(node->pos, "@dfilt");
  Pos pos = node->pos;
  Operand source = arg(node, 0);
  if (!source.type || source.type->kind != T::fabin_dsd)
    fail(node->list[0]->pos, "wse.csl.dsd.operand",
         cat("@dfilt takes a fabin_dsd, found ", text(source.type)));
  BulkOp op;
  op.code = Bulk::mov32;
  Operand endless = in_dreg(source.type, new_dreg(pos));
  to_dreg_at(source, endless.r, pos);
  std::uint16_t length = new_reg(pos);
  load_constant(length, kUnboundedLength, types_.u16, pos);
  emit({Op::dset, 0, endless.r, length, static_cast<std::uint16_t>(DsdField::length)}, pos);
  op.src0 = make_operand(wse::Operand::dsd, endless.r);
  Global* sink = anonymous_global(make_int(types_.u32, 0), false, pos);
  Value pointer;
  pointer.type = types_.pointer(types_.u32, false, false);
  pointer.p = sink;
  std::uint16_t where = to_new_reg(known_operand(pointer), pos);
  op.dst = make_operand(wse::Operand::pointer, where);
  if (node->list.size() > 1)
    parse_settings(arg(node, 1), op.settings, &op.regs, node->list[1]->pos);
  op.settings.terminate_on_control = true;
  program_->out.bulks.push_back(op);
  std::uint16_t r = new_reg(pos);
  emit(Insn::with_imm(Op::bulk, static_cast<std::uint8_t>(Ty::b1), r,
                      static_cast<std::int32_t>(program_->out.bulks.size() - 1)),
       pos);
  return in_reg(types_.bool_, r);
}

/// Type of the elements that a memory descriptor was made over; null when nothing tells.
TypeRef Analyzer::element_of(const Operand& op) const {
  const Value* v = op.is_known() ? &op.value : nullptr;
  if (op.where == Operand::memory && op.base == Operand::absolute && op.global)
    v = &op.global->init;  // a module's variable: what it began with
  if (!v || !v->defined() || !v->type || !v->type->is_dsd() || !v->obj) return nullptr;
  TypeRef t = static_cast<DsdValue*>(v->obj.get())->element;
  return t && t->is_scalar() ? t : nullptr;
}

Operand Analyzer::bi_map(Node* node, TypeRef) {
  need_runtime(node->pos, "@map");
  Pos pos = node->pos;
  Operand callee = arg(node, 0);
  if (!callee.is_known() || !callee.value.p ||
      (callee.type->kind != T::function && callee.type->kind != T::fn)) {
    fail(node->list[0]->pos, "wse.csl.map.function",
         cat("@map needs a function that is known at compile time, found ", text(callee.type)));
  }
  Decl* d = static_cast<Decl*>(const_cast<void*>(callee.value.p));
  if (d->node->has(kTask))
    fail(node->list[0]->pos, "wse.csl.call.task", "@map needs a function, not a task");
  std::size_t inputs = d->node->list.size();
  MapOp op;
  std::vector<Operand> args;
  std::vector<std::size_t> streams;
  auto check_count = [&](bool enough, std::string_view output) {
    if (enough) return;
    fail(pos, "wse.csl.builtin.arguments",
         cat("@map over \"", name(d->name), "\" takes the function, ", inputs, " input",
             inputs == 1 ? "" : "s", output, " and optional settings; found ", node->list.size(),
             " arguments"));
  };
  check_count(node->list.size() > inputs, "");
  // What comes element by element stands for a value of the parameter's declared type, or, of an
  // `anytype`, of the type of the array behind the descriptor; null where something else is passed.
  std::vector<Operand> sources(inputs);
  auto give = [&](std::size_t k, TypeRef declared) {
    Operand v = arg(node, 1 + k, declared);
    if (v.type->kind == T::fifo)
      fail(node->list[1 + k]->pos, "wse.csl.dsd.operand", "@map cannot take a FIFO",
           "move its elements into memory first: @fmovs(dsd, fifo)");
    bool stream = v.type->is_dsd() || v.type->is_dsr() || v.type->kind == T::fifo;
    bool cell = declared && declared->is_scalar() && v.type->kind == T::pointer &&
                declared->kind != T::pointer && v.type->elem == declared;
    if (!stream && !cell) return v;
    TypeRef t = declared ? declared : element_of(v);
    if (!t)
      fail(
          node->list[1 + k]->pos, "wse.csl.map.element",
          cat("the elements of this ", text(v.type), " have no type of their own, and parameter \"",
              name(d->node->list[k]->name), "\" is anytype"),
          "write the parameter's type");
    sources[k] = std::move(v);
    return in_reg(t, 0);
  };
  Signature sig = bind_each(d, inputs, nullptr, give, pos);
  TypeRef result = sig.result;
  bool has_out = result->kind != T::void_;
  std::size_t wanted = 1 + inputs + (has_out ? 1 : 0);
  check_count(node->list.size() == wanted || node->list.size() == wanted + 1,
              has_out ? ", an output" : "");
  if (node->list.size() > wanted) {
    const TypeRef last = arg(node, wanted).type;
    check_count(!last->is_dsd() && !last->is_dsr(), has_out ? ", an output" : "");
  }
  for (std::size_t k = 0; k < inputs; ++k) {
    TypeRef t = sig.types[k];
    Pos at = node->list[1 + k]->pos;
    bool stream = sources[k].type != nullptr;
    if (sig.known[k] && !stream) continue;  // part of the instance
    if (!t->is_scalar() || sig.known[k])
      fail(at, "wse.csl.map.parameter", cat("@map cannot pass a parameter of type ", text(t)));
    MapOp::In in;
    in.ty = bytecode_type(t);
    if (stream && sources[k].type->kind == T::pointer) {  // read anew for each element
      sources[k].temp = false;
      in.operand = make_operand(wse::Operand::pointer, to_reg(sources[k], pos));
    } else if (stream) {
      check_element(sources[k], t, false, at, "@map");
      in.operand = bulk_operand(sources[k], t, false, at, "@map");
    } else {
      sig.args[k].temp = false;
      in.operand = make_operand(wse::Operand::value, to_reg(sig.args[k], pos));
    }
    op.inputs.push_back(in);
  }
  if (has_out) {
    if (!result->is_scalar())
      fail(pos, "wse.csl.map.parameter", cat("@map cannot store a result of type ", text(result)));
    op.out_ty = bytecode_type(result);
    Operand out = arg(node, 1 + inputs);
    check_destination(out, result, false, node->list[1 + inputs]->pos, "@map");
    check_element(out, result, false, node->list[1 + inputs]->pos, "@map");
    op.out = bulk_operand(std::move(out), result, true, node->list[1 + inputs]->pos, "@map");
  }
  if (node->list.size() > wanted)
    parse_settings(arg(node, wanted), op.settings, nullptr, node->list[wanted]->pos);
  if (op.settings.async) fail(pos, "wse.csl.settings.async", "@map is synchronous");
  FunctionInstance* fn = instance(d, sig, pos);
  op.function = static_cast<std::uint16_t>(fn->index);
  op.window = b().next;
  b().calls.push_back({fn->index, {b().next, b().dnext}});
  new_reg(pos);
  program_->out.maps.push_back(op);
  emit(Insn::with_imm(Op::map, 0, 0, static_cast<std::int32_t>(program_->out.maps.size() - 1)),
       pos);
  return void_operand();
}

}  // namespace weft::wse::csl
