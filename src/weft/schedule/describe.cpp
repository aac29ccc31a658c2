// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/describe.h"

#include "weft/base/text.h"

namespace weft::schedule {
namespace {

template <typename T>
Value list_value(const std::vector<T>& items) {
  Value::List out;
  out.reserve(items.size());
  for (const T& item : items) out.push_back(to_value(item));
  return out;
}

template <typename T>
bool list_from(const Value& v, std::vector<T>& out) {
  const auto* list = v.get<Value::List>();
  if (!list) return false;
  out.clear();
  for (const Value& item : *list) {
    T value{};
    if (!from_value(item, value)) return false;
    out.push_back(std::move(value));
  }
  return true;
}

template <typename T>
bool copy_from(const Value& v, T& out) {
  const T* p = v.get<T>();
  if (p) out = *p;
  return p != nullptr;
}

std::string kind_text(const Value& v) {
  static constexpr const char* kNames[] = {"None",   "a bool",  "an int",      "a float",
                                           "a str",  "a block", "a loop",      "an int",
                                           "a list", "a value", "an index map"};
  return kNames[v.data.index()];
}

}  // namespace

Value to_value(const BlockRef& v) { return v; }
bool from_value(const Value& v, BlockRef& out) { return copy_from(v, out); }

Value to_value(const LoopRef& v) { return v; }
bool from_value(const Value& v, LoopRef& out) { return copy_from(v, out); }

Value to_value(const LoopOrBlocks& v) {
  return std::visit([](const auto& target) { return to_value(target); }, v);
}
bool from_value(const Value& v, LoopOrBlocks& out) {
  if (const auto* loop = v.get<LoopRef>()) {
    out = *loop;
    return true;
  }
  std::vector<BlockRef> blocks;
  if (!from_value(v, blocks)) return false;
  out = std::move(blocks);
  return true;
}
Value to_value(const BlockOrLoop& v) {
  return std::visit([](const auto& ref) { return Value(ref); }, v);
}
bool from_value(const Value& v, BlockOrLoop& out) {
  if (const auto* block = v.get<BlockRef>()) {
    out = *block;
    return true;
  }
  if (const auto* loop = v.get<LoopRef>()) {
    out = *loop;
    return true;
  }
  return false;
}

Value to_value(const IntRef& v) { return v.id == 0 ? Value(v.value) : Value(v); }
bool from_value(const Value& v, IntRef& out) {
  if (const auto* literal = v.get<std::int64_t>()) {
    out = IntRef(*literal);
    return true;
  }
  return copy_from(v, out);
}

Value to_value(const std::int64_t& v) { return v; }
bool from_value(const Value& v, std::int64_t& out) {
  IntRef ref;
  if (!from_value(v, ref)) return false;
  out = ref.value;
  return true;
}

Value to_value(const bool& v) { return v; }
bool from_value(const Value& v, bool& out) {
  if (const auto* number = v.get<std::int64_t>(); number && (*number == 0 || *number == 1)) {
    out = *number == 1;
    return true;
  }
  return copy_from(v, out);
}

Value to_value(const std::string& v) { return v; }
bool from_value(const Value& v, std::string& out) { return copy_from(v, out); }

Value to_value(const Json& v) { return v; }
bool from_value(const Value& v, Json& out) {
  if (copy_from(v, out)) return true;
  if (v.is_none()) {
    out = nullptr;
  } else if (const auto* b = v.get<bool>()) {
    out = *b;
  } else if (const auto* i = v.get<std::int64_t>()) {
    out = *i;
  } else if (const auto* r = v.get<IntRef>()) {
    out = r->value;
  } else if (const auto* d = v.get<double>()) {
    out = *d;
  } else if (const auto* s = v.get<std::string>()) {
    out = *s;
  } else if (const auto* list = v.get<Value::List>()) {
    out = Json::array();
    for (const Value& item : *list) {
      Json member;
      if (!from_value(item, member)) return false;
      out.push_back(std::move(member));
    }
  } else {
    return false;
  }
  return true;
}

Value to_value(const IndexMap& v) { return v; }
bool from_value(const Value& v, IndexMap& out) {
  if (const auto* text = v.get<std::string>()) {
    out = IndexMap::parse(*text);
    return true;
  }
  return copy_from(v, out);
}

Value to_value(const BufferChoice& v) {
  if (v.kind == "name") return v.name;
  return Value::List{v.kind, v.index};
}
bool from_value(const Value& v, BufferChoice& out) {
  if (const auto* name = v.get<std::string>()) {
    out = {"name", 0, *name};
    return true;
  }
  if (const auto* index = v.get<std::int64_t>()) {
    out = {"write", *index, ""};
    return true;
  }
  const auto* list = v.get<Value::List>();
  if (!list || list->size() != 2) return false;
  return from_value((*list)[0], out.kind) && (out.kind == "read" || out.kind == "write") &&
         from_value((*list)[1], out.index);
}

Value to_value(const Factor& v) { return v ? to_value(*v) : Value(); }
bool from_value(const Value& v, Factor& out) {
  out.reset();
  if (v.is_none()) return true;
  IntRef ref;
  if (!from_value(v, ref)) return false;
  out = ref;
  return true;
}

Value to_value(const Factors& v) { return list_value(v); }
bool from_value(const Value& v, Factors& out) { return list_from(v, out); }
Value to_value(const std::vector<BlockRef>& v) { return list_value(v); }
bool from_value(const Value& v, std::vector<BlockRef>& out) {
  if (v.is_none()) {
    out.clear();
    return true;
  }
  if (const auto* one = v.get<BlockRef>()) {
    out = {*one};
    return true;
  }
  return list_from(v, out);
}
Value to_value(const std::vector<LoopRef>& v) { return list_value(v); }
bool from_value(const Value& v, std::vector<LoopRef>& out) { return list_from(v, out); }
Value to_value(const std::vector<IntRef>& v) { return list_value(v); }
bool from_value(const Value& v, std::vector<IntRef>& out) { return list_from(v, out); }
Value to_value(const std::vector<std::int64_t>& v) { return list_value(v); }
bool from_value(const Value& v, std::vector<std::int64_t>& out) { return list_from(v, out); }
namespace {
Value to_value(double v) { return v; }
bool from_value(const Value& v, double& out) {
  if (const auto* number = v.get<std::int64_t>()) {
    out = static_cast<double>(*number);
    return true;
  }
  return copy_from(v, out);
}
}  // namespace
Value to_value(const std::vector<double>& v) {
  Value::List out;
  for (double item : v) out.push_back(to_value(item));
  return out;
}
bool from_value(const Value& v, std::vector<double>& out) {
  const auto* list = v.get<Value::List>();
  if (!list) return false;
  out.assign(list->size(), 0);
  for (std::size_t i = 0; i < list->size(); ++i) {
    if (!from_value((*list)[i], out[i])) return false;
  }
  return true;
}

Value to_value(const Done&) { return {}; }
bool from_value(const Value& v, Done&) { return v.is_none(); }

void add_field(std::vector<FieldInfo>& to, std::string_view name, std::string_view type,
               std::string_view doc, Field mode, Value otherwise) {
  to.push_back({name, type, doc, mode, std::move(otherwise)});
}

const Value* given_argument(std::string_view step, const std::vector<FieldInfo>& fields,
                            const Arguments& args, std::size_t index) {
  if (index < args.size() && args[index]) return &*args[index];
  if (fields[index].mode != Field::required) return nullptr;
  std::vector<std::string> names;
  for (const FieldInfo& f : fields)
    names.push_back(cat(f.name, f.mode == Field::required ? "" : "=..."));
  throw Error(
      ErrorKind::schedule, "schedule.argument.missing",
      cat(step, " needs the argument \"", fields[index].name, "\" (", fields[index].doc, ")"))
      .note(cat("signature: ", step, "(", join(names), ")"));
}

void wrong_argument(std::string_view step, const FieldInfo& field, const Value& value) {
  const std::string_view type = field.type;
  std::string help = cat("give ", type);
  if (const auto* number = value.get<std::int64_t>(); number && type.starts_with("list of int")) {
    help = type.find("None") != std::string_view::npos
               ? cat("write [None, ", *number, "] (inner extent ", *number, ") or [", *number,
                     ", None] (outer)")
               : cat("write [", *number, "]");
  } else if (type.find("loop") != std::string_view::npos) {
    help = "sch.get_loops(block) gives the loops of a block";
  } else if (type.find("block") != std::string_view::npos) {
    help = "sch.get_block(\"C\") gives the block of that name";
  }
  throw Error(ErrorKind::schedule, "schedule.argument.type",
              cat(step, " needs ", type, " for \"", field.name, "\", but got ", kind_text(value)))
      .note(cat(field.name, ": ", field.doc))
      .help(std::move(help));
}

}  // namespace weft::schedule
