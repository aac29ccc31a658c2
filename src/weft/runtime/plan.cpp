// SPDX-License-Identifier: Apache-2.0
#include "weft/runtime/plan.h"

#include <algorithm>

#include "weft/base/error.h"

namespace weft::runtime {

namespace {

constexpr std::string_view kOps[] = {"const", "slot", "+", "-",  "*", "//", "%",   "min", "max",
                                     "==",    "!=",   "<", "<=", ">", ">=", "and", "or",  "not"};
constexpr std::string_view kSteps[] = {"set",  "allocate", "release", "launch",
                                       "loop", "branch",   "assert"};

[[noreturn]] void bad(std::string_view what, std::string detail) {
  throw Error(ErrorKind::io, cat("plan.", what), cat("the host plan is damaged: ", detail));
}

std::int64_t floordiv(std::int64_t a, std::int64_t b) {
  if (b == 0)
    throw Error(ErrorKind::value, "plan.divide", cat("the host plan divides ", a, " by zero"));
  // The smallest integer has no negative: the quotient wraps, as the other operations do.
  if (b == -1) return static_cast<std::int64_t>(-static_cast<std::uint64_t>(a));
  std::int64_t q = a / b;
  return q - ((a % b != 0) && ((a < 0) != (b < 0)) ? 1 : 0);
}

Json expr_json(const PlanExpr& e) {
  Json out = Json::array();
  for (const PlanCode& code : e) {
    if (code.op == PlanOp::constant) {
      out.push_back(code.value);
    } else if (code.op == PlanOp::slot) {
      out.push_back(cat("s", code.value));
    } else {
      out.push_back(kOps[static_cast<std::size_t>(code.op)]);
    }
  }
  return out;
}

struct Reader {
  std::int32_t slots = 0, buffers = 0;
  std::int32_t tensors = 0;  // the first buffers are the caller's

  std::int32_t index(const Json& json, std::int32_t limit, std::string_view what) const {
    std::int64_t value = json.as_int();
    if (value < 0 || value >= limit) bad("index", cat(what, " ", value, " of ", limit));
    return static_cast<std::int32_t>(value);
  }

  PlanExpr expr(const Json& json) const {
    PlanExpr out;
    int depth = 0;
    for (const Json& item : json.as_array()) {
      if (item.is_int()) {
        out.push_back({PlanOp::constant, item.as_int()});
        ++depth;
        continue;
      }
      const std::string& text = item.as_string();
      if (text.size() > 1 && text[0] == 's' && text[1] >= '0' && text[1] <= '9' &&
          text.size() < 11) {
        std::int64_t slot = std::stoll(text.substr(1));
        if (slot >= slots) bad("index", cat("slot ", slot, " of ", slots));
        out.push_back({PlanOp::slot, slot});
        ++depth;
        continue;
      }
      auto it = std::find(std::begin(kOps) + 2, std::end(kOps), text);
      if (it == std::end(kOps)) bad("operation", cat("unknown operation \"", text, "\""));
      auto op = static_cast<PlanOp>(it - std::begin(kOps));
      int needed = op == PlanOp::not_ ? 1 : 2;
      if (depth < needed) bad("expression", cat("\"", text, "\" lacks operands"));
      depth -= needed - 1;
      out.push_back({op, 0});
    }
    if (!out.empty() && depth != 1)
      bad("expression", cat(depth, " values are left of an expression"));
    return out;
  }

  PlanParam param(const Json& json) const {
    PlanParam out;
    out.is_tensor = json.at("tensor").as_bool();
    DType dtype = parse_dtype(json.at("dtype").as_string());
    if (!out.is_tensor) {
      out.scalar = {json.at("name").as_string(), dtype, index(json.at("slot"), slots, "slot")};
      return out;
    }
    PlanTensor& t = out.tensor;
    t.name = json.at("name").as_string();
    t.dtype = dtype;
    for (const Json& e : json.at("shape").as_array()) t.shape.push_back(expr(e));
    for (const Json& e : json.at("binds").as_array()) {
      t.binds.push_back(e.as_int() < 0 ? -1 : index(e, slots, "slot"));
    }
    t.strided = json.at("strided").as_bool();
    for (const Json& e : json.at("stride_slots").as_array())
      t.stride_slots.push_back(index(e, slots, "slot"));
    t.align =
        static_cast<std::int32_t>(std::clamp<std::int64_t>(json.at("align").as_int(), 1, 4096));
    t.written = json.at("written").as_bool();
    t.space = json.at("space").as_string();
    if (t.binds.size() != t.shape.size() ||
        (t.strided && t.stride_slots.size() != t.shape.size())) {
      bad("parameter", cat("\"", t.name, "\" has ", t.shape.size(), " extents and ", t.binds.size(),
                           " bindings"));
    }
    for (std::size_t i = 0; i < t.shape.size(); ++i) {
      if (t.binds[i] < 0 && t.shape[i].empty())
        bad("parameter", cat("\"", t.name, "\" has an empty extent"));
    }
    return out;
  }

  std::vector<PlanStep> steps(const Json& json, int depth) const {
    if (depth > 64) bad("depth", cat("steps are nested ", depth, " deep"));
    std::vector<PlanStep> out;
    for (const Json& item : json.as_array()) out.push_back(step(item, depth));
    return out;
  }

  PlanStep step(const Json& json, int depth) const {
    PlanStep out;
    const std::string& kind = json.at("kind").as_string();
    auto it = std::find(std::begin(kSteps), std::end(kSteps), kind);
    if (it == std::end(kSteps)) bad("step", cat("unknown step \"", kind, "\""));
    out.kind = static_cast<StepKind>(it - std::begin(kSteps));
    if (const Json* v = json.find("text")) out.text = v->as_string();
    if (const Json* v = json.find("value")) out.value = expr(*v);
    if (const Json* v = json.find("min")) out.min = expr(*v);
    bool on_slot = out.kind == StepKind::set || out.kind == StepKind::loop;
    bool on_buffer = out.kind == StepKind::allocate || out.kind == StepKind::release;
    if (on_slot || on_buffer)
      out.target = index(json.at("target"), on_slot ? slots : buffers, "target");
    if (on_buffer && out.target < tensors) {
      bad("parameter", cat("\"", kind, "\" of buffer ", out.target, ", which is one of the ",
                           tensors, " tensor parameters"));
    }
    if (out.value.empty() && out.kind != StepKind::release && out.kind != StepKind::launch) {
      bad("step", cat("\"", kind, "\" has no value"));
    }
    if (const Json* v = json.find("body")) out.body = steps(*v, depth + 1);
    if (const Json* v = json.find("otherwise")) out.otherwise = steps(*v, depth + 1);
    if (out.kind == StepKind::launch) {
      for (const Json& e : json.at("extents").as_array()) out.extents.push_back(expr(e));
      for (const Json& a : json.at("args").as_array()) {
        PlanArg arg;
        arg.is_pointer = a.find("buffer") != nullptr;
        if (arg.is_pointer) {
          arg.buffer = index(a.at("buffer"), buffers, "buffer");
          if (const Json* v = a.find("offset")) arg.offset_bytes = expr(*v);
        } else {
          arg.scalar = expr(a.at("scalar"));
          if (arg.scalar.empty())
            bad("step", cat("a scalar argument of ", out.text, " has no value"));
          if (const Json* v = a.find("float")) arg.is_float = v->as_bool();
        }
        out.args.push_back(std::move(arg));
      }
    }
    return out;
  }
};

Json steps_json(const std::vector<PlanStep>& steps) {
  Json out = Json::array();
  for (const PlanStep& s : steps) {
    Json j = Json::object();
    j["kind"] = kSteps[static_cast<std::size_t>(s.kind)];
    if (s.kind != StepKind::launch && s.kind != StepKind::branch && s.kind != StepKind::assert_)
      j["target"] = s.target;
    if (!s.value.empty()) j["value"] = expr_json(s.value);
    if (!s.min.empty()) j["min"] = expr_json(s.min);
    if (!s.text.empty()) j["text"] = s.text;
    if (s.kind == StepKind::launch) {
      Json args = Json::array(), extents = Json::array();
      for (const PlanArg& a : s.args) {
        Json arg = Json::object();
        if (a.is_pointer) {
          arg["buffer"] = a.buffer;
          if (!a.offset_bytes.empty()) arg["offset"] = expr_json(a.offset_bytes);
        } else {
          arg["scalar"] = expr_json(a.scalar);
          if (a.is_float) arg["float"] = true;
        }
        args.push_back(std::move(arg));
      }
      for (const PlanExpr& e : s.extents) extents.push_back(expr_json(e));
      j["args"] = std::move(args);
      j["extents"] = std::move(extents);
    }
    if (!s.body.empty()) j["body"] = steps_json(s.body);
    if (!s.otherwise.empty()) j["otherwise"] = steps_json(s.otherwise);
    out.push_back(std::move(j));
  }
  return out;
}

}  // namespace

Json to_json(const HostPlan& plan) {
  Json out = Json::object();
  out["name"] = plan.name;
  out["slots"] = plan.slots;
  out["buffers"] = plan.buffers;
  out["no_overlap"] = plan.no_overlap;
  Json params = Json::array();
  for (const PlanParam& p : plan.params) {
    Json j = Json::object();
    j["tensor"] = p.is_tensor;
    j["name"] = p.is_tensor ? p.tensor.name : p.scalar.name;
    j["dtype"] = to_string(p.is_tensor ? p.tensor.dtype : p.scalar.dtype);
    if (p.is_tensor) {
      Json shape = Json::array(), binds = Json::array(), strides = Json::array();
      for (const PlanExpr& e : p.tensor.shape) shape.push_back(expr_json(e));
      for (std::int32_t b : p.tensor.binds) binds.push_back(b);
      for (std::int32_t s : p.tensor.stride_slots) strides.push_back(s);
      j["shape"] = std::move(shape);
      j["binds"] = std::move(binds);
      j["strided"] = p.tensor.strided;
      j["stride_slots"] = std::move(strides);
      j["align"] = p.tensor.align;
      j["written"] = p.tensor.written;
      j["space"] = p.tensor.space;
    } else {
      j["slot"] = p.scalar.slot;
    }
    params.push_back(std::move(j));
  }
  out["params"] = std::move(params);
  out["steps"] = steps_json(plan.steps);
  return out;
}

HostPlan plan_from_json(const Json& json) {
  HostPlan plan;
  plan.name = json.at("name").as_string();
  std::int64_t slots = json.at("slots").as_int(), buffers = json.at("buffers").as_int();
  if (slots < 0 || slots > 1'000'000 || buffers < 0 || buffers > 1'000'000) {
    bad("size", cat(slots, " slots and ", buffers, " buffers"));
  }
  plan.slots = static_cast<std::int32_t>(slots);
  plan.buffers = static_cast<std::int32_t>(buffers);
  plan.no_overlap = json.at("no_overlap").as_bool();
  Reader reader{plan.slots, plan.buffers};
  std::int64_t tensors = 0;
  for (const Json& p : json.at("params").as_array()) {
    plan.params.push_back(reader.param(p));
    tensors += plan.params.back().is_tensor ? 1 : 0;
  }
  if (tensors > buffers) bad("size", cat(tensors, " tensor parameters but ", buffers, " buffers"));
  reader.tensors = static_cast<std::int32_t>(tensors);
  plan.steps = reader.steps(json.at("steps"), 0);
  return plan;
}

std::int64_t evaluate(const PlanExpr& e, const std::int64_t* slots) {
  if (e.size() == 1) return e[0].op == PlanOp::constant ? e[0].value : slots[e[0].value];
  std::vector<std::int64_t> stack;
  auto wrap = [](auto f, std::int64_t a, std::int64_t b) {
    return static_cast<std::int64_t>(
        f(static_cast<std::uint64_t>(a), static_cast<std::uint64_t>(b)));
  };
  for (const PlanCode& code : e) {
    if (code.op == PlanOp::constant || code.op == PlanOp::slot) {
      stack.push_back(code.op == PlanOp::constant ? code.value : slots[code.value]);
      continue;
    }
    if (code.op == PlanOp::not_) {
      stack.back() = stack.back() == 0 ? 1 : 0;
      continue;
    }
    std::int64_t b = stack.back();
    stack.pop_back();
    std::int64_t a = stack.back();
    std::int64_t& r = stack.back();
    switch (code.op) {
      case PlanOp::add: r = wrap([](auto x, auto y) { return x + y; }, a, b); break;
      case PlanOp::sub: r = wrap([](auto x, auto y) { return x - y; }, a, b); break;
      case PlanOp::mul: r = wrap([](auto x, auto y) { return x * y; }, a, b); break;
      case PlanOp::floordiv: r = floordiv(a, b); break;
      case PlanOp::floormod:
        r = wrap([](auto x, auto y) { return x - y; }, a,
                 wrap([](auto x, auto y) { return x * y; }, floordiv(a, b), b));
        break;
      case PlanOp::min: r = std::min(a, b); break;
      case PlanOp::max: r = std::max(a, b); break;
      case PlanOp::eq: r = a == b; break;
      case PlanOp::ne: r = a != b; break;
      case PlanOp::lt: r = a < b; break;
      case PlanOp::le: r = a <= b; break;
      case PlanOp::gt: r = a > b; break;
      case PlanOp::ge: r = a >= b; break;
      case PlanOp::and_: r = (a != 0) && (b != 0); break;
      default: r = (a != 0) || (b != 0); break;
    }
  }
  return stack.empty() ? 0 : stack.back();
}

}  // namespace weft::runtime
