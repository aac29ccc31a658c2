// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/split_stages.h"

#include "weft/base/error.h"
#include "weft/ir/build.h"
#include "weft/ir/visit.h"

namespace weft::vta {

using namespace ir;

namespace {

bool touches_chip(const Stmt& s) {
  bool found = false;
  for (const BufferNode* b : used_buffers(s)) found |= b->scope.starts_with("vta.");
  return found;
}

struct Segment {
  bool device;
  Stmt body;
};

std::vector<Segment> segments(const Stmt& s, const PrimFunc& f) {
  std::vector<Segment> out;
  if (const auto* seq_node = as<SeqNode>(s)) {
    for (const Stmt& part : seq_node->stmts) {
      for (Segment& one : segments(part, f)) {
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
  std::vector<Segment> inner = segments(a->body, f);
  auto lives = [&](const Segment& one) {
    return used_buffers(one.body).count(a->buffer.get()) > 0;
  };
  std::size_t first = 0, end = inner.size();
  while (first < end && !lives(inner[first])) out.push_back(inner[first++]);
  std::vector<Segment> after;
  while (end > first && !lives(inner[end - 1])) --end;
  std::vector<Stmt> body;
  for (std::size_t i = first; i < end; ++i) {
    if (!inner[i].device)
      throw Error(ErrorKind::lower, "vta.lower.stages",
                  cat("\"", a->buffer->name, "\" in ", a->buffer->scope,
                      " would have to survive a copy that the host makes"))
          .note("on-chip memories are empty between kernels")
          .help("store it to a global buffer first, or compute the host's part earlier");
    body.push_back(inner[i].body);
  }
  if (!body.empty()) out.push_back({true, allocate(a->buffer, seq(body), a->annotations)});
  for (std::size_t i = end; i < inner.size(); ++i) out.push_back(inner[i]);
  return out;
}

class Splitter {
 public:
  explicit Splitter(const PrimFunc& f) : f_(f) {}

  Stmt run(const Stmt& s) {
    if (const auto* a = as<AllocateNode>(s); a && !a->buffer->scope.starts_with("vta."))
      return allocate(a->buffer, run(a->body), a->annotations);
    if (const auto* q = as<SeqNode>(s)) {
      // Global buffers may begin anywhere in the sequence; everything else is in segments.
      std::vector<Stmt> out, run_of;
      auto flush = [&] {
        if (run_of.empty()) return;
        for (const Segment& one : segments(seq(run_of), f_)) out.push_back(launch(one));
        run_of.clear();
      };
      for (const Stmt& part : q->stmts) {
        const auto* a = as<AllocateNode>(part);
        if (a && !a->buffer->scope.starts_with("vta.")) {
          flush();
          out.push_back(run(part));
        } else {
          run_of.push_back(part);
        }
      }
      flush();
      return seq(out);
    }
    std::vector<Stmt> out;
    for (const Segment& one : segments(s, f_)) out.push_back(launch(one));
    return seq(out);
  }

 private:
  Stmt launch(const Segment& one) {
    std::string name =
        cat(f_->name, one.device ? "_kernel" : "_host", one.device ? kernels_++ : hosts_++);
    return make_ref<LaunchNode>(std::move(name), std::vector<LaunchAxis>{}, one.body);
  }

  const PrimFunc& f_;
  int kernels_ = 0, hosts_ = 0;
};

}  // namespace

PrimFunc split_stages(const PrimFunc& f) {
  auto out = edit(f);
  out->body = Splitter(f).run(f->body);
  return out;
}

bool is_host_kernel(const PrimFunc& kernel) { return !touches_chip(kernel->body); }

}  // namespace weft::vta
