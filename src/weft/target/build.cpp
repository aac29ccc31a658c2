// SPDX-License-Identifier: Apache-2.0
#include "weft/base/fork_safe_mutex.h"
#include "weft/target/backend.h"

#include <map>
#include <mutex>

#include "weft/ir/build.h"
#include "weft/ir/compare.h"
#include "weft/ir/interpret.h"
#include "weft/ir/verify.h"
#include "weft/ir/visit.h"
#include "weft/pass/bind_tensors.h"
#include "weft/pass/check_bounds.h"
#include "weft/pass/check_races.h"
#include "weft/pass/convert_blocks.h"
#include "weft/pass/flatten_buffers.h"
#include "weft/pass/inline_calls.h"
#include "weft/pass/lower_init.h"
#include "weft/pass/place_allocations.h"
#include "weft/pass/share_storage.h"
#include "weft/pass/unroll_loops.h"
#include "weft/pass/validate.h"
#include "weft/rules/grid.h"
#include "weft/runtime/cache.h"
#include "weft/schedule/schedule.h"
#include "weft/target/accepts.h"
#include "weft/target/host_plan.h"
#include "weft/target/pipeline.h"
#include "weft/target/prove_order.h"
#include "weft/target/rules.h"

namespace weft {

namespace {

/// Enough for every kernel of the tour; a bigger one is examined in part.
constexpr std::int64_t kRaceBudget = 4'000'000;

/// What the check of races reads of a function that stays whole: plain loops over flat memory.
ir::PrimFunc loops_of_whole(ir::PrimFunc f, const TargetInfo& info) {
  bool parallel = false;
  ir::for_each_stmt(f->body, [&](const ir::Stmt& s) {
    const auto* loop = ir::as<ir::ForNode>(s);
    parallel = parallel || (loop && loop->for_kind == ir::ForKind::parallel);
  });
  if (!parallel) return f;
  f = pass::place_allocations(pass::lower_init(f), info);
  f = pass::lower_match_buffers(pass::lower_plain_matches(pass::convert_blocks(f)));
  return pass::flatten_buffers(pass::bind_tensors(f));
}

void prove_race_free(const ir::PrimFunc& lowered, const TargetInfo& info, Json& notes) {
  pass::RaceReport report = pass::check_races(lowered, info, kRaceBudget);
  for (const std::string& part : report.unchecked) notes.push_back(cat("races, unchecked: ", part));
  if (report.clean()) return;
  const pass::Race& first = report.races[0];
  std::string help;
  const bool by_data = first.element < 0 && !first.buffer.empty();
  if (first.adds) {
    help =
        cat("let only loops of spatial iterators run side by side, keep shares apart with "
            "sch.rfactor, or add with T.atomic_add(",
            first.buffer, "[...], value)");
  } else if (by_data) {
    help =
        "run the loop serially, over an iterator made by T.axis.opaque, so that the last "
        "iteration's value is kept";
  }
  if (by_data) {
    help += cat("; if the elements are distinct, say so: T.func_attr({\"", ir::kDistinctElements,
                "\": True})");
  }
  throw Error(ErrorKind::verify, "verify.race",
              cat("the kernels of ", lowered->name, " race on ",
                  first.buffer.empty()      ? std::string("a barrier")
                  : first.scope == "global" ? std::string("memory that every point sees")
                                            : cat(first.scope, " memory"),
                  first.buffer.empty() ? "" : cat(", \"", first.buffer, "\"")))
      .note(report.text())
      .help(std::move(help));
}

/// What lowering decided that its user may want to know: Module::notes.
void note_lowering(const std::string& function, const ir::PrimFunc& lowered, Json& notes) {
  for (const pass::SharedStorage& s : pass::shared_storage(lowered)) {
    notes.push_back(cat(function, ": \"", s.buffer, "\" also holds ", join(s.holds), " (",
                        s.saved_bytes, " bytes saved)"));
  }
  ir::for_each_stmt(lowered->body, [&](const ir::Stmt& s) {
    const auto* loop = ir::as<ir::ForNode>(s);
    if (!loop) return;
    const auto note = [&](std::string_view annotation, std::string_view what) {
      if (const Json* why = ir::find_annotation(loop->annotations, annotation))
        notes.push_back(cat(function, ": loop \"", loop->var->name, "\" is not ", what, ": ",
                            why->as_string()));
    };
    note("scalarised", "vectorized");
    note(pass::kNotUnrolled, "unrolled");
  });
}

}  // namespace

namespace {
/// A scheduled function as the target's passes leave it, its races excluded.
ir::PrimFunc lower_scheduled(const ir::PrimFunc& scheduled, const Target& target,
                             const TargetInfo& info, const pass::Pipeline& pipeline,
                             const pass::PassObserver& observer, Json& notes) {
  ir::PrimFunc lowered = pass::run_pipeline(pipeline, scheduled, observer);
  if (!observer.verify) return lowered;
  const bool whole = info.limit(limits::kWholeFunctions, 0) != 0;
  prove_race_free(whole ? loops_of_whole(lowered, info) : lowered, info, notes);
  prove_order(lowered, target.name, notes);
  return lowered;
}

/// Whether the program itself says how a machine runs it: kinds of loops, memories, annotations.
/// Parameters lie in memory that all points see, so blocks and loops tell.
bool scheduled_by_hand(const ir::PrimFunc& f) {
  bool out = false;
  ir::for_each_stmt(f->body, [&](const ir::Stmt& s) {
    if (const auto* loop = ir::as<ir::ForNode>(s))
      out = out || loop->for_kind == ir::ForKind::bound ||
            loop->for_kind == ir::ForKind::parallel || loop->for_kind == ir::ForKind::vectorized ||
            !loop->annotations.empty();
    if (const auto* realize = ir::as<ir::BlockRealizeNode>(s)) {
      out = out || !realize->block->annotations.empty();
      for (const ir::Buffer& b : realize->block->alloc_buffers)
        out = out || b->scope != "global" || !realize->iter_values.empty();
    }
    if (const auto* a = ir::as<ir::AllocateNode>(s)) out = out || a->buffer->scope != "global";
  });
  return out;
}

SplitOptions split_options(const TargetInfo& info) {
  SplitOptions out;
  out.vector_align = static_cast<int>(info.limit(limits::kVectorAlign, out.vector_align));
  out.whole = info.limit(limits::kWholeFunctions, 0) != 0;
  return out;
}

Ref<runtime::Module> build_fresh(const ir::IRModule& m, const Target& target,
                                 const Backend& backend, const BuildOptions& options) {
  try {
    const TargetInfo info = backend.info(target);
    const SplitOptions split = split_options(info);
    pass::Pipeline pipeline = backend.pipeline(target);
    std::vector<runtime::HostPlan> plans;
    std::vector<ir::PrimFunc> kernels;
    Json notes = Json::array();
    if (m->functions.empty())
      throw Error(ErrorKind::value, "build.empty",
                  cat("the module for ", target.text(), " has no functions"));
    const ir::IRModule whole = pass::inline_calls(m);
    for (const auto& [name, function] : whole->functions) {
      ir::PrimFunc f = function;
      if (f->name != name) {
        auto renamed = ir::edit(f);
        renamed->name = name;
        f = renamed;
      }
      try {
        if (Verdict bad = ir::verify(f)) throw Error(ErrorKind::verify, std::move(*bad));
        pass::check_bounds(f);
        if (Verdict no = backend.accepts(f, target)) throw Error(ErrorKind::lower, std::move(*no));
        pass::Validator validator(f, pass::validation_steps());
        ir::PrimFunc scheduled = backend.default_schedule(f, target);
        validator.check("default_schedule", scheduled);
        if (!(scheduled == f)) {
          const Json* applied = ir::find_annotation(scheduled->attrs, rules::kAppliedRules);
          const bool grid = has_rules(target.name);
          notes.push_back(
              cat(name, grid ? ": no loop is bound to an axis of " : ": nothing is scheduled for ",
                  target.name, "; the default schedule ", grid ? "for grids " : "", "was applied",
                  applied && !applied->as_string().empty() ? " (" : "",
                  applied ? applied->as_string() : "",
                  applied && !applied->as_string().empty() ? ")" : ""));
        }
        f = scheduled;
        pass::PassObserver observer = options.observer;
        if (validator.active()) {
          observer.after = [&](const pass::Pass& pass, const ir::PrimFunc& after, double seconds) {
            validator.check(pass.name, after);
            if (options.observer.after) options.observer.after(pass, after, seconds);
          };
        }
        const ir::PrimFunc lowered = lower_scheduled(f, target, info, pipeline, observer, notes);
        note_lowering(name, lowered, notes);
        SplitFunction parts = split_host_device(f, lowered, split);
        plans.push_back(std::move(parts.plan));
        kernels.insert(kernels.end(), parts.kernels.begin(), parts.kernels.end());
      } catch (Error& e) {
        throw e.context(cat("while building function ", name, " for ", target.text()));
      }
    }
    runtime::Binary binary = backend.emit(kernels, target);
    if (!notes.as_array().empty()) {
      if (!binary.metadata.is_object()) binary.metadata = Json::object();
      binary.metadata["notes"] = std::move(notes);
    }
    return make_ref<runtime::Module>(std::move(binary), std::move(plans));
  } catch (Error& e) {
    throw e.context(cat("while building for ", target.text()));
  }
}

/// Where a module is kept on disk, if this build may take one from there.
std::optional<runtime::CacheKey> kept_under(const ir::IRModule& m, const Target& target,
                                            const Backend& backend, const BuildOptions& options) {
  if (!options.keep || options.observer.after || pass::validation_steps() > 0) return std::nullopt;
  const std::optional<std::string> facts = backend.facts(target);
  if (!facts || runtime::code_identity().empty()) return std::nullopt;
  const ir::Digest program = ir::structural_digest(m);
  return runtime::CacheKey::of(cat("module 1\n", runtime::code_identity(), "\n", target.text(),
                                   "\n", *facts, "\n", options.observer.verify ? "" : "unchecked ",
                                   hex(program.high, 16), hex(program.low, 16)));
}

}  // namespace

Ref<runtime::Module> build(const ir::IRModule& m, std::string_view target_text,
                           const BuildOptions& options) {
  Target target = Target::parse(target_text);
  const Backend& backend = find_backend(target.name);
  if (options.keep) target = backend.for_device(target);
  const auto key = kept_under(m, target, backend, options);
  if (!key) return build_fresh(m, target, backend, options);
  Ref<runtime::Module> made;
  const std::string bytes = runtime::FileCache::shared().get(*key, [&] {
    made = build_fresh(m, target, backend, options);
    return made->serialize();
  });
  if (made) return made;
  try {
    return runtime::Module::deserialize(bytes, "a kept module");
  } catch (const Error& damaged) {
    if (damaged.kind() == ErrorKind::internal) throw;
  }
  made = build_fresh(m, target, backend, options);
  runtime::FileCache::shared().store(*key, made->serialize());
  return made;
}

Verdict accepts(const ir::IRModule& m, std::string_view target_text) {
  const Target target = Target::parse(target_text);
  const Backend& backend = find_backend(target.name);
  ir::IRModule whole;
  try {
    whole = pass::inline_calls(m);
  } catch (const Error& e) {
    if (e.kind() == ErrorKind::internal) throw;
    return e.refusal();
  }
  for (const auto& [name, f] : whole->functions) {
    if (Verdict bad = ir::verify(f)) return bad;
    try {
      pass::check_bounds(f);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::internal) throw;
      return e.refusal();
    }
    if (Verdict no = backend.accepts(f, target)) return no;
    // A back end's own schedules lower; of those that a program brings, lowering says it.
    if (!scheduled_by_hand(f)) continue;
    try {
      Json notes = Json::array();
      const TargetInfo info = backend.info(target);
      const ir::PrimFunc lowered = lower_scheduled(backend.default_schedule(f, target), target,
                                                   info, backend.pipeline(target), {}, notes);
      backend.check_kernels(split_host_device(f, lowered, split_options(info)).kernels, target);
    } catch (const Error& e) {
      if (e.kind() == ErrorKind::internal) throw;
      return e.refusal();
    }
  }
  return std::nullopt;
}

std::unique_ptr<schedule::Schedule> default_steps(const ir::PrimFunc& f,
                                                  std::string_view target_text,
                                                  const Json& options) {
  Target target = Target::parse(target_text);
  return find_backend(target.name).default_steps(f, target, options);
}

Backend& find_backend(std::string_view name) {
  std::vector<std::string> known;
  for (Backend* backend : backends()) {
    if (backend->name() == name) return *backend;
    known.emplace_back(backend->name());
  }
  throw Error(ErrorKind::value, "target.unknown", cat("there is no target \"", name, "\""))
      .note(cat("targets: ", join(known)))
      .help(did_you_mean(name, known));
}

Ref<runtime::Device> open_device(std::string_view text) {
  // Devices stay open: memory on them outlives any one user.
  static ForkSafeMutex mutex;
  static auto& open = *new std::map<std::string, Ref<runtime::Device>>;
  Target target = Target::parse(text);
  Backend& backend = find_backend(target.name);
  std::lock_guard lock(mutex);
  Ref<runtime::Device>& device = open[target.text()];
  if (!device) device = backend.open(target);
  return device;
}

std::vector<DeviceStatus> all_devices() {
  std::vector<DeviceStatus> out;
  for (Backend* backend : backends()) {
    for (DeviceStatus& status : backend->devices()) out.push_back(std::move(status));
  }
  return out;
}

}  // namespace weft
