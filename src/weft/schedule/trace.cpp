// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/trace.h"

#include <unordered_map>

#include "weft/base/text.h"
#include "weft/schedule/schedule.h"

namespace weft::schedule {
namespace {

/// b0, l0, v0 ... by first appearance as a result.
class TraceNames final : public Names {
 public:
  void add(const Value& result) {
    if (const auto* b = result.get<BlockRef>()) blocks_[b->id] = cat("b", next_block_++);
    if (const auto* l = result.get<LoopRef>()) loops_[l->var.get()] = cat("l", next_loop_++);
    if (const auto* v = result.get<IntRef>()) integers_[v->id] = cat("v", next_integer_++);
    if (const auto* list = result.get<Value::List>()) {
      for (const Value& item : *list) add(item);
    }
  }
  std::string block(BlockRef ref) const override { return find(blocks_, ref.id, "block"); }
  std::string loop(const LoopRef& ref) const override {
    return find(loops_, ref.var.get(), "loop");
  }
  std::string integer(const IntRef& ref) const override {
    return find(integers_, ref.id, "integer");
  }

 private:
  template <typename Map, typename Key>
  static std::string find(const Map& map, const Key& key, std::string_view what) {
    auto it = map.find(key);
    if (it != map.end()) return it->second;
    throw Error(ErrorKind::schedule, "schedule.trace.foreign",
                cat("a step used a ", what, " that no step of this schedule returned"))
        .note(
            "get blocks with get_block and loops with get_loops, so that the trace can be "
            "repeated");
  }
  std::unordered_map<std::uint64_t, std::string> blocks_;
  std::unordered_map<const void*, std::string> loops_;
  std::unordered_map<std::int64_t, std::string> integers_;
  int next_block_ = 0, next_loop_ = 0, next_integer_ = 0;
};

std::string json_as_python(const Json& v) {
  if (v.is_null()) return "None";
  if (v.is_bool()) return v.as_bool() ? "True" : "False";
  if (v.is_number() || v.is_string()) return v.dump();
  const std::string text = v.dump();
  if (text.starts_with('[')) {
    std::vector<std::string> parts;
    for (const Json& item : v.as_array()) parts.push_back(json_as_python(item));
    return cat("[", join(parts), "]");
  }
  std::vector<std::string> parts;
  for (const auto& [key, value] : v.as_object())
    parts.push_back(cat(json_quote(key), ": ", json_as_python(value)));
  return cat("{", join(parts), "}");
}

/// References as names, the rest as JSON.
Json to_json_value(const Value& v, const Names& names) {
  if (const auto* b = v.get<bool>()) return *b;
  if (const auto* i = v.get<std::int64_t>()) return *i;
  if (const auto* d = v.get<double>()) return *d;
  if (const auto* s = v.get<std::string>()) return *s;
  if (const auto* b = v.get<BlockRef>()) return names.block(*b);
  if (const auto* l = v.get<LoopRef>()) return names.loop(*l);
  if (const auto* i = v.get<IntRef>()) return names.integer(*i);
  if (const auto* j = v.get<Json>()) return *j;
  if (const auto* m = v.get<IndexMap>()) return m->text();
  if (const auto* list = v.get<Value::List>()) {
    Json out = Json::array();
    for (const Value& item : *list) out.push_back(to_json_value(item, names));
    return out;
  }
  return nullptr;
}

bool same_value(const Value& a, const Value& b) {
  if (a.data.index() != b.data.index()) return false;
  if (const auto* list = a.get<Value::List>()) {
    const auto* other = b.get<Value::List>();
    if (list->size() != other->size()) return false;
    for (std::size_t i = 0; i < list->size(); ++i) {
      if (!same_value((*list)[i], (*other)[i])) return false;
    }
    return true;
  }
  if (a.get<IndexMap>() || a.get<LoopRef>() || a.get<BlockRef>() || a.get<IntRef>()) return false;
  struct NoNames final : Names {
    std::string block(BlockRef) const override { return {}; }
    std::string loop(const LoopRef&) const override { return {}; }
    std::string integer(const IntRef&) const override { return {}; }
  };
  return to_json_value(a, NoNames()) == to_json_value(b, NoNames());
}

bool is_default(const FieldInfo& field, const Value& v) {
  return field.mode == Field::optional && same_value(field.otherwise, v);
}

/// What names of a trace being replayed stand for.
using Environment = std::unordered_map<std::string, Value>;

Error bad_trace(std::string reason) {
  return Error(ErrorKind::parse, "schedule.trace.format", cat("the trace is malformed: ", reason));
}

Value from_json_value(const Json& j, std::string_view type, const Environment& env) {
  if (type == "value") return j;
  if (j.is_null()) return nullptr;
  if (j.is_bool()) return j.as_bool();
  if (j.is_int()) return j.as_int();
  if (j.is_number()) return j.as_double();
  if (j.is_string()) {
    const bool named =
        type.find("block") != npos || type.find("loop") != npos || type.find("int") != npos;
    if (!named || type.starts_with("(")) return j.as_string();
    auto it = env.find(j.as_string());
    if (it == env.end())
      throw bad_trace(cat("\"", j.as_string(), "\" was not returned by an earlier step"));
    return it->second;
  }
  Value::List out;
  for (const Json& item : j.as_array()) out.push_back(from_json_value(item, type, env));
  return out;
}

void bind_results(const Json& names, const Value& result, Environment& env) {
  if (names.is_string()) {
    env[names.as_string()] = result;
    return;
  }
  const auto* list = result.get<Value::List>();
  if (!list || names.is_null()) return;
  if (names.size() != list->size())
    throw bad_trace(
        cat("a step returned ", list->size(), " results, the trace names ", names.size()));
  for (std::size_t i = 0; i < list->size(); ++i) bind_results(names.at(i), (*list)[i], env);
}

}  // namespace

std::string python_text(const Value& v, const Names& names) {
  if (v.is_none()) return "None";
  if (const auto* b = v.get<bool>()) return *b ? "True" : "False";
  if (const auto* i = v.get<std::int64_t>()) return cat(*i);
  if (const auto* d = v.get<double>()) return shortest(*d);
  if (const auto* s = v.get<std::string>()) return json_quote(*s);
  if (const auto* b = v.get<BlockRef>()) return names.block(*b);
  if (const auto* l = v.get<LoopRef>()) return names.loop(*l);
  if (const auto* i = v.get<IntRef>()) return names.integer(*i);
  if (const auto* j = v.get<Json>()) return json_as_python(*j);
  if (const auto* m = v.get<IndexMap>()) return m->text();
  std::vector<std::string> parts;
  for (const Value& item : *v.get<Value::List>()) parts.push_back(python_text(item, names));
  return cat("[", join(parts), "]");
}

std::string step_text(const PrimitiveInfo& primitive, const Value::List& arguments,
                      const Names& names, bool keywords) {
  std::vector<std::string> parts;
  bool position = !keywords;
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const FieldInfo& field = (*primitive.fields)[i];
    if (is_default(field, arguments[i])) {
      position = false;
      continue;
    }
    if (field.mode == Field::variadic) {
      if (const auto* list = arguments[i].get<Value::List>()) {
        for (const Value& item : *list) parts.push_back(python_text(item, names));
      }
      position = false;
      continue;
    }
    const std::string text = python_text(arguments[i], names);
    parts.push_back(position ? text : cat(field.name, "=", text));
  }
  return cat("sch.", primitive.name, "(", join(parts), ")");
}

std::string Trace::as_python() const {
  TraceNames names;
  std::string out;
  for (const TraceEntry& e : entries_) {
    const std::string call = step_text(*e.primitive, e.arguments, names, true);
    names.add(e.result);
    if (e.result.is_none()) {
      out += call + "\n";
      continue;
    }
    std::string left;
    if (const auto* list = e.result.get<Value::List>()) {
      for (const Value& item : *list) left += python_text(item, names) + ", ";
      if (list->size() > 1) left.resize(left.size() - 2);
      if (list->size() == 1) left.resize(left.size() - 1);
      if (list->empty()) {
        out += call + "\n";
        continue;
      }
    } else {
      left = python_text(e.result, names);
    }
    out += cat(left, " = ", call, "\n");
  }
  return out;
}

Json Trace::to_json() const {
  TraceNames names;
  Json steps = Json::array();
  for (const TraceEntry& e : entries_) {
    Json arguments = Json::object();
    for (std::size_t i = 0; i < e.arguments.size(); ++i) {
      const FieldInfo& field = (*e.primitive->fields)[i];
      if (!is_default(field, e.arguments[i]))
        arguments[field.name] = to_json_value(e.arguments[i], names);
    }
    names.add(e.result);
    steps.push_back(
        Json::Array{Json(e.primitive->name), std::move(arguments), to_json_value(e.result, names)});
  }
  Json out = Json::object();
  out["format"] = "weft.trace";
  out["version"] = 1;
  out["steps"] = std::move(steps);
  return out;
}

void replay(Schedule& sch, const Json& trace) {
  const Json* format = trace.find("format");
  if (!format || !format->is_string() || format->as_string() != "weft.trace")
    throw bad_trace("no \"format\": \"weft.trace\"");
  if (trace.at("version").as_int() != 1)
    throw bad_trace(cat("version ", trace.at("version").dump(), " is not known; known: 1"));
  Environment env;
  for (const Json& step : trace.at("steps").as_array()) {
    if (step.size() != 3) throw bad_trace(cat("a step has ", step.size(), " parts instead of 3"));
    const PrimitiveInfo& p = find_primitive(step.at(0).as_string());
    Arguments args(p.fields->size());
    for (const auto& [key, value] : step.at(1).as_object()) {
      std::size_t i = 0;
      while (i < p.fields->size() && (*p.fields)[i].name != key) ++i;
      if (i == p.fields->size()) throw bad_trace(cat(p.name, " has no argument \"", key, "\""));
      args[i] = from_json_value(value, (*p.fields)[i].type, env);
    }
    bind_results(step.at(2), p.call(sch, args), env);
  }
}

std::string primitives_manual() {
  std::string out;
  for (const PrimitiveInfo& p : primitives()) {
    std::vector<std::string> signature;
    for (const FieldInfo& f : *p.fields) {
      struct NoNames final : Names {
        std::string block(BlockRef) const override { return "?"; }
        std::string loop(const LoopRef&) const override { return "?"; }
        std::string integer(const IntRef& ref) const override { return cat(ref.value); }
      };
      signature.push_back(f.mode == Field::required ? std::string(f.name)
                          : f.mode == Field::variadic
                              ? cat("*", f.name)
                              : cat(f.name, "=", python_text(f.otherwise, NoNames())));
    }
    out += cat("## ", p.name, "\n\n`sch.", p.name, "(", join(signature), ")` → ", p.result, "\n\n",
               p.doc, "\n\n");
    for (const FieldInfo& f : *p.fields)
      out += cat("- `", f.name, "` (", f.type, "): ", f.doc, "\n");
    out += "\n";
  }
  return out;
}

}  // namespace weft::schedule
