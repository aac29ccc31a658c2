// SPDX-License-Identifier: Apache-2.0
// Launches: groups of threads, barriers among them, collectives.
#include <algorithm>
#include <unordered_map>
#include <utility>

#include "weft/ir/build.h"
#include "weft/ir/interpret_internal.h"
#include "weft/ir/intrinsics.h"
#include "weft/ir/roles.h"
#include "weft/ir/visit.h"

namespace weft::ir::interp {

namespace {

constexpr std::int64_t kMaxThreads = 16384;  // each has a stack of its own

struct LaunchCode final : Code {
  const LaunchNode* node = nullptr;
  struct Axis {
    int slot;
    ExpPtr extent;
    bool grid;
  };
  std::vector<Axis> axes;
  std::size_t sites = 0;  // set when the function is complete
  bool joint = false, tokens = false;
  std::int64_t blocks = 1;  // of a cluster
  CodePtr body;

  void run(Frame& fr) const override {
    fr.current = node;
    std::vector<std::int64_t> extent;
    std::vector<std::size_t> grid, threads;
    std::int64_t groups = 1, size = 1;
    for (std::size_t k = 0; k < axes.size(); ++k) {
      extent.push_back(std::max<std::int64_t>(0, axes[k].extent->i(fr)));
      (axes[k].grid ? grid : threads).push_back(k);
      if (__builtin_mul_overflow(axes[k].grid ? groups : size, extent[k],
                                 axes[k].grid ? &groups : &size))
        fault(fr, "launch", cat("the kernel \"", node->name, "\" has too many threads"));
    }
    if (groups == 0 || size == 0) return;
    if (joint && size > kMaxThreads)
      fault(fr, "launch",
            cat("the kernel \"", node->name, "\" has ", size,
                " threads that wait for each other; at most ", kMaxThreads, " are run"));
    if (blocks > 1) check_clusters(fr, extent);
    std::vector<std::vector<std::vector<char>>> shared(static_cast<std::size_t>(blocks));
    for (auto& of_block : shared) of_block.resize(sites);
    std::vector<std::vector<char>> global(sites);
    auto* outer_shared = std::exchange(fr.shared, &shared[0]);
    auto* outer_global = std::exchange(fr.global, &global);
    Group* outer_group = std::exchange(fr.group, nullptr);
    auto place = [&](Frame& f, const std::vector<std::size_t>& which, std::int64_t index) {
      for (std::size_t k = which.size(); k-- > 0;) {
        f.slots[at(axes[which[k]].slot)].i = index % extent[which[k]];
        index /= extent[which[k]];
      }
    };
    Group group;
    group.blocks = static_cast<std::size_t>(blocks);
    if (joint) {
      group.frames.resize(static_cast<std::size_t>(size * blocks));
      group.waiting.resize(group.frames.size());
      for (std::int64_t t = 0; t < size * blocks; ++t)
        group.fibers.push_back(std::make_unique<Fiber>());
      for (std::size_t k : threads)
        group.extents.push_back(extent[k]), group.axes.push_back(node->axes[k].axis);
    }
    const bool order = fr.machine->order_only;
    // Neighbours along blockIdx.x follow one another.
    std::vector<std::size_t> clustered = grid;
    std::stable_partition(clustered.begin(), clustered.end(),
                          [&](std::size_t k) { return node->axes[k].axis != kClusterAxis; });
    for (std::int64_t g = 0; g < groups; g += blocks) {
      if (order && (!tokens || (g > 0 && g + blocks < groups))) continue;
      for (auto& of_block : shared)
        for (auto& s : of_block) s.clear();
      if (blocks == 1) place(fr, grid, g);
      if (!joint) {
        for (std::int64_t t = 0; t < size; ++t) {
          place(fr, threads, t);
          body->run(fr);
        }
        continue;
      }
      for (std::int64_t t = 0; t < size * blocks; ++t) {
        Frame& f = group.frames[static_cast<std::size_t>(t)];
        std::vector<std::vector<char>> own =
            std::move(f.storage);  // buffers of the previous group are used again
        f = Frame();
        f.machine = fr.machine;
        f.slots = fr.slots;
        f.views = fr.views;
        f.shared = &shared[static_cast<std::size_t>(t / size)];
        f.global = fr.global;
        f.storage = std::move(own);
        f.storage.resize(sites);
        f.group = &group;
        f.thread = static_cast<std::size_t>(t);
        if (blocks > 1) place(f, clustered, g + t / size);
        place(f, threads, t % size);
      }
      group.tokens = tokens ? make_tokens() : nullptr;
      run_group(fr, group);
    }
    fr.shared = outer_shared, fr.global = outer_global, fr.group = outer_group;
  }

  static constexpr const char* kClusterAxis = "blockIdx.x";

  void check_clusters(Frame& fr, const std::vector<std::int64_t>& extent) const {
    std::int64_t along = 1;
    for (std::size_t k = 0; k < axes.size(); ++k)
      if (node->axes[k].axis == kClusterAxis) along = extent[k];
    if (along % blocks)
      fault(fr, "launch",
            cat("the kernel \"", node->name, "\" has ", along, " blocks along ", kClusterAxis,
                ", which is no multiple of its clusters of ", blocks));
  }

  struct Entry {
    const LaunchCode* code;
    Group* group;
    std::size_t thread;
  };

  /// Runs every thread up to the next barrier, again and again. The order is scattered and turns
  /// round, so that a missing barrier shows in the result.
  void run_group(Frame& outer, Group& group) const {
    std::size_t n = group.frames.size();
    std::vector<Entry> entries(n);
    group.cancelled = false;
    for (std::size_t t = 0; t < n; ++t) {
      entries[t] = {this, &group, t};
      group.waiting[t] = nullptr;
      group.fibers[t]->start(
          [](void* p, Fiber&) {
            auto* e = static_cast<Entry*>(p);
            Frame& fr = e->group->frames[e->thread];
            e->code->body->run(fr);
            while (!fr.started.empty()) fr.finish(fr.started.front().token, 0);
          },
          &entries[t]);
    }
    constexpr std::size_t kWarp = 32;
    // Products are of whole warps: where one lane of a warp tells another block that it has read a
    // tile, all of them have.
    const std::size_t unit = group.blocks > 1 && n / group.blocks % kWarp == 0 ? kWarp : 1;
    const std::size_t units = n / unit;
    std::size_t stride = units > 4 ? units * 5 / 8 | 1 : 1;  // made coprime to units below
    while (gcd(stride, units) != 1) stride += 2;
    auto cancel = [&] {
      group.cancelled = true;
      for (auto& f : group.fibers) {
        while (!f->done()) f->resume();
      }
    };
    std::vector<char> released(n, 1);
    using Turns = Machine::Turns;
    const Turns turns = outer.machine->turns;
    for (std::size_t phase = 0;; ++phase) {
      bool running = false, moved = false;
      for (std::size_t k = 0; k < n; ++k) {
        // A warp goes on as one, and then the first warp that may.
        if (turns != Turns::scattered && moved && k % kWarp == 0) break;
        const std::size_t t = turns == Turns::lowest_first ? k
                              : turns == Turns::highest_first
                                  ? n - 1 - k
                                  : scattered(phase % 2 ? n - 1 - k : k, unit, units, stride);
        if (group.fibers[t]->done()) continue;
        running = true;
        try {
          if (!released[t] && !group.waiting[t]->ready(group, t)) continue;
        } catch (...) {
          cancel();
          throw;
        }
        released[t] = 0;
        moved = true;
        group.fibers[t]->resume();
        if (std::exception_ptr error = group.fibers[t]->error()) {
          cancel();
          std::rethrow_exception(error);
        }
      }
      if (!running) return;
      if (moved) continue;
      try {
        if (!some_meet(group, released)) all_meet(outer, group, released);
      } catch (...) {
        cancel();
        throw;
      }
    }
  }

  static std::size_t scattered(std::size_t k, std::size_t unit, std::size_t units,
                               std::size_t stride) {
    return k / unit * stride % units * unit + k % unit;
  }

  /// Lets those go on who stand at a barrier of some threads that has its number.
  static bool some_meet(Group& group, std::vector<char>& released) {
    std::unordered_map<std::int64_t, std::vector<std::size_t>> who;
    bool any = false;
    for (std::size_t t = 0; t < group.frames.size(); ++t) {
      if (group.fibers[t]->done()) continue;
      const std::int64_t which = group.waiting[t]->meeting(group.frames[t]);
      if (which >= 0)
        who[which * static_cast<std::int64_t>(group.blocks) +
            static_cast<std::int64_t>(group.block_of(t))]
            .push_back(t);
    }
    for (const auto& [which, all] : who) {
      if (static_cast<std::int64_t>(all.size()) != group.frames[all[0]].expected) continue;
      for (std::size_t t : all) released[t] = 1;
      any = true;
    }
    return any;
  }

  void all_meet(Frame& outer, Group& group, std::vector<char>& released) const {
    const std::size_t n = group.frames.size();
    const Code* where = nullptr;
    std::size_t alone = n;
    for (std::size_t t = 0; t < n; ++t) {
      if (group.fibers[t]->done()) continue;
      where = group.waiting[t];
      if (alone == n && !where->together()) alone = t;
    }
    if (alone < n) {
      outer.current = group.frames[alone].current;
      fault(outer, "token",
            cat("thread ", alone, " of \"", node->name,
                "\" waits for ever: nobody is left to signal, or to meet"));
    }
    std::size_t together = 0, first_other = n;
    for (std::size_t t = 0; t < n; ++t) {
      if (!group.fibers[t]->done() && group.waiting[t] == where) ++together;
      else if (first_other == n) first_other = t;
    }
    if (together != n) {
      fault(outer, "barrier",
            cat("only ", together, " of ", n, " threads of a group of \"", node->name,
                "\" reach a barrier; thread ", first_other, " does not"));
    }
    where->meet(group);
    released.assign(n, 1);
  }

  static std::size_t gcd(std::size_t a, std::size_t b) { return b ? gcd(b, a % b) : a; }
};

/// The regions of all participants are read before any is written.
struct CollectiveCode final : Code {
  const CollectiveNode* node = nullptr;
  struct Side {
    int view;
    const BufferNode* buffer;
    std::vector<ExpPtr> mins, extents;
  };
  Side dst, src;
  ExpPtr root, result;
  int lhs = -1, rhs = -1;

  void run(Frame& fr) const override {
    fr.current = node;
    if (!fr.group) fault(fr, "collective", "a collective outside of a launch has no participants");
    fr.group->arrive(fr, this);
  }

  static std::vector<char*> elements(Frame& fr, const Side& side) {
    const View& w = fr.views[at(side.view)];
    std::vector<char*> out{w.data};
    for (std::size_t d = 0; d < side.mins.size(); ++d) {
      std::int64_t lo = side.mins[d]->i(fr), n = side.extents[d]->i(fr);
      if (lo < 0 || n < 0 || lo + n > w.shape[d]) {
        fault(fr, "bounds",
              cat("\"", side.buffer->name, "\": [", lo, ", ", lo + n, ") of dimension ", d,
                  " is outside ", w.shape[d]));
      }
      std::vector<char*> next;
      for (char* p : out) {
        for (std::int64_t k = lo; k < lo + n; ++k)
          next.push_back(p + k * w.strides[d] * side.buffer->dtype.total_bytes());
      }
      out = std::move(next);
    }
    return out;
  }

  void meet(Group& g) const override {
    std::vector<bool> among(g.axes.size(), false);
    Frame& one = g.frames[0];
    one.current = node;
    std::vector<std::size_t> order;  // positions of the collective's axes in the group's
    for (const std::string& name : node->axes) {
      auto found = std::find(g.axes.begin(), g.axes.end(), name);
      if (found == g.axes.end())
        fault(one, "collective",
              cat("the group has no axis \"", name, "\"; it has ", join(g.axes)));
      among[static_cast<std::size_t>(found - g.axes.begin())] = true;
      order.push_back(static_cast<std::size_t>(found - g.axes.begin()));
    }
    auto coordinates = [&](std::size_t t) {
      std::vector<std::int64_t> c(g.axes.size());
      auto rest = static_cast<std::int64_t>(t);
      for (std::size_t k = g.axes.size(); k-- > 0;)
        c[k] = rest % g.extents[k], rest /= g.extents[k];
      return c;
    };
    std::vector<std::vector<std::int64_t>> keys;  // coordinates outside the collective's axes
    std::vector<std::vector<std::size_t>>
        members;  // participants, in order of the collective's axes
    for (std::size_t t = 0; t < g.frames.size(); ++t) {
      std::vector<std::int64_t> c = coordinates(t), key = c;
      std::int64_t rank = 0, count = 1;
      for (std::size_t k : order)
        rank = rank * g.extents[k] + c[k], count *= g.extents[k], key[k] = 0;
      auto found = std::find(keys.begin(), keys.end(), key);
      if (found == keys.end()) {
        keys.push_back(key);
        members.emplace_back(static_cast<std::size_t>(count));
        found = keys.end() - 1;
      }
      members[static_cast<std::size_t>(found - keys.begin())][static_cast<std::size_t>(rank)] = t;
    }
    for (const auto& m : members) exchange(g, m);
  }

  void exchange(Group& g, const std::vector<std::size_t>& members) const {
    std::size_t n = members.size();
    DType t = src.buffer->dtype;
    std::vector<std::vector<Lane>> in(n);
    std::vector<std::vector<char*>> out(n);
    for (std::size_t p = 0; p < n; ++p) {
      Frame& fr = g.frames[members[p]];
      fr.current = node;
      for (char* e : elements(fr, src)) in[p].push_back(read_element(e, t));
      out[p] = elements(fr, dst);
    }
    auto write = [&](std::size_t p, const std::vector<Lane>& values, std::size_t from) {
      Frame& fr = g.frames[members[p]];
      if (from + out[p].size() > values.size())
        fault(fr, "collective",
              cat("a collective brings ", values.size(), " elements where ", out[p].size(),
                  " are wanted"));
      for (std::size_t k = 0; k < out[p].size(); ++k) write_element(out[p][k], t, values[from + k]);
    };
    Frame& first = g.frames[members[0]];
    std::int64_t r = root ? root->i(first) : 0;
    bool rooted =
        node->collective != CollectiveKind::shift && node->collective != CollectiveKind::all_reduce;
    if (rooted && (r < 0 || r >= static_cast<std::int64_t>(n)))
      fault(first, "collective", cat("participant ", r, " of ", n, " is the root"));
    auto at_root = static_cast<std::size_t>(rooted ? r : 0);
    switch (node->collective) {
      case CollectiveKind::broadcast:
        for (std::size_t p = 0; p < n; ++p) write(p, in[at_root], 0);
        break;
      case CollectiveKind::reduce:
      case CollectiveKind::all_reduce: {
        std::vector<Lane> total = in[0];
        for (std::size_t p = 1; p < n; ++p) {
          if (in[p].size() != total.size())
            fault(first, "collective", "participants reduce different numbers of elements");
          for (std::size_t k = 0; k < total.size(); ++k) {
            first.slots[at(lhs)] = total[k];
            first.slots[at(rhs)] = in[p][k];
            total[k] = result->scalar(first);
          }
        }
        for (std::size_t p = 0; p < n; ++p) {
          if (node->collective == CollectiveKind::all_reduce || p == at_root) write(p, total, 0);
        }
        break;
      }
      case CollectiveKind::shift:
        for (std::size_t p = 0; p < n; ++p) {
          auto size = static_cast<std::int64_t>(n);
          std::int64_t from = ((static_cast<std::int64_t>(p) - r) % size + size) % size;
          write(p, in[static_cast<std::size_t>(from)], 0);
        }
        break;
      case CollectiveKind::scatter:
        for (std::size_t p = 0; p < n; ++p) write(p, in[at_root], p * out[p].size());
        break;
      case CollectiveKind::gather: {
        std::vector<Lane> all;
        for (std::size_t p = 0; p < n; ++p) all.insert(all.end(), in[p].begin(), in[p].end());
        write(at_root, all, 0);
        break;
      }
    }
  }
};

}  // namespace

bool is_grid_axis(const std::string& axis) { return axis.starts_with("blockIdx"); }

void Group::arrive(Frame& fr, const Code* where) {
  waiting[fr.thread] = where;
  fibers[fr.thread]->yield();
  if (cancelled) throw Cancelled{};
}

Frame& Group::beside(Frame& fr, std::int64_t block) {
  if (block < 0 || block >= static_cast<std::int64_t>(blocks))
    fault(fr, "token", cat("block ", block, " of a cluster of ", blocks));
  const std::size_t size = frames.size() / blocks, first = static_cast<std::size_t>(block) * size;
  bool ended = true;
  for (std::size_t t = first; t < first + size; ++t) ended = ended && fibers[t]->done();
  if (ended)
    fault(fr, "token",
          cat("block ", block, " of the cluster has ended: its shared memory is gone"));
  return frames[first + fr.thread % size];
}

bool waits(const Stmt& s) {
  bool found = false;
  for_each_stmt(s, [&](const Stmt& x) {
    if (x->kind == StmtKind::collective) found = true;
    if (const auto* e = as<EvaluateNode>(x)) {
      const auto* c = as<CallNode>(e->value);
      if (c && (c->op == "sync" || c->op.ends_with("meet") || c->op.starts_with("token_")))
        found = true;
    }
  });
  return found;
}

CodePtr Compiler::launch(const LaunchNode* s) {
  if (in_launch_)
    throw Error(ErrorKind::verify, "interpret.launch",
                cat("the kernel \"", s->name, "\" is launched inside another"));
  auto out = make<LaunchCode>(s);
  for (const LaunchAxis& axis : s->axes) {
    ExpPtr extent = expr(axis.extent);
    out->axes.push_back({slot(axis.var.get()), std::move(extent), is_grid_axis(axis.axis)});
    ranges_[axis.var.get()] = {make_int(0, axis.extent->dtype), axis.extent};
  }
  out->joint = waits(s->body), out->tokens = uses_tokens(s->body);
  out->blocks = cluster_blocks(s->body);
  in_launch_ = true;
  out->body = stmt(s->body);
  in_launch_ = false;
  out->sites = sites_;
  return out;
}

CodePtr Compiler::collective(const CollectiveNode* s) {
  auto out = make<CollectiveCode>(s);
  auto side = [&](const BufferRegion& r) {
    CollectiveCode::Side x;
    x.view = view(r.buffer.get());
    x.buffer = r.buffer.get();
    for (const Range& d : r.region)
      x.mins.push_back(expr(d.min)), x.extents.push_back(expr(d.extent));
    return x;
  };
  out->dst = side(s->dst), out->src = side(s->src);
  if (s->root) out->root = expr(s->root);
  if (s->reducer) {
    if (s->reducer->lhs.size() != 1)
      throw Error(ErrorKind::lower, "interpret.unsupported",
                  cat("a collective reduces ", s->reducer->lhs.size(), " values at once"));
    out->lhs = slot(s->reducer->lhs[0].get());
    out->rhs = slot(s->reducer->rhs[0].get());
    out->result = expr(s->reducer->result[0]);
  }
  return out;
}

}  // namespace weft::ir::interp
