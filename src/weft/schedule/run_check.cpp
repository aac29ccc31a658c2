// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/run_check.h"

#include <algorithm>
#include <cmath>
#include <cstring>
#include <random>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/ir/roles.h"
#include "weft/pass/join_points.h"

namespace weft::schedule {

using namespace ir;

namespace {

/// Calls f(pointer, index) with the element type behind `type`; false for types without values.
template <typename F>
bool visit_element(DType type, void* data, F&& f) {
  if (type.is_bool()) return f(static_cast<std::uint8_t*>(data)), true;
  if (type.is_float() && type.bits == 64) return f(static_cast<double*>(data)), true;
  if (type.is_float() && type.bits == 32) return f(static_cast<float*>(data)), true;
  if (type.is_float()) return f(static_cast<std::uint16_t*>(data)), true;
  const bool is_signed = type.code == TypeCode::int_;
  switch (type.bits) {
    case 8:
      return is_signed ? f(static_cast<std::int8_t*>(data)) : f(static_cast<std::uint8_t*>(data)),
             true;
    case 16:
      return is_signed ? f(static_cast<std::int16_t*>(data)) : f(static_cast<std::uint16_t*>(data)),
             true;
    case 32:
      return is_signed ? f(static_cast<std::int32_t*>(data)) : f(static_cast<std::uint32_t*>(data)),
             true;
    case 64:
      return is_signed ? f(static_cast<std::int64_t*>(data)) : f(static_cast<std::uint64_t*>(data)),
             true;
    default: return false;
  }
}

/// What reordering a sum may change: a few hundred roundings.
double tolerance(DType type) {
  if (!type.is_float()) return 0;
  if (type.is_float8()) return 0.5;
  return type.bits == 64 ? 1e-11 : type.bits == 32 ? 2e-5 : type.is_bfloat() ? 0.1 : 2e-2;
}

}  // namespace

RunCheck::RunCheck(const IRModule& program, std::uint64_t seed, std::int64_t step_limit)
    : seed_(seed), step_limit_(step_limit) {
  for (const auto& [name, function] : program->functions)
    functions_.push_back(start(program, name));
}

RunCheck::Function RunCheck::start(const IRModule& program, const std::string& name) const {
  std::mt19937_64 random(seed_);
  Function out{name, {}, {}};
  for (const Param& p : program->find(name)->params) {
    Tensor t;
    std::int64_t size = 1;
    if (!p.buffer) {
      throw Error(ErrorKind::schedule, "schedule.check.symbolic",
                  cat("parameter \"", p.var->name, "\" of \"", name,
                      "\" is a scalar: steps are run on programs of fixed shape"))
          .help("bind it to a number before scheduling");
    }
    t.type = p.buffer->dtype;
    for (const Expr& e : p.buffer->shape) {
      std::int64_t n = 0;
      if (!is_const_int(e, &n)) {
        throw Error(ErrorKind::schedule, "schedule.check.symbolic",
                    cat("the shape of \"", p.buffer->name, "\" of \"", name,
                        "\" is symbolic: steps are run on programs of fixed shape"))
            .help("schedule an instance of fixed shape and replay its trace");
      }
      t.shape.push_back(n);
      size *= n;
    }
    const auto count = static_cast<std::size_t>(size) * t.type.lanes;
    t.bytes.resize(count * static_cast<std::size_t>(std::max(1, t.type.bits / 8)));
    visit_element(t.type, t.bytes.data(), [&](auto* data) {
      using T = std::remove_pointer_t<decltype(data)>;
      for (std::size_t i = 0; i < count; ++i) {
        // Small whole numbers: sums of products stay exact in any order.
        const int value = static_cast<int>(random() % 9) - 4;
        if (t.type.is_bool()) {
          data[i] = static_cast<T>(value & 1);
        } else if (t.type.is_float() && t.type.bits <= 16) {
          data[i] = static_cast<T>(double_to_narrow(t.type, value));
        } else {
          data[i] = static_cast<T>(t.type.code == TypeCode::uint_ ? value + 4 : value);
        }
      }
    });
    out.before.push_back(std::move(t));
  }
  out.after = out.before;
  run(program, name, out.after);
  return out;
}

void RunCheck::run(const IRModule& program, const std::string& name,
                   std::vector<Tensor>& parameters) const {
  std::vector<InterpretArg> arguments;
  for (Tensor& t : parameters) {
    InterpretArg a;
    a.data = t.bytes.data();
    a.shape = t.shape;
    arguments.push_back(std::move(a));
  }
  IRModule runnable = program;
  if (const PrimFunc f = program->find(name); uses_tokens(f->body)) {
    auto joined = make_ref<IRModuleNode>(*program);
    for (auto& [key, function] : joined->functions)
      if (key == name) function = pass::join_points(f, generic_target_info());
    runnable = joined;
  }
  try {
    interpret(runnable, name, arguments, step_limit_);
  } catch (const Error& e) {
    if (e.code() != "interpret.steps") throw;
    throw Error(ErrorKind::schedule, "schedule.check.size",
                cat("\"", name, "\" executes more than ", step_limit_,
                    " statements: too many to run it at each step"))
        .help("schedule a smaller instance with the check and replay its trace on this one");
  }
}

Verdict RunCheck::compare(const IRModule& now) {
  for (Function& f : functions_) {
    const PrimFunc function = now->find(f.name);
    bool same_shapes = function->params.size() == f.before.size();
    for (std::size_t i = 0; same_shapes && i < f.before.size(); ++i) {
      const auto& buffer = function->params[i].buffer;
      same_shapes = buffer && buffer->dtype == f.before[i].type &&
                    buffer->shape.size() == f.before[i].shape.size();
      for (std::size_t d = 0; same_shapes && d < buffer->shape.size(); ++d) {
        std::int64_t n = 0;
        same_shapes = is_const_int(buffer->shape[d], &n) && n == f.before[i].shape[d];
      }
    }
    if (!same_shapes) {
      f = start(now, f.name);
      ++rebased_;
      continue;
    }
    std::vector<Tensor> results = f.before;
    run(now, f.name, results);
    ++compared_;
    for (std::size_t i = 0; i < results.size(); ++i) {
      const DType type = results[i].type;
      const double allowed = tolerance(type);
      Verdict found;
      visit_element(type, results[i].bytes.data(), [&](auto* got) {
        using T = std::remove_pointer_t<decltype(got)>;
        const auto* want = reinterpret_cast<const T*>(f.after[i].bytes.data());
        const std::size_t count = results[i].bytes.size() / sizeof(T);
        for (std::size_t k = 0; k < count && !found; ++k) {
          if (got[k] == want[k]) continue;
          const bool narrow = type.is_float() && type.bits <= 16;
          const double x =
              narrow ? narrow_to_double(type, static_cast<std::uint16_t>(got[k])) : double(got[k]);
          const double y = narrow ? narrow_to_double(type, static_cast<std::uint16_t>(want[k]))
                                  : double(want[k]);
          if (std::isnan(x) && std::isnan(y)) continue;
          if (std::fabs(x - y) <= allowed * std::max({1.0, std::fabs(x), std::fabs(y)})) continue;
          Refusal refusal{
              "schedule.check.differs",
              cat("the step changes the result: element ", k, " of \"",
                  function->params[i].buffer->name, "\" was ", y, " and becomes ", x),
              {},
              {cat("run by the interpreter on random whole numbers, seed ", seed_)},
              "report the program and the trace: a legality rule let a wrong step through"};
          found = std::move(refusal);
        }
      });
      if (found) return found;
    }
  }
  return {};
}

}  // namespace weft::schedule
