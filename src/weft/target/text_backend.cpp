// SPDX-License-Identifier: Apache-2.0
#include "weft/target/text_backend.h"

#include <algorithm>

#include "weft/pass/lower_float8.h"
#include "weft/rules/grid.h"
#include "weft/target/accepts.h"
#include "weft/target/pipeline.h"
#include "weft/target/rules.h"

namespace weft {

namespace {

constexpr std::string_view kThreads = "max_threads_per_block",
                           kShared = "max_shared_memory_per_block";

}  // namespace

TargetInfo TextBackend::info(const Target& target) const {
  std::vector<std::string> legal(row_.options.begin(), row_.options.end());
  if (row_.grid) legal.insert(legal.end(), {std::string(kThreads), std::string(kShared)});
  check_options(target, std::move(legal), row_.number);
  TargetInfo out = rows(target);
  out.name = std::string(row_.name);
  if (row_.grid) read_limits(out, target);
  return out;
}

TargetInfo TextBackend::kind() const {
  Target plain;
  plain.name = std::string(row_.name);
  return rows(plain);
}

void TextBackend::read_limits(TargetInfo& info, const Target& target) {
  auto at_least = [&](std::string_view key, std::int64_t otherwise, std::int64_t least) {
    std::int64_t value = target.integer(key, otherwise);
    if (value < least) {
      throw Error(ErrorKind::value, "target.option.range",
                  cat("option \"", key, "\" of target ", target.name, " is ", value))
          .note(cat("legal: ", least, " and more; without the option it is ", otherwise));
    }
    return value;
  };
  info.set_group(at_least(kThreads, info.group_threads(), 1),
                 at_least(kShared, info.group_bytes(), 0));
}

Verdict TextBackend::accepts(const ir::PrimFunc& f, const Target& target) const {
  return accepts_rows(f, info(target));
}

ir::PrimFunc TextBackend::default_schedule(const ir::PrimFunc& f, const Target& target) const {
  return row_.grid ? rules::schedule_for_grid(f, std::make_shared<TargetInfo>(info(target)))
                   : rules::schedule_for_host(f, info(target));
}

std::unique_ptr<const OpenedSchedule> TextBackend::open_schedule(const ir::PrimFunc& f,
                                                                 const Target& target) const {
  return row_.grid ? open_grid_rules(f, info(target)) : open_host_rules(f, info(target));
}

pass::Pipeline TextBackend::pipeline(const Target& target) const {
  LoweringOptions options;
  options.vector_lanes = row_.vector_lanes;
  options.unroll.max_statements = 16384;  // registers need loops that are written out
  options.read(target);
  return standard_pipeline(info(target), options);
}

std::optional<std::string> TextBackend::facts(const Target& target) const {
  // Text for hosts is compiled for the machine at hand, which `info` does not tell.
  if (!row_.grid) return std::nullopt;
  return cat(describe(info(target)), compiler(target));
}

runtime::Binary TextBackend::emit(const std::vector<ir::PrimFunc>& kernels,
                                  const Target& target) const {
  std::vector<ir::PrimFunc> spelled;
  for (const ir::PrimFunc& f : kernels) spelled.push_back(pass::lower_float8(spell(f)));
  EmittedSource out = emit_c(spelled, spelling_for(target));
  if (row_.grid) check_shared_bytes(out, info(target).group_bytes(), target.text());
  runtime::Binary binary;
  binary.target = target.text();
  binary.format = row_.format;
  binary.bytes = out.text;
  binary.source = std::move(out.text);
  binary.kernels = std::move(out.kernels);
  binary.metadata = std::move(out.metadata);
  compile(binary, target);
  return binary;
}

}  // namespace weft
