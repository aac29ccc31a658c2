// SPDX-License-Identifier: Apache-2.0
// What only our library modules call: mathematics, coordinates, the host's commands, printing, tile
// configuration; and the PE's random numbers.
#include <cmath>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

namespace {

struct MathRow {
  std::string_view name;
  MathFn fn;
  bool two;
};
constexpr MathRow kMath[] = {
    {"sqrt", MathFn::sqrt, false},        {"rsqrt", MathFn::rsqrt, false},
    {"inv", MathFn::inv, false},          {"sin", MathFn::sin, false},
    {"cos", MathFn::cos, false},          {"tan", MathFn::tan, false},
    {"asin", MathFn::asin, false},        {"acos", MathFn::acos, false},
    {"atan", MathFn::atan, false},        {"sinh", MathFn::sinh, false},
    {"cosh", MathFn::cosh, false},        {"tanh", MathFn::tanh, false},
    {"exp", MathFn::exp, false},          {"exp2", MathFn::exp2, false},
    {"log", MathFn::log, false},          {"log2", MathFn::log2, false},
    {"log10", MathFn::log10, false},      {"floor", MathFn::floor, false},
    {"ceil", MathFn::ceil, false},        {"round", MathFn::round, false},
    {"trunc", MathFn::trunc, false},      {"abs", MathFn::abs, false},
    {"sign", MathFn::sign, false},        {"is_nan", MathFn::is_nan, false},
    {"is_inf", MathFn::is_inf, false},    {"is_finite", MathFn::is_finite, false},
    {"erf", MathFn::erf, false},          {"cbrt", MathFn::cbrt, false},
    {"pow", MathFn::pow, true},           {"atan2", MathFn::atan2, true},
    {"fmin", MathFn::fmin, true},         {"fmax", MathFn::fmax, true},
    {"fscale", MathFn::fscale, true},     {"fmod", MathFn::fmod, true},
    {"copysign", MathFn::copysign, true}, {"sigmoid", MathFn::sigmoid, false},
};

double math_value(MathFn fn, double x, double y) {
  switch (fn) {
    case MathFn::sqrt: return std::sqrt(x);
    case MathFn::rsqrt: return 1 / std::sqrt(x);
    case MathFn::inv: return 1 / x;
    case MathFn::sin: return std::sin(x);
    case MathFn::cos: return std::cos(x);
    case MathFn::tan: return std::tan(x);
    case MathFn::asin: return std::asin(x);
    case MathFn::acos: return std::acos(x);
    case MathFn::atan: return std::atan(x);
    case MathFn::sinh: return std::sinh(x);
    case MathFn::cosh: return std::cosh(x);
    case MathFn::tanh: return std::tanh(x);
    case MathFn::exp: return std::exp(x);
    case MathFn::exp2: return std::exp2(x);
    case MathFn::log: return std::log(x);
    case MathFn::log2: return std::log2(x);
    case MathFn::log10: return std::log10(x);
    case MathFn::floor: return std::floor(x);
    case MathFn::ceil: return std::ceil(x);
    case MathFn::round: return std::nearbyint(x);
    case MathFn::trunc: return std::trunc(x);
    case MathFn::abs: return std::fabs(x);
    case MathFn::sign: return x > 0 ? 1 : x < 0 ? -1 : x;
    case MathFn::is_nan: return std::isnan(x);
    case MathFn::is_inf: return std::isinf(x);
    case MathFn::is_finite: return std::isfinite(x);
    case MathFn::erf: return std::erf(x);
    case MathFn::cbrt: return std::cbrt(x);
    case MathFn::sigmoid: return 1 / (1 + std::exp(-x));
    case MathFn::pow: return std::pow(x, y);
    case MathFn::atan2: return std::atan2(x, y);
    case MathFn::fmin: return std::fmin(x, y);
    case MathFn::fmax: return std::fmax(x, y);
    case MathFn::fscale:
      return std::scalbn(x, static_cast<int>(std::fmax(-100000, std::fmin(100000, y))));
    case MathFn::fmod: return std::fmod(x, y);
    case MathFn::copysign: return std::copysign(x, y);
  }
  return 0;
}

}  // namespace

Operand Analyzer::bi_weft_math(Node* node, TypeRef) {
  std::string n = string_arg(node, 0);
  const MathRow* row = nullptr;
  for (const MathRow& r : kMath) {
    if (r.name == n) row = &r;
  }
  if (!row || node->list.size() != (row->two ? 3u : 2u))
    fail(node->pos, "wse.csl.builtin.native", cat("no native function \"", n, "\""));
  Operand x = arg(node, 1), y = row->two ? arg(node, 2) : Operand();
  if (!x.type->is_any_float())
    fail(node->pos, "wse.csl.type.mismatch",
         cat(n, " takes a floating-point number, found ", text(x.type)));
  bool logical =
      row->fn == MathFn::is_nan || row->fn == MathFn::is_inf || row->fn == MathFn::is_finite;
  if (row->two && row->fn != MathFn::fscale) y = coerce(y, x.type, node->pos);
  if (row->fn == MathFn::fscale) y = coerce(y, types_.i16, node->pos);
  if (x.is_known() && (!row->two || y.is_known())) {
    double second =
        row->two ? (y.type->is_any_float() ? y.value.f : static_cast<double>(y.value.i)) : 0;
    double v = math_value(row->fn, x.value.f, second);
    return known_operand(logical ? make_bool(v != 0) : make_float(x.type, v));
  }
  need_runtime(node->pos, n);
  auto ty = static_cast<std::uint8_t>(bytecode_type(x.type));
  std::uint16_t r = kNoReg, source = kNoReg;
  if (row->two) {
    source = new_reg(node->pos);
    std::uint16_t second = new_reg(node->pos);
    x.temp = y.temp = false;
    to_reg_at(x, source, node->pos);
    to_reg_at(y, second, node->pos);
  } else {
    source = to_reg(x, node->pos);
  }
  r = new_reg(node->pos);
  emit({row->two ? Op::math2 : Op::math1, ty, r, source, static_cast<std::uint16_t>(row->fn)},
       node->pos);
  return in_reg(logical ? types_.bool_ : x.type, r);
}

Operand Analyzer::bi_weft_coordinate(Node* node, TypeRef) {
  need_runtime(node->pos, "a PE's coordinate");
  std::uint16_t r = new_reg(node->pos);
  emit(Insn::with_imm(Op::coord, static_cast<std::uint8_t>(Ty::u16), r,
                      static_cast<std::int32_t>(int_arg(node, 0, "the axis"))),
       node->pos);
  return in_reg(types_.u16, r);
}
Operand Analyzer::bi_weft_next_command(Node* node, TypeRef) {
  need_runtime(node->pos, "unblock_cmd_stream");
  emit({Op::nextcmd, 0, 0, 0, 0}, node->pos);
  return void_operand();
}
Operand Analyzer::bi_weft_is_int(Node* node, TypeRef) {
  return known_operand(make_bool(arg(node, 0).type->is_any_int()));
}
/// The bits of an integer type, those of signed ones from -1 down; 0x10000 for other types.
Operand Analyzer::bi_weft_int_bits(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  const int bits = !t->is_int() ? 0x10000 : t->is_signed() ? -1 - t->bits() : t->bits();
  return known_operand(make_int(types_.comptime_int, bits));
}
/// Of a type in the PE's memory: its bits, bytes or alignment in bytes.
Operand Analyzer::bi_weft_type_size(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  const std::string what = string_arg(node, 1);
  if (!t->runtime || t->size == 0)
    fail(node->list[0]->pos, "wse.csl.type.runtime",
         cat("type ", text(t), " has no size: it exists only at compile time"));
  const auto n = what == "bits"    ? static_cast<std::uint32_t>(t->bits())
                 : what == "bytes" ? t->size
                                   : t->align;
  return known_operand(make_int(types_.comptime_int, n));
}
Operand Analyzer::bi_weft_stream(Node* node, TypeRef) {
  Value c = known_arg(node, 0);
  bool to_device = known_arg(node, 1).i != 0;
  if (c.type->kind == T::void_) return void_operand();
  if (c.type->is_any_int()) {  // the number of one
    c.type = types_.get(T::color);
    result_.like_v2 = true;
  }
  HostStream s;
  s.color = static_cast<std::uint8_t>(color_of(c, node->pos));
  s.to_device = to_device;
  for (const HostStream& old : result_.layout.streams) {
    if (old.color == s.color && old.to_device == to_device) return void_operand();
  }
  result_.layout.streams.push_back(s);
  return void_operand();
}
Operand Analyzer::bi_weft_tsc_read(Node* node, TypeRef) {
  need_runtime(node->pos, "reading the cycle counter");
  std::uint16_t r = new_reg(node->pos);
  emit({Op::tscread, static_cast<std::uint8_t>(Ty::u64), r, 0, 0}, node->pos);
  return in_reg(types_.get(T::u64), r);
}
Operand Analyzer::bi_weft_tsc_control(Node* node, TypeRef) {
  need_runtime(node->pos, "controlling the cycle counter");
  emit(Insn::with_imm(Op::tscctl, 0, 0, static_cast<std::int32_t>(int_arg(node, 0, "the command"))),
       node->pos);
  return void_operand();
}
Operand Analyzer::bi_weft_print_text(Node* node, TypeRef) {
  need_runtime(node->pos, "printing");
  std::string s = string_arg(node, 0);
  std::size_t begin = 0;
  while (begin <= s.size()) {
    std::size_t end = s.find('\n', begin);
    std::string piece = s.substr(begin, end == std::string::npos ? std::string::npos : end - begin);
    if (!piece.empty()) {
      int index = string_index(piece);
      if (index > 0xffff) fail(node->pos, "wse.csl.emit.strings", "more than 65,536 strings");
      emit({Op::print, 0, 0, static_cast<std::uint16_t>(PrintKind::text),
            static_cast<std::uint16_t>(index)},
           node->pos);
    }
    if (end == std::string::npos) break;
    emit({Op::print, 0, 0, static_cast<std::uint16_t>(PrintKind::line), 0}, node->pos);
    begin = end + 1;
  }
  return void_operand();
}
Operand Analyzer::bi_weft_print(Node* node, TypeRef) {
  need_runtime(node->pos, "printing");
  std::string kind = string_arg(node, 0);
  PrintKind k = kind == "hex"         ? PrintKind::hex
                : kind == "binary"    ? PrintKind::binary
                : kind == "real"      ? PrintKind::real
                : kind == "character" ? PrintKind::character
                                      : PrintKind::decimal;
  Operand v = arg(node, 1);
  if (v.type->kind == T::comptime_int) v = coerce(v, types_.i32, node->pos);
  if (v.type->kind == T::comptime_float) v = coerce(v, types_.f32, node->pos);
  emit({Op::print, static_cast<std::uint8_t>(bytecode_type(v.type)), to_reg(v, node->pos),
        static_cast<std::uint16_t>(k), 0},
       node->pos);
  return void_operand();
}
Operand Analyzer::bi_weft_config(Node* node, TypeRef) {
  static constexpr std::string_view names[] = {"reset_routes",
                                               "clear_position",
                                               "invalidate_positions",
                                               "set_rx_position",
                                               "set_tx_position",
                                               "set_ring",
                                               "set_pop",
                                               "teardown_pending",
                                               "teardown_exit",
                                               "teardown_is_pending",
                                               "set_task_priority",
                                               "set_main_priority",
                                               "set_queue_color",
                                               "set_counter",
                                               "queue_empty",
                                               "teardown_enter",
                                               "get_register",
                                               "set_register",
                                               "filter_id",
                                               "set_filter",
                                               "flush",
                                               "flush_pending",
                                               "flush_exit",
                                               "set_timer",
                                               "timer_left",
                                               "change_route",
                                               "set_position",
                                               "queue_bits",
                                               "transform_mask"};
  std::string n = string_arg(node, 0);
  int fn = -1;
  for (std::size_t k = 0; k < std::size(names); ++k) {
    if (names[k] == n) fn = static_cast<int>(k);
  }
  if (fn < 0) fail(node->pos, "wse.csl.builtin.native", cat("no tile configuration \"", n, "\""));
  auto which = static_cast<ConfigFn>(fn);
  if (known() && (which == ConfigFn::set_task_priority || which == ConfigFn::set_main_priority ||
                  which == ConfigFn::transform_mask)) {
    need_program(node->pos, n);
    StartConfig c;
    c.fn = static_cast<std::uint8_t>(fn);
    for (std::size_t k = 1; k < node->list.size() && k <= c.args.size(); ++k)
      c.args[k - 1] = static_cast<std::uint32_t>(int_arg(node, k, n));
    program_->out.start_config.push_back(c);
    return void_operand();
  }
  need_runtime(node->pos, n);
  if (which == ConfigFn::set_queue_color || which == ConfigFn::queue_bits)
    program_->changes_queues = true;
  std::vector<Operand> args;
  for (std::size_t k = 1; k < node->list.size(); ++k) {
    Operand v = arg(node, k);
    if (v.type->kind == T::comptime_int) v = coerce(v, types_.u16, node->pos);
    args.push_back(v);
  }
  std::uint16_t first = b().next;
  for (Operand& v : args) {
    v.temp = false;
    to_reg_at(v, new_reg(node->pos), node->pos);
  }
  std::uint16_t r = new_reg(node->pos);
  emit({Op::config, static_cast<std::uint8_t>(Ty::u32), r, first, static_cast<std::uint16_t>(fn)},
       node->pos);
  return in_reg(types_.u32, r);
}
Operand Analyzer::bi_weft_string_id(Node* node, TypeRef) {
  need_program(node->pos, "a string in a trace");
  return known_operand(make_int(types_.u16, string_index(string_arg(node, 0))));
}
/// Messages leave on the first color and come on the second.
Operand Analyzer::bi_weft_post(Node* node, TypeRef) {
  need_program(node->pos, "the post");
  program_->out.post_out = static_cast<std::uint8_t>(color_of(known_arg(node, 0), node->pos));
  program_->out.post_in = static_cast<std::uint8_t>(color_of(known_arg(node, 1), node->pos));
  return void_operand();
}
/// Bytes of what a pointer leads to, of an array's elements.
Operand Analyzer::bi_weft_element_bytes(Node* node, TypeRef) {
  Operand p = arg(node, 0);
  if (!p.type || p.type->kind != T::pointer)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("expected a pointer, found ", text(p.type)));
  TypeRef t = p.type->elem->kind == T::array ? p.type->elem->elem : p.type->elem;
  return known_operand(make_int(types_.u16, t->size));
}
Operand Analyzer::bi_weft_error(Node* node, TypeRef) {
  fail(node->pos, "wse.csl.library.error", string_arg(node, 0));
}

// The local task that programs cannot name, for a library module that has none of its caller.
Operand Analyzer::bi_weft_own_task(Node*, TypeRef) {
  return known_operand(make_int(types_.get(T::local_task_id), 31));
}

Operand Analyzer::bi_random16(Node* node, TypeRef) {
  need_runtime(node->pos, "@random16");
  std::uint16_t r = new_reg(node->pos);
  emit({Op::random16, static_cast<std::uint8_t>(Ty::u16), r, 0, 0}, node->pos);
  return in_reg(types_.u16, r);
}
Operand Analyzer::bi_set_active_prng(Node* node, TypeRef) {
  need_runtime(node->pos, "@set_active_prng");
  Operand v = coerce(arg(node, 0), types_.u16, node->pos);
  emit({Op::setprng, 0, to_reg(v, node->pos), 0, 0}, node->pos);
  return void_operand();
}

}  // namespace weft::wse::csl
