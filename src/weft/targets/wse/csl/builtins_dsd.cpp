// SPDX-License-Identifier: Apache-2.0
// Built-ins about descriptors and DSRs.
#include <algorithm>
#include <span>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {
namespace {

constexpr std::string_view kAccessBase = "base_address", kAccessOffset = "offset",
                           kAccessExtents = "extent", kAccessStrides = "stride";

}  // namespace

/// `|i, j|{n, m} -> A[...]`: a struct of pointer, offset, extents (outermost first) and true
/// strides in elements.
Operand Analyzer::eval_access(Node* node) {
  Pos pos = node->pos;
  if (node->a->kind != Kind::index)
    fail(node->a->pos, "wse.csl.dsd.access",
         "the right side of a tensor access is an indexed array: A[i]");
  std::size_t n = node->list.size();
  if (n > 4) fail(pos, "wse.csl.dsd.access", "a tensor access has at most 4 index variables");
  if (node->list2.size() != n) {
    fail(pos, "wse.csl.dsd.access",
         cat("a tensor access with ", n, " index variables needs ", n, " extents, found ",
             node->list2.size()));
  }
  std::vector<Operand> extents;
  for (Node* e : node->list2) {
    Operand v = eval(e);
    if (!v.type->is_any_int())
      fail(e->pos, "wse.csl.dsd.extent", cat("an extent must be an integer, found ", text(v.type)));
    if (v.is_known() && (v.value.i < 0 || v.value.i > 0xffff))
      fail(e->pos, "wse.csl.dsd.extent",
           cat("an extent must lie in 0..65535, found ", to_text(v.value.i)));
    if (!v.is_known())
      fail(e->pos, "wse.csl.dsd.access",
           cat("the length of a tensor access is known at compile time; this ", text(v.type),
               " exists only at run time"),
           "give .base_address and .extent, or set the length with @set_dsd_length");
    extents.push_back(std::move(v));
  }
  Place base = place(node->a->a);
  if (base.type->kind == T::pointer) {
    base = deref_place(load(base, pos), pos);
  } else if (base.type->kind != T::array) {
    fail(node->a->a->pos, "wse.csl.dsd.access",
         cat("a tensor access leads through an array or a pointer, found ", text(base.type)),
         "declare it as an array of one element, or give .base_address, .extent and .stride = 0");
  }
  TypeRef type = base.type;
  std::vector<std::int64_t> dims =
      type->kind == T::array ? type->dims : std::vector<std::int64_t>{1};
  TypeRef elem = type->kind == T::array ? type->elem : type;
  if (dims.size() != node->a->list.size()) {
    fail(node->a->pos, "wse.csl.index.rank",
         cat("expected ", dims.size(), dims.size() == 1 ? " index" : " indices", " into ",
             text(type), ", found ", node->a->list.size()));
  }
  Operand pointer = address_of(base, pos);
  if (pointer.is_known() && pointer.value.obj && !known()) {
    auto* cp = static_cast<CellPointer*>(pointer.value.obj.get());
    if (cp->path.empty()) {
      Value v;
      v.type = pointer.type;
      v.p = global_for_cell(*cp->cell, pos);
      pointer = known_operand(v);
    }
  }
  // The index is affine: its value at 0 and at the unit points gives it all; a further point
  // checks.
  auto linear_at = [&](const std::vector<std::int64_t>& at) {
    std::size_t mark = frame_->locals.size();
    for (std::size_t k = 0; k < n; ++k)
      declare(node->list[k]->name,
              place_of_operand(known_operand(make_int(types_.comptime_int, at[k]))), pos);
    Int128 linear = 0;
    try {
      for (std::size_t d = 0; d < dims.size(); ++d) {
        Value v = eval_known(node->a->list[d]);
        if (!v.type->is_any_int())
          fail(node->a->list[d]->pos, "wse.csl.index.type",
               cat("an index must be an integer, found ", text(v.type)));
        linear = linear * dims[d] + v.i;
        if (linear > 1'000'000'000 || linear < -1'000'000'000)
          fail(node->a->list[d]->pos, "wse.csl.dsd.access", "the index leaves the memory of a PE");
      }
    } catch (...) {
      frame_->locals.resize(mark);
      throw;
    }
    frame_->locals.resize(mark);
    return linear;
  };
  std::vector<std::int64_t> point(n, 0);
  Int128 offset = linear_at(point);
  std::vector<Int128> strides;
  Int128 expected = offset;
  for (std::size_t k = 0; k < n; ++k) {
    point[k] = 1;
    strides.push_back(linear_at(point) - offset);
    point[k] = 0;
    expected += strides.back() * static_cast<Int128>(k + 2);
  }
  for (std::size_t k = 0; k < n; ++k) point[k] = static_cast<std::int64_t>(k + 2);
  if (linear_at(point) != expected)
    fail(node->a->pos, "wse.csl.dsd.affine",
         "the index of a tensor access must be affine in its index variables");
  std::vector<FieldType> extent_types, stride_types;
  std::vector<Value> extent_values, stride_values;
  for (std::size_t k = 0; k < n; ++k) {
    extent_types.push_back({0, extents[k].type});
    extent_values.push_back(extents[k].value);
  }
  // Strides innermost first, each from the last element of the dimensions inside it.
  Int128 inside = 0;
  for (std::size_t k = n; k-- > 0;) {
    stride_types.push_back({0, types_.comptime_int});
    stride_values.push_back(make_int(types_.comptime_int, strides[k] - inside));
    if (k > 0) inside += (extents[k].value.i - 1) * strides[k];
  }
  Operand extent_tuple = known_operand(make_struct(extent_types, extent_values));
  Operand out;
  out.where = Operand::parts;
  pointer.type = types_.pointer(elem, true, true);
  if (pointer.is_known()) {
    pointer.value.type = pointer.type;
    if (pointer.value.obj && type->kind == T::array) {
      Ref<CellPointer> cp(new CellPointer(*static_cast<CellPointer*>(pointer.value.obj.get())));
      cp->path.push_back(0);
      pointer.value.obj = cp;
    }
  }
  Operand stride_tuple = known_operand(make_struct(stride_types, stride_values));
  out.type = types_.structure({{names_.intern(kAccessBase), pointer.type},
                               {names_.intern(kAccessOffset), types_.comptime_int},
                               {names_.intern(kAccessExtents), extent_tuple.type},
                               {names_.intern(kAccessStrides), stride_tuple.type}});
  out.fields = std::make_shared<std::vector<Operand>>(std::vector<Operand>{
      pointer, known_operand(make_int(types_.comptime_int, offset)), extent_tuple, stride_tuple});
  bool all_known = pointer.is_known() && extent_tuple.is_known();
  return all_known ? known_operand(need_known(out, pos, "a tensor access")) : out;
}

Operand Analyzer::dsd_from_fields(T kind, const Operand& fields, Pos pos) {
  if (!fields.type || fields.type->kind != T::struct_)
    fail(pos, "wse.csl.type.mismatch",
         cat("the properties of a descriptor are a struct, found ", text(fields.type)));
  Ref<DsdValue> value(new DsdValue);
  Dsd& d = value->dsd;
  bool memory = kind == T::mem1d_dsd || kind == T::mem4d_dsd || kind == T::circbuf_dsd;
  d.kind = kind == T::mem1d_dsd     ? DsdKind::mem1d
           : kind == T::mem4d_dsd   ? DsdKind::mem4d
           : kind == T::circbuf_dsd ? DsdKind::circbuf
           : kind == T::fabin_dsd   ? DsdKind::fabin
                                    : DsdKind::fabout;
  Int128 wraparound = 0, whole = 0;  // whole: elements of the array
  d.stride = {};
  Operand base, length, color, queue, runtime_offset, runtime_stride;
  std::int64_t elem_bytes = 2, offset = 0;
  bool has_base = false, has_extent = false, has_stride = false;
  std::vector<Int128> extents, delta_strides;
  auto set_flag = [&](const Operand& v, std::uint8_t flag) {
    if (flag_of(need_known(v, pos, "a descriptor's property"), pos, "a descriptor's property"))
      d.flags |= flag;
  };
  // .{ .simd_32 = true }: each name sets a flag.
  auto set_flags = [&](const Operand& v, const std::string& property,
                       std::span<const std::pair<std::string_view, std::uint8_t>> names) {
    Value mode = need_known(v, pos, property);
    std::vector<std::string> legal;
    for (const auto& [n, flag] : names) legal.emplace_back(n);
    if (mode.type->kind != T::struct_)
      fail(pos, "wse.csl.type.mismatch",
           cat(property, " is a struct such as .{ .", legal[0], " = true }, found ",
               text(mode.type)));
    for (std::size_t k = 0; k < mode.type->fields.size(); ++k) {
      const std::string& f = name(mode.type->fields[k].name);
      auto known_name =
          std::find_if(names.begin(), names.end(), [&](auto& row) { return row.first == f; });
      if (known_name == names.end())
        fail(pos, "wse.csl.settings.unknown", cat(property, " has no setting \"", f, "\""),
             cat("legal are ", join(legal)));
      if (flag_of(aggregate(mode).at(static_cast<std::int64_t>(k)), pos, f))
        d.flags |= known_name->second;
    }
  };
  auto integers = [&](const Operand& v, std::string_view what) {
    std::vector<Int128> out;
    Value known_value = need_known(v, pos, what);
    if (known_value.type->is_aggregate()) {
      for (std::int64_t k = 0; k < aggregate(known_value).count; ++k) {
        const Value& item = aggregate(known_value).at(k);
        if (!item.type->is_any_int())
          fail(pos, "wse.csl.type.mismatch",
               cat(what, " must be integers, found ", text(item.type)));
        out.push_back(item.i);
      }
    } else if (known_value.type->is_any_int()) {
      out.push_back(known_value.i);
    } else {
      fail(pos, "wse.csl.type.mismatch",
           cat(what, " must be an integer, found ", text(known_value.type)));
    }
    return out;
  };
  auto set_base = [&](Operand p) {
    if (p.type->kind != T::pointer)
      fail(pos, "wse.csl.dsd.base", cat("base_address is a pointer, found ", text(p.type)),
           "write &A");
    TypeRef elem = p.type->elem->kind == T::array ? p.type->elem->elem : p.type->elem;
    value->element = elem;
    elem_bytes = std::max<std::int64_t>(1, elem->size);
    if (p.type->elem->kind == T::array) whole = p.type->elem->count();
    base = std::move(p);
    has_base = true;
  };
  std::vector<std::string> seen;
  auto property = [&](const std::string& f, const Operand& v) {
    if (std::find(seen.begin(), seen.end(), f) != seen.end())
      fail(pos, "wse.csl.dsd.property", cat(basic_name(kind), " is given \"", f, "\" twice"),
           memory ? "tensor_access gives base_address, extent and stride by itself" : "");
    seen.push_back(f);
    if (f == "base_address" && memory) {
      set_base(v);
    } else if (f == "extent") {
      has_extent = true;
      if (kind == T::mem4d_dsd) {
        extents = integers(v, "the extents");
      } else if (v.type && v.type->is_aggregate() && memory) {
        if (v.type->fields.size() != 1)
          fail(pos, "wse.csl.dsd.access",
               cat("mem1d_dsd takes one index variable, found ", v.type->fields.size()),
               "use mem4d_dsd");
        length = part(v, 0, pos);
      } else {
        length = v;
      }
    } else if (f == "stride" && memory) {
      has_stride = true;
      if (kind == T::mem1d_dsd && v.type && v.type->is_any_int() && !v.is_known())
        runtime_stride = coerce(v, types_.i8, pos, "the stride");
      else delta_strides = integers(v, "a stride");
    } else if (f == "offset" && memory) {
      if (v.is_known())
        offset +=
            static_cast<std::int64_t>(need_known(coerce(v, types_.i16, pos), pos, "offset").i);
      else runtime_offset = coerce(v, types_.i16, pos);
    } else if (f == "wraparound" && kind == T::circbuf_dsd) {
      const std::vector<Int128> n = integers(v, "the wraparound");
      if (n.size() != 1 || n[0] < 1 || n[0] > 0xffff)
        fail(pos, "wse.csl.dsd.wraparound",
             cat("a circular buffer has 1 to 65535 elements, found ",
                 n.size() == 1 ? to_text(n[0]) : text(v.type)));
      wraparound = n[0];
    } else if (f == "wavelet_index_offset") {
      set_flag(v, Dsd::kIndexOffset);
    } else if (f == "fabric_color" && !memory) {
      color = v;
      if (color.type->kind != T::color)
        fail(pos, "wse.csl.type.mismatch",
             cat("fabric_color is a color, found ", text(color.type)));
      if (color.is_known()) d.color = static_cast<std::uint8_t>(color_of(color.value, pos));
    } else if ((f == "input_queue" && kind == T::fabin_dsd) ||
               (f == "output_queue" && kind == T::fabout_dsd)) {
      queue = v;
      if (queue.type->kind != (kind == T::fabin_dsd ? T::input_queue : T::output_queue))
        fail(pos, "wse.csl.type.mismatch", cat(f, " is an ", f, ", found ", text(queue.type)));
      if (queue.is_known()) d.queue = static_cast<std::uint8_t>(queue.value.i);
    } else if ((f == "control" && kind == T::fabout_dsd) ||
               (f == "weft_message" && kind == T::fabin_dsd)) {
      set_flag(v, Dsd::kControl);
    } else if (f == "advance_switch" && kind == T::fabout_dsd) {
      set_flag(v, Dsd::kAdvanceSwitch);
    } else if (f == "control_transform" && !memory) {
      set_flag(v, Dsd::kControlTransform);
    } else if (f == "simd_mode" && !memory) {
      static constexpr std::pair<std::string_view, std::uint8_t> kModes[] = {
          {"simd_32", Dsd::kSimd32},
          {"simd_32_or_64", Dsd::kSimd32},
          {"simd_64", Dsd::kSimd32},
          {"simd_max", Dsd::kSimd32},  // WSE-3, SDK 2.10
          {"simd_off", Dsd::kSimdOff}};
      set_flags(v, f, kModes);
    } else if (f == "zero" && kind == T::fabout_dsd) {
      static constexpr std::pair<std::string_view, std::uint8_t> kZeros[] = {
          {"first_source", Dsd::kZeroFirst}, {"second_source", Dsd::kZeroSecond}};
      set_flags(v, f, kZeros);
    } else if (f == "priority" && !memory) {
      d.priority = static_cast<std::uint8_t>(priority_from(need_known(v, pos, "a priority"), pos));
    } else {
      fail(pos, "wse.csl.dsd.property", cat(basic_name(kind), " has no property \"", f, "\""),
           memory ? "legal are tensor_access, base_address, extent, stride, offset and "
                    "wavelet_index_offset"
                  : "legal are extent, fabric_color, the queue, control, advance_switch, "
                    "wavelet_index_offset, simd_mode and priority");
    }
  };
  for (std::size_t k = 0; k < fields.type->fields.size(); ++k) {
    const std::string& f = name(fields.type->fields[k].name);
    Operand v = part(fields, k, pos);
    if (f == "tensor_access" && memory) {
      if (!v.type || v.type->kind != T::struct_)
        fail(pos, "wse.csl.dsd.access", "tensor_access needs the form |i|{n} -> A[i]");
      for (std::size_t j = 0; j < v.type->fields.size(); ++j) {
        const std::string& g = name(v.type->fields[j].name);
        if (g != kAccessBase && g != kAccessOffset && g != kAccessExtents && g != kAccessStrides)
          fail(pos, "wse.csl.dsd.access",
               cat("tensor_access has no property \"", g, "\", it needs the form |i|{n} -> A[i]"),
               "or a struct of base_address, extent, stride and offset");
        property(g, part(v, j, pos));
      }
    } else {
      property(f, v);
    }
  }
  if (memory && !has_base)
    fail(pos, "wse.csl.dsd.base", cat(basic_name(kind), " needs tensor_access or base_address"));
  if (!has_extent && !(memory && kind == T::mem1d_dsd && has_base))
    fail(pos, "wse.csl.dsd.extent", cat(basic_name(kind), " needs an extent"));
  if (kind == T::fabout_dsd && queue.where == Operand::nothing && options_.arch == Arch::wse3)
    fail(pos, "wse.csl.dsd.queue", "on WSE-3 fabout_dsd needs an output_queue",
         "add .output_queue = @get_output_queue(2), say, and give that queue its color with "
         "@initialize_queue");
  if (kind == T::mem4d_dsd) {
    std::size_t n = extents.size();
    if (n < 1 || n > 4)
      fail(pos, "wse.csl.dsd.extent", cat("mem4d_dsd has 1 to 4 dimensions, found ", n));
    std::vector<Int128> strides(n, 0);
    // Spelled innermost first, as the step from the last element of the dimensions inside.
    if (!has_stride) delta_strides.assign(n, 1);
    if (delta_strides.size() != n)
      fail(pos, "wse.csl.dsd.stride",
           cat("mem4d_dsd has ", n, " extents but ", delta_strides.size(), " strides"));
    Int128 inside = 0;
    for (std::size_t k = 0; k < n; ++k) {
      std::size_t dim = n - 1 - k;
      strides[dim] = delta_strides[k] + inside;
      inside += (extents[dim] - 1) * strides[dim];
    }
    for (std::size_t k = 0; k < n; ++k) {
      if (extents[k] < 0 || extents[k] > 0xffff)
        fail(pos, "wse.csl.dsd.extent",
             cat("an extent must lie in 0..65535, found ", to_text(extents[k])));
      d.extent[4 - n + k] = static_cast<std::uint16_t>(extents[k]);
      d.stride[4 - n + k] = static_cast<std::int16_t>(strides[k]);
    }
  } else if (kind == T::mem1d_dsd) {
    Int128 stride = delta_strides.empty() ? 1 : delta_strides[0];
    if (stride < -32768 || stride > 32767)
      fail(pos, "wse.csl.dsd.stride", cat("stride ", to_text(stride), " does not fit"));
    d.stride[3] = static_cast<std::int16_t>(stride);
  }
  if (kind == T::circbuf_dsd) {
    if (wraparound < 1) wraparound = whole;
    if (whole > 0 && wraparound > whole)
      fail(pos, "wse.csl.dsd.wraparound",
           cat("the circular buffer begins anew after ", to_text(wraparound),
               " elements, and the array has ", to_text(whole)));
    if (wraparound < 1)
      fail(pos, "wse.csl.dsd.wraparound",
           "circbuf_dsd needs wraparound where base_address does not point to an array");
    d.extent[2] = static_cast<std::uint16_t>(wraparound);
    d.stride[3] = 1;
  }
  bool runtime_length = false;
  if (kind != T::mem4d_dsd && length.where != Operand::nothing) {
    if (!length.type->is_any_int())
      fail(pos, "wse.csl.dsd.extent",
           cat("an extent must be an integer, found ", text(length.type)));
    if (length.is_known()) {
      if (length.value.i < 0 || length.value.i > 0xffff)
        fail(pos, "wse.csl.dsd.extent",
             cat("an extent must lie in 0..65535, found ", to_text(length.value.i)));
      d.extent[3] = static_cast<std::uint16_t>(length.value.i);
    } else {
      runtime_length = true;
    }
  }
  bool runtime_base = false;
  if (memory) {
    if (base.is_known()) {
      Value& p = base.value;
      if (p.obj) {
        auto* cp = static_cast<CellPointer*>(p.obj.get());
        value->global = global_for_cell(*cp->cell, pos);
        std::int64_t at = 0;
        for (std::int64_t k : cp->path) at += k * elem_bytes;
        d.base = static_cast<std::uint16_t>(at);
      } else {
        value->global = static_cast<Global*>(const_cast<void*>(p.p));
        d.base = static_cast<std::uint16_t>(p.i);
      }
      d.base = static_cast<std::uint16_t>(d.base + offset * elem_bytes);
    } else {
      runtime_base = true;
    }
  }
  bool runtime_color = !memory && color.where != Operand::nothing && !color.is_known();
  bool runtime_queue = queue.where != Operand::nothing && !queue.is_known();
  Value known_value;
  known_value.type = types_.get(kind);
  known_value.obj = value;
  if (!runtime_base && !runtime_length && !runtime_color && !runtime_queue &&
      runtime_offset.where == Operand::nothing && runtime_stride.where == Operand::nothing)
    return known_operand(known_value);
  need_runtime(pos, "a descriptor of run-time values");
  std::uint16_t r = new_dreg(pos);
  emit(Insn::with_imm(Op::dconst, 0, r, dsd_row(d, value->global)), pos);
  auto set = [&](DsdField field, const Operand& v) {
    emit({Op::dset, 0, r, to_reg(v, pos), static_cast<std::uint16_t>(field)}, pos);
  };
  if (runtime_base) {
    set(DsdField::base, base);
    if (offset) {
      std::uint16_t o = new_reg(pos);
      load_constant(o, static_cast<std::uint64_t>(offset), types_.i16, pos);
      emit({Op::dadd, 0, r, o, static_cast<std::uint16_t>(elem_bytes)}, pos);
    }
  }
  if (runtime_length) set(DsdField::length, length);
  if (runtime_color) set(DsdField::color, color);
  if (runtime_queue) set(DsdField::queue, queue);
  if (runtime_offset.where != Operand::nothing)
    emit({Op::dadd, 0, r, to_reg(runtime_offset, pos), static_cast<std::uint16_t>(elem_bytes)},
         pos);
  if (runtime_stride.where != Operand::nothing) set(DsdField::stride, runtime_stride);
  return in_dreg(types_.get(kind), r);
}

Operand Analyzer::bi_get_dsd(Node* node, TypeRef) {
  need_program(node->pos, "@get_dsd");
  TypeRef kind = type_arg(node, 0);
  if (!kind->is_dsd())
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@get_dsd makes descriptors, found ", text(kind)));
  return dsd_from_fields(kind->kind, arg(node, 1), node->pos);
}

namespace {
Value copy_dsd(const Value& v) {
  Value out = v;
  out.obj = Ref<DsdValue>(new DsdValue(*static_cast<DsdValue*>(v.obj.get())));
  return out;
}
DsdValue& dsd_of(Value& v) { return *static_cast<DsdValue*>(v.obj.get()); }
}  // namespace

Operand Analyzer::bi_set_dsd_length(Node* node, TypeRef) {
  Operand d = arg(node, 0);
  Operand n = coerce(arg(node, 1), types_.u16, node->list[1]->pos, "the length");
  if (!d.type->is_dsd() || d.type->kind == T::mem4d_dsd)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@set_dsd_length takes a one-dimensional descriptor, found ", text(d.type)));
  if (d.is_known() && n.is_known()) {
    Value v = copy_dsd(d.value);
    dsd_of(v).dsd.extent[3] = static_cast<std::uint16_t>(n.value.i);
    return known_operand(v);
  }
  std::uint16_t r = new_dreg(node->pos);
  to_dreg_at(d, r, node->pos);
  emit({Op::dset, 0, r, to_reg(n, node->pos), static_cast<std::uint16_t>(DsdField::length)},
       node->pos);
  return in_dreg(d.type, r);
}

Operand Analyzer::bi_set_dsd_base_addr(Node* node, TypeRef) {
  Operand d = arg(node, 0);
  if (d.type->kind != T::mem1d_dsd && d.type->kind != T::mem4d_dsd)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@set_dsd_base_addr takes a memory descriptor, found ", text(d.type)));
  Place p = place(node->list[1]);
  Operand base = p.type->kind == T::pointer ? load(p, node->pos) : address_of(p, node->pos);
  if (base.type->kind != T::pointer)
    fail(node->list[1]->pos, "wse.csl.dsd.base",
         cat("expected an array or a pointer, found ", text(base.type)));
  if (d.is_known() && base.is_known() && !base.value.obj) {
    Value v = copy_dsd(d.value);
    dsd_of(v).global = static_cast<Global*>(const_cast<void*>(base.value.p));
    dsd_of(v).dsd.base = static_cast<std::uint16_t>(base.value.i);
    TypeRef target = base.type->elem;
    dsd_of(v).element = target->kind == T::array ? target->elem : target;
    return known_operand(v);
  }
  std::uint16_t r = new_dreg(node->pos);
  to_dreg_at(d, r, node->pos);
  emit({Op::dset, 0, r, to_reg(base, node->pos), static_cast<std::uint16_t>(DsdField::base)},
       node->pos);
  return in_dreg(d.type, r);
}

Operand Analyzer::bi_set_dsd_stride(Node* node, TypeRef) {
  Operand d = arg(node, 0);
  if (d.type->kind != T::mem1d_dsd)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@set_dsd_stride takes a mem1d_dsd, found ", text(d.type)));
  Operand s = coerce(arg(node, 1), types_.i8, node->list[1]->pos, "the stride");
  if (d.is_known() && s.is_known()) {
    Value v = copy_dsd(d.value);
    dsd_of(v).dsd.stride[3] = static_cast<std::int16_t>(s.value.i);
    return known_operand(v);
  }
  std::uint16_t r = new_dreg(node->pos);
  to_dreg_at(d, r, node->pos);
  emit({Op::dset, 0, r, to_reg(s, node->pos), static_cast<std::uint16_t>(DsdField::stride)},
       node->pos);
  return in_dreg(d.type, r);
}

Operand Analyzer::bi_increment_dsd_offset(Node* node, TypeRef) {
  Operand d = arg(node, 0);
  TypeRef elem = type_arg(node, 2);
  Pos pos = node->pos;
  if (d.type->kind != T::mem1d_dsd && d.type->kind != T::mem4d_dsd)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@increment_dsd_offset takes a memory descriptor, found ", text(d.type)));
  Operand n = arg(node, 1);
  if (!n.type->is_any_int())
    fail(node->list[1]->pos, "wse.csl.type.mismatch",
         cat("the offset is an integer, found ", text(n.type)));
  if (n.is_known()) n = known_operand(make_int(types_.i16, wrap_to(types_.i16, n.value.i)));
  if (!elem->runtime || elem->size == 0)
    fail(node->list[2]->pos, "wse.csl.type.mismatch",
         cat("an offset cannot be counted in ", text(elem)));
  if (d.is_known() && n.is_known()) {
    Value v = copy_dsd(d.value);
    dsd_of(v).dsd.base = static_cast<std::uint16_t>(
        dsd_of(v).dsd.base + static_cast<int>(n.value.i) * static_cast<int>(elem->size));
    return known_operand(v);
  }
  std::uint16_t r = new_dreg(pos);
  to_dreg_at(d, r, pos);
  emit({Op::dadd, 0, r, to_reg(n, pos), static_cast<std::uint16_t>(elem->size)}, pos);
  return in_dreg(d.type, r);
}

Operand Analyzer::bi_get_dsr(Node* node, TypeRef) {
  TypeRef t = type_arg(node, 0);
  if (!t->is_dsr())
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("@get_dsr takes dsr_dest, dsr_src0 or dsr_src1, found ", text(t)));
  Int128 id = int_arg(node, 1, "the number of a DSR");
  if (id < 0 || id > 15)
    fail(node->list[1]->pos, "wse.csl.id.range",
         cat(text(t), " ", to_text(id), " does not exist; legal are 0..15"));
  return known_operand(make_int(t, id));
}
Operand Analyzer::bi_get_xdsr(Node* node, TypeRef) {
  Int128 id = int_arg(node, 0, "the number of an XDSR");
  if (id < 0 || id > 15)
    fail(node->list[0]->pos, "wse.csl.id.range",
         cat("xdsr ", to_text(id), " does not exist; legal are 0..15"));
  return known_operand(make_int(types_.get(T::xdsr), id));
}

/// `.{ .async = true, .activate = t, ... }`.
/// `regs` is null where nothing is computed at run time.
void Analyzer::parse_settings(const Operand& config, OpSettings& s, SettingRegs* regs, Pos pos) {
  if (config.type->kind != T::struct_)
    fail(pos, "wse.csl.type.mismatch",
         cat("the settings of an operation are a struct, found ", text(config.type)));
  for (std::size_t k = 0; k < config.type->fields.size(); ++k) {
    const std::string& f = name(config.type->fields[k].name);
    Operand v = part(config, k, pos);
    auto flag = [&] { return need_known(coerce(v, types_.bool_, pos, f), pos, f).i != 0; };
    if (f == "async") s.async = flag();
    else if (f == "save_address") s.save_address = flag();
    else if (f == "single_step") s.single_step = flag();
    else if (f == "activate" || f == "unblock") {
      if (s.done.kind != Completion::none)
        fail(pos, "wse.csl.settings.completion",
             "an operation has one of .activate and .unblock, not both");
      s.done = completion(v, f == "activate" ? Completion::activate : Completion::unblock, pos,
                          regs ? &regs->done : nullptr);
    } else if (f == "on_control") {
      if (!v.type || v.type->kind != T::struct_)
        fail(pos, "wse.csl.type.mismatch",
             cat("on_control is a struct such as .{ .terminate = true }, found ", text(v.type)));
      s.terminate_on_control = true;  // whatever else it does
      for (std::size_t j = 0; j < v.type->fields.size(); ++j) {
        const std::string& g = name(v.type->fields[j].name);
        Operand w = part(v, j, pos);
        std::uint16_t* reg = regs ? &regs->on_control : nullptr;
        if (g == "terminate") s.terminate_on_control = flag_of(need_known(w, pos, g), pos, g);
        else if (g == "activate") s.on_control = completion(w, Completion::activate, pos, reg);
        else if (g == "unblock") s.on_control = completion(w, Completion::unblock, pos, reg);
        else
          fail(pos, "wse.csl.settings.unknown", cat("on_control has no setting \"", g, "\""),
               "legal are terminate, activate and unblock");
      }
    } else if (f == "priority") {
      s.priority = priority_from(need_known(v, pos, f), pos);
    } else if (f == "index" && regs) {
      regs->index =
          to_reg(v.type->kind == T::comptime_int ? coerce(v, types_.u16, pos, "index") : v, pos);
    } else if (f == "ut_id") {
      if (options_.arch != Arch::wse3)
        fail(pos, "wse.csl.settings.ut_id", ".ut_id exists on WSE-3 only");
      Value id = need_known(v, pos, f);
      if (id.type->kind != T::ut_id)
        fail(pos, "wse.csl.type.mismatch", cat("ut_id is a ut_id, found ", text(id.type)));
      s.ut_id = static_cast<std::uint8_t>(id.i);
    } else {
      fail(pos, "wse.csl.settings.unknown", cat("an operation has no setting \"", f, "\""),
           "legal are async, activate, unblock, on_control, priority, index, ut_id, save_address "
           "and single_step");
    }
  }
  if (s.done.kind != Completion::none && !s.async && !s.save_address) {
    // Legal: a synchronous operation completes at once.
  }
}

Operand Analyzer::bi_get_sr(Node* node, TypeRef) {
  Int128 id = int_arg(node, 0, "the number of a stride register");
  if (id < 0 || id > 15)
    fail(node->list[0]->pos, "wse.csl.id.range",
         cat("sr ", to_text(id), " does not exist; legal are 0..15"));
  return known_operand(make_int(types_.get(T::sr), id));
}

Operand Analyzer::bi_load_to_dsr(Node* node, TypeRef) { return load_to_dsr(node, 1); }

// The extended and stride registers are given by the program; nothing else depends on their
// numbers here.
Operand Analyzer::bi_load_to_dsr_xdsr(Node* node, TypeRef) {
  expect_known(node, 1, T::xdsr);
  return load_to_dsr(node, 2);
}

Operand Analyzer::bi_load_to_dsr_xdsr_sr(Node* node, TypeRef) {
  expect_known(node, 1, T::xdsr);
  Value strides = known_arg(node, 2);
  if (!strides.type->is_aggregate() || !strides.obj || aggregate(strides).count > 3)
    fail(node->list[2]->pos, "wse.csl.type.mismatch",
         cat("expected up to three stride registers, found ", text(strides.type)),
         "write .{ sr1, sr2, sr3 }");
  for (std::int64_t k = 0; k < aggregate(strides).count; ++k) {
    if (aggregate(strides).at(k).type->kind != T::sr)
      fail(node->list[2]->pos, "wse.csl.type.mismatch",
           cat("expected stride registers, found ", text(aggregate(strides).at(k).type)));
  }
  return load_to_dsr(node, 3);
}

void Analyzer::expect_known(Node* node, std::size_t k, T kind) {
  Value v = known_arg(node, k);
  if (v.type->kind != kind)
    fail(node->list[k]->pos, "wse.csl.type.mismatch",
         cat("expected ", text(types_.get(kind)), ", found ", text(v.type)));
}

/// Argument `at` is the descriptor, the one after it its settings.
Operand Analyzer::load_to_dsr(Node* node, std::size_t at) {
  need_program(node->pos, "@load_to_dsr");
  Value dsr = known_arg(node, 0);
  if (!dsr.type->is_dsr() || dsr.type->kind == T::xdsr)
    fail(node->list[0]->pos, "wse.csl.type.mismatch",
         cat("expected a DSR, found ", text(dsr.type)));
  Operand d = arg(node, at);
  if (!d.type->is_dsd() && d.type->kind != T::fifo)
    fail(node->list[at]->pos, "wse.csl.type.mismatch",
         cat("expected a descriptor, found ", text(d.type)));
  if (d.type->kind == T::fabin_dsd && dsr.type->kind == T::dsr_dest)
    fail(node->pos, "wse.csl.dsr.file", "a fabin_dsd cannot be loaded into a dsr_dest");
  if (d.type->kind == T::fabout_dsd && dsr.type->kind != T::dsr_dest)
    fail(node->pos, "wse.csl.dsr.file", "a fabout_dsd can be loaded into a dsr_dest only");
  note_fabric_use(d, node->list[at]->pos);
  program_->dsrs_loaded.insert({dsr.type->kind, static_cast<int>(dsr.i)});
  DsrLoad load;
  load.file = dsr.type->kind == T::dsr_dest   ? DsrFile::dest
              : dsr.type->kind == T::dsr_src0 ? DsrFile::src0
                                              : DsrFile::src1;
  load.index = static_cast<std::uint8_t>(dsr.i);
  Operand config;
  if (node->list.size() > at + 1) config = arg(node, at + 1);
  Pos pos = node->pos;
  if (d.type->kind == T::fifo) {
    Dsd f;
    f.kind = DsdKind::fifo;
    f.queue = static_cast<std::uint8_t>(d.value.i);
    Value v;
    v.type = types_.get(T::mem1d_dsd);
    Ref<DsdValue> row(new DsdValue);
    row->dsd = f;
    v.obj = row;
    d = known_operand(v);
  }
  if (known()) {
    Value v = need_known(d, pos, "a descriptor loaded at start-up");
    load.dsd = static_cast<std::uint16_t>(dsd_index(v, pos));
    std::size_t row = program_->out.initial_dsrs.size();
    program_->out.initial_dsrs.push_back(load);
    if (config.where != Operand::nothing) {
      program_->deferred.push_back([this, row, config, pos] {
        parse_settings(config, program_->out.initial_dsrs[row].settings, nullptr, pos);
      });
    }
    return void_operand();
  }
  if (config.where != Operand::nothing) parse_settings(config, load.settings, &load.regs, pos);
  load.dsd = to_dreg(d, pos);
  program_->out.dsr_loads.push_back(load);
  emit(Insn::with_imm(Op::dsrload, 0, 0,
                      static_cast<std::int32_t>(program_->out.dsr_loads.size() - 1)),
       pos);
  return void_operand();
}

}  // namespace weft::wse::csl
