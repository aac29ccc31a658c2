// SPDX-License-Identifier: Apache-2.0
#include "weft/schedule/primitives/annotate.h"

#include <algorithm>

#include "weft/base/text.h"
#include "weft/ir/build.h"
#include "weft/schedule/analysis.h"

namespace weft::schedule {
namespace {

using namespace ir;

Verdict locate_either(const State& s, const BlockOrLoop& at, Path& path) {
  return std::visit([&](const auto& ref) { return locate(s, ref, path); }, at);
}

const Annotations& annotations_of(const Path& path) {
  return path.loop() ? path.loop()->annotations : path.realize()->block->annotations;
}

IRModule with_annotations(const State& s, const Path& path, Annotations annotations) {
  Stmt changed;
  if (const ForNode* loop = path.loop()) {
    changed = make_for(loop->var, loop->min, loop->extent, loop->body, loop->for_kind, loop->axis,
                       std::move(annotations));
  } else {
    auto block = edit(path.realize()->block);
    block->annotations = std::move(annotations);
    changed = with_block(path.realize(), block);
  }
  return with_body(s.mod, path.func, replace(path, std::move(changed)));
}

std::string place_name(const Path& path) {
  return path.loop() ? cat("loop ", name_of(path.loop()))
                     : cat("block ", name_of(path.realize()->block.get()));
}

}  // namespace

Verdict Annotate::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_either(s, block_or_loop, path));
  if (ann_key.empty() || ann_val.is_null()) {
    Refusal r = refuse(s, "schedule.annotate.value",
                       cat("annotate of ", place_name(path), " needs a key and a value, but got \"",
                           ann_key, "\": ", ann_val.dump()));
    r.note("legal: a non-empty key with a number, string, list or dictionary");
    return r;
  }
  out.mod = with_annotations(s, path, with_annotation(annotations_of(path), ann_key, ann_val));
  return std::nullopt;
}

Verdict Unannotate::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_either(s, block_or_loop, path));
  if (!find_annotation(annotations_of(path), ann_key)) {
    std::vector<std::string> keys;
    for (const auto& [key, value] : annotations_of(path)) keys.push_back(key);
    Refusal r =
        refuse(s, "schedule.unannotate.key",
               cat(place_name(path), " has no annotation \"", ann_key, "\""), path.target().get());
    r.note(cat("annotations: ", quoted(keys)));
    r.help = did_you_mean(ann_key, keys);
    return r;
  }
  out.mod = with_annotations(s, path, with_annotation(annotations_of(path), ann_key, nullptr));
  return std::nullopt;
}

Verdict choose_buffer(const State& s, std::string_view step, const BlockRealizeNode* realize,
                      const BufferChoice& choice, Buffer& out) {
  const BlockNode* block = realize->block.get();
  const auto& regions = choice.kind == "read" ? block->reads : block->writes;
  std::vector<std::string> names;
  if (choice.kind == "name") {
    for (const auto* list : {&block->reads, &block->writes}) {
      for (const BufferRegion& r : *list) {
        names.push_back(r.buffer->name);
        if (r.buffer->name == choice.name) out = r.buffer;
      }
    }
    if (out) return std::nullopt;
    Refusal r = refuse(
        s, cat("schedule.", step, ".buffer"),
        cat(step, ": block ", name_of(block), " uses no buffer \"", choice.name, "\""), realize);
    r.note(cat("buffers: ", quoted(names)));
    r.help = did_you_mean(choice.name, names);
    return r;
  }
  for (std::size_t i = 0; i < regions.size(); ++i)
    names.push_back(cat(i, " = ", regions[i].buffer->name));
  if (choice.index >= 0 && choice.index < static_cast<std::int64_t>(regions.size())) {
    out = regions[static_cast<std::size_t>(choice.index)].buffer;
    return std::nullopt;
  }
  const char* verb = choice.kind == "read" ? "reads" : "writes";
  Refusal r = refuse(s, cat("schedule.", step, ".index"),
                     cat(step, " asks for buffer ", choice.index, " that block ", name_of(block),
                         " ", verb, ", but it ", verb, " ", regions.size()),
                     realize);
  r.note(cat("legal: ", names.empty() ? std::string("none") : join(names)));
  return r;
}

Verdict find_allocation(const State& s, std::string_view step, const Path& path,
                        const Buffer& buffer, std::size_t& depth) {
  std::vector<std::string> names;
  for (std::size_t i = path.nodes.size(); i-- > 0;) {
    const auto* realize = as<BlockRealizeNode>(path.nodes[i]);
    if (!realize) continue;
    for (const Buffer& b : realize->block->alloc_buffers) {
      names.push_back(b->name);
      if (b != buffer) continue;
      depth = i;
      return std::nullopt;
    }
  }
  Refusal r = refuse(
      s, cat("schedule.", step, ".parameter"),
      cat(step, " cannot change \"", buffer->name, "\", which the function does not allocate"),
      path.target().get());
  r.note(cat("buffers allocated around the block: ", quoted(names)));
  r.repair("sch.cache_read or sch.cache_write make a buffer of the function's own in any scope");
  return r;
}

Verdict StorageAlign::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  Buffer buffer;
  WEFT_TRY(choose_buffer(s, kName, path.realize(), {"write", buffer_index, ""}, buffer));
  std::size_t depth = 0;
  WEFT_TRY(find_allocation(s, kName, path, buffer, depth));
  const auto ndim = static_cast<std::int64_t>(buffer->ndim());
  if (axis < -ndim || axis >= ndim) {
    Refusal r = refuse(s, "schedule.storage_align.axis",
                       cat("storage_align got axis ", axis, " of \"", buffer->name,
                           "\", which has ", ndim, " axes"),
                       path.target().get());
    r.note(cat("legal: ", -ndim, " to ", ndim - 1));
    return r;
  }
  if (factor <= 0 || offset < 0 || offset >= factor) {
    Refusal r = refuse(s, "schedule.storage_align.factor",
                       cat("storage_align got factor ", factor, " and offset ", offset),
                       path.target().get());
    r.note("legal: factor at least 1, offset from 0 to factor - 1");
    return r;
  }
  const std::int64_t positive = axis < 0 ? axis + ndim : axis;
  Json rows = Json::array();
  if (const Json* old = find_annotation(path.realize()->block->annotations, "buffer_dim_align")) {
    for (const Json& row : old->as_array()) {
      if (row.at(0).as_int() != buffer_index || row.at(1).as_int() != positive) rows.push_back(row);
    }
  }
  rows.push_back(Json::Array{Json(buffer_index), Json(positive), Json(factor), Json(offset)});
  out.mod = with_annotations(
      s, path,
      with_annotation(path.realize()->block->annotations, "buffer_dim_align", std::move(rows)));
  return std::nullopt;
}

Verdict SetScope::transform(const State& s, Outcome<Result>& out) const {
  Path path;
  WEFT_TRY(locate_inner(s, block, kName, path));
  Buffer buffer;
  WEFT_TRY(choose_buffer(s, kName, path.realize(), buffer_index, buffer));
  WEFT_TRY(check_scope(s, kName, storage_scope));
  std::size_t depth = 0;
  WEFT_TRY(find_allocation(s, kName, path, buffer, depth));
  auto moved = edit(buffer);
  moved->scope = storage_scope;
  out.mod =
      with_body(s.mod, path.func,
                replace(path, replace_buffers(path.nodes[depth], {{buffer.get(), moved}}), depth));
  return std::nullopt;
}

}  // namespace weft::schedule
