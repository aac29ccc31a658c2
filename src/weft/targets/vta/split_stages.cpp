// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/split_stages.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"
#include "weft/targets/vta/trim_loops.h"

namespace weft::vta {

using namespace ir;

namespace {

struct StageSegment {
  bool device;
  Stmt body;
};

/// A statement of the host between two uses of a buffer on chip: mostly a scope is missing.
Error outlived(const Buffer& kept, const Stmt& host) {
  std::string written;
  for_each_stmt(host, [&](const Stmt& s) {
    if (const auto* store = as<StoreNode>(s)) written = store->buffer->name;
  });
  return Error(ErrorKind::lower, "vta.lower.stages",
               cat("\"", kept->name, "\" in ", kept->scope,
                   " would have to survive a statement that the host runs: the one that writes \"",
                   written, "\", which lies in global memory"))
      .note("on-chip memories are empty between kernels")
      .help(cat("if \"", written, "\" belongs on chip: sch.set_scope(sch.get_block(\"", written,
                "\"), 0, \"vta.acc\"), or vta.inp, vta.wgt for what GEMM reads; otherwise store \"",
                kept->name, "\" to a global buffer first"));
}

std::vector<StageSegment> segments(const Stmt& s) {
  std::vector<StageSegment> out;
  if (const auto* seq_node = as<SeqNode>(s)) {
    for (const Stmt& part : seq_node->stmts) {
      for (StageSegment& one : segments(part)) {
        if (one.device && !out.empty() && out.back().device) {
          out.back().body = seq({out.back().body, one.body});
        } else {
          out.push_back(std::move(one));
        }
      }
    }
    return out;
  }
  const auto* a = as<AllocateNode>(s);
  if (!a || !a->buffer->scope.starts_with("vta.")) return {{touches_chip(s), s}};
  // Host copies around the buffer's life move out of it.
  std::vector<StageSegment> inner = segments(a->body);
  auto lives = [&](const StageSegment& one) {
    return used_buffers(one.body).count(a->buffer.get()) > 0;
  };
  std::size_t first = 0, end = inner.size();
  while (first < end && !lives(inner[first])) out.push_back(inner[first++]);
  while (end > first && !lives(inner[end - 1])) --end;
  std::vector<Stmt> body;
  for (std::size_t i = first; i < end; ++i) {
    if (!inner[i].device) throw outlived(a->buffer, inner[i].body);
    body.push_back(inner[i].body);
  }
  if (!body.empty()) out.push_back({true, allocate(a->buffer, seq(body), a->annotations)});
  for (std::size_t i = end; i < inner.size(); ++i) out.push_back(inner[i]);
  return out;
}

/// Takes global buffers out of a straight sequence: they live as long as the function.
Stmt without_globals(const Stmt& s, std::vector<const AllocateNode*>& globals) {
  if (const auto* q = as<SeqNode>(s)) {
    std::vector<Stmt> out;
    for (const Stmt& part : q->stmts) out.push_back(without_globals(part, globals));
    return seq(std::move(out));
  }
  const auto* a = as<AllocateNode>(s);
  if (!a) return s;
  Stmt body = without_globals(a->body, globals);
  if (a->buffer->scope.starts_with("vta.")) return allocate(a->buffer, body, a->annotations);
  globals.push_back(a);
  return body;
}

}  // namespace

PrimFunc split_stages(const PrimFunc& f) {
  std::vector<const AllocateNode*> globals;
  Stmt body = without_globals(f->body, globals);
  std::vector<Stmt> launches;
  int kernels = 0, hosts = 0;
  for (const StageSegment& one : segments(body)) {
    std::string name =
        one.device ? cat(f->name, "_kernel", kernels++) : cat(f->name, "_host", hosts++);
    launches.push_back(make_ref<LaunchNode>(std::move(name), std::vector<LaunchAxis>{}, one.body));
  }
  Stmt all = seq(std::move(launches));
  for (const AllocateNode* a : globals) all = allocate(a->buffer, all, a->annotations);
  auto out = edit(f);
  out->body = all;
  return out;
}

bool is_host_kernel(const PrimFunc& kernel) { return !touches_chip(kernel->body); }

}  // namespace weft::vta
