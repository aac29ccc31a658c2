// SPDX-License-Identifier: Apache-2.0
#pragma once
// Random programs and random schedule steps from one seed, shared by the tests that let chance
// choose: the schedule test (against the interpreter) and the conformance test (on devices). The
// steps may be refused; what is accepted must keep the meaning.

#include <cstdint>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "../unit/schedule_kit.h"
#include "weft/ir/build.h"

namespace weft::schedule::testing {

class Random {
 public:
  explicit Random(std::uint32_t seed) : engine_(seed) {}
  int below(int n) { return std::uniform_int_distribution<int>(0, n - 1)(engine_); }
  int between(int a, int b) { return std::uniform_int_distribution<int>(a, b)(engine_); }
  bool chance(int percent) { return below(100) < percent; }
  template <typename T>
  const T& pick(const std::vector<T>& items) {
    return items[static_cast<std::size_t>(below(static_cast<int>(items.size())))];
  }

 private:
  std::mt19937 engine_;
};

/// A chain of stages over matrices: element-wise, shifted, transposed, reduced, multiplied.
inline std::string random_program(Random& random) {
  int m = random.between(2, 9), n = random.between(3, 12);
  std::vector<std::string> params = {cat("A: T.Buffer((", m, ", ", n, "), \"float32\")")};
  std::string allocs, body, from = "A";
  const int stages = random.between(1, 4);
  for (int s = 0; s < stages; ++s) {
    const bool last = s + 1 == stages;
    const std::string name = cat("S", s);
    int rows = m, columns = n;
    std::string statement, domain = "SS";
    int third = 0;
    switch (random.below(6)) {
      case 0:
        statement =
            cat(name, "[vi, vj] = ", from, "[vi, vj] * T.float32(", random.between(2, 3), ")");
        break;
      case 1:
        columns = n - 1;
        statement = cat(name, "[vi, vj] = ", from, "[vi, vj] + ", from, "[vi, vj + 1]");
        if (columns < 2) {
          columns = n;
          statement = cat(name, "[vi, vj] = ", from, "[vi, vj] + T.float32(1)");
        }
        break;
      case 2:
        std::swap(rows, columns);
        statement = cat(name, "[vi, vj] = ", from, "[vj, vi]");
        break;
      case 3: {
        third = n;
        columns = random.between(2, 7);
        domain = "SSR";
        params.push_back(cat("W", s, ": T.Buffer((", n, ", ", columns, "), \"float32\")"));
        statement =
            cat("with T.init():\n                ", name, "[vi, vj] = T.float32(0)\n            ",
                name, "[vi, vj] = ", name, "[vi, vj] + ", from, "[vi, vk] * W", s, "[vk, vj]");
        break;
      }
      case 4: {
        third = n;
        columns = 1;
        domain = "SSR";
        statement = cat("with T.init():\n                ", name,
                        "[vi, vj] = T.float32(-100000)\n            ", name, "[vi, vj] = T.max(",
                        name, "[vi, vj], ", from, "[vi, vk])");
        break;
      }
      default:
        params.push_back(cat("W", s, ": T.Buffer((", m, ", ", n, "), \"float32\")"));
        statement = cat(name, "[vi, vj] = ", from, "[vi, vj] - W", s, "[vi, vj]");
    }
    const std::string shape = cat("T.Buffer((", rows, ", ", columns, "), \"float32\")");
    if (last) {
      params.push_back(cat(name, ": ", shape));
    } else {
      allocs += cat("    ", name, " = T.alloc_buffer((", rows, ", ", columns, "), \"float32\")\n");
    }
    const bool reduces = domain == "SSR";
    body += cat("    for i, j", reduces ? ", k" : "", " in T.grid(", rows, ", ", columns,
                reduces ? cat(", ", third) : std::string(), "):\n        with T.block(\"", name,
                "\"):\n            vi, vj", reduces ? ", vk" : "", " = T.axis.remap(\"", domain,
                "\", [i, j", reduces ? ", k" : "", "])\n            ", statement, "\n");
    from = name;
    m = rows;
    n = columns;
    if (n < 2) n = columns;
  }
  return cat("@T.prim_func\ndef main(", join(params), "):\n", allocs, body);
}

/// What a target can take: thread axes to bind to (none: no step binds) and scopes of caches.
struct Choices {
  std::vector<std::string> axes = {"blockIdx.x", "threadIdx.x", "threadIdx.y", "vthread"};
  std::vector<std::string> scopes = {"global", "shared", "local"};
};

class Driver {
 public:
  Driver(Schedule& sch, Random& random, Choices choices = {})
      : sch_(sch), random_(random), choices_(std::move(choices)) {}

  /// One random step; its name. Throws what the step throws.
  std::string step() {
    if (finished_) return "";
    blocks_ = all_blocks();
    if (blocks_.empty()) return "";
    const BlockRef b = random_.pick(blocks_);
    const auto loops = sch_.get_loops(b);
    const auto loop = [&]() -> LoopRef { return loops.empty() ? LoopRef{} : random_.pick(loops); };
    switch (random_.below(32)) {
      case 0:
      case 1:
        return did("split", [&] {
          sch_.split(loop(), random_.chance(50)
                                 ? Factors{None, random_.between(1, 5)}
                                 : Factors{random_.between(1, 3), None, random_.between(1, 3)});
        });
      case 2:
        if (loops.size() < 2) return "";
        return did("fuse", [&] {
          const int at = random_.below(static_cast<int>(loops.size()) - 1);
          sch_.fuse({loops[static_cast<std::size_t>(at)], loops[static_cast<std::size_t>(at) + 1]});
        });
      case 3:
      case 4: return did("reorder", [&] { sch_.reorder({loop(), loop()}); });
      case 5: return did("parallel", [&] { sch_.parallel(loop()); });
      case 6: return did("vectorize", [&] { sch_.vectorize(loop()); });
      case 7: return did("unroll", [&] { sch_.unroll(loop()); });
      case 8:
        if (choices_.axes.empty()) return "";
        return did("bind", [&] { sch_.bind(loop(), random_.pick(choices_.axes)); });
      case 9:
      case 10: return did("cache_read", [&] { sch_.cache_read(b, random_.below(2), scope()); });
      case 11: return did("cache_write", [&] { sch_.cache_write(b, 0, scope()); });
      case 12:
      case 13:
        return did("compute_at", [&] {
          sch_.compute_at(b, any_loop(), random_.chance(20), random_.chance(20) ? -2 : -1);
        });
      case 14:
      case 15:
        return did("reverse_compute_at",
                   [&] { sch_.reverse_compute_at(b, any_loop(), random_.chance(20)); });
      case 16: return did("compute_inline", [&] { sch_.compute_inline(b); });
      case 17: return did("reverse_compute_inline", [&] { sch_.reverse_compute_inline(b); });
      case 18: return did("decompose_reduction", [&] { sch_.decompose_reduction(b, loop()); });
      case 19: return did("rfactor", [&] { sch_.rfactor(loop(), random_.between(-1, 1)); });
      case 20:
        return did("transform_layout", [&] {
          static const std::vector<std::string> kMaps = {
              "lambda i, j: (j, i)", "lambda i, j: (i, j // 2, j % 2)",
              "lambda i, j: (i // 2, j, i % 2)", "lambda i, j: (i * 4 + j,)"};
          const auto path = find_block(sch_.mod(), b);
          const auto& scope_block = *path->scope()->block;
          const ir::Buffer& buffer = path->realize()->block->writes.at(0).buffer;
          for (const auto& own :
               scope_block.alloc_buffers) {  // outputs keep their layout: results are compared
            if (own == buffer)
              sch_.transform_layout(b, {"write", 0, ""}, IndexMap::parse(random_.pick(kMaps)));
          }
        });
      case 21: return did("blockize", [&] { sch_.blockize(loop()); });
      case 22:
        return did("split_tail", [&] {
          static const std::vector<std::string> kTails = {"peel", "round_up", "shift_inwards"};
          sch_.split(loop(), {None, random_.between(2, 4)}, true, false, random_.pick(kTails));
        });
      case 23:
        return did("loop_partition", [&] {
          sch_.loop_partition(loop(), {random_.between(1, 3), None});
        });
      case 24: return did("merge", [&] { sch_.merge({any_loop(), any_loop()}); });
      case 25:
        return did("reorder_block_iter_var", [&] {
          const auto path = find_block(sch_.mod(), b);
          std::vector<std::int64_t> order;
          for (std::size_t i = path->realize()->block->iters.size(); i-- > 0;)
            order.push_back(static_cast<std::int64_t>(i));
          if (random_.chance(20)) order.push_back(0);
          sch_.reorder_block_iter_var(b, order);
        });
      case 26:
        return did("transform_block_layout", [&] {
          static const std::vector<std::string> kMaps = {
              "lambda i, j: (j, i)", "lambda i, j: (i, j // 2, j % 2)", "lambda i, j, k: (j, k, i)",
              "lambda i, j, k: (i, j, k // 2, k % 2)"};
          sch_.transform_block_layout(b, IndexMap::parse(random_.pick(kMaps)));
        });
      case 27:
        return did("reindex", [&] {
          sch_.reindex(b, {random_.chance(50) ? "read" : "write", random_.below(2), ""});
        });
      case 28:
        if (loops.empty()) return "";
        return random_.chance(50)
                   ? did("read_at", [&] { sch_.read_at(loop(), b, random_.below(2), scope()); })
                   : did("write_at", [&] { sch_.write_at(loop(), b, 0, scope()); });
      case 29:
        return did("pad_einsum", [&] {
          sch_.pad_einsum(b, {random_.below(3), random_.below(3), random_.below(3)});
        });
      case 30: return did("cache_inplace", [&] { sch_.cache_inplace(b, 0, scope()); });
      default:
        // Later steps could not know what the circular buffer no longer holds: it ends a schedule.
        return did("rolling_buffer", [&] {
          sch_.rolling_buffer(b, 0);
          finished_ = true;
        });
    }
  }

 private:
  template <typename F>
  std::string did(const char* name, F&& f) {
    last = name;
    f();
    return name;
  }
  std::string scope() { return random_.pick(choices_.scopes); }
  LoopRef any_loop() {
    const auto loops = sch_.get_loops(random_.pick(blocks_));
    return loops.empty() ? LoopRef{} : random_.pick(loops);
  }
  std::vector<BlockRef> all_blocks() {
    std::vector<BlockRef> out;
    add(sch_.get_block("root"), out);
    return out;
  }
  void add(BlockRef parent, std::vector<BlockRef>& out) {
    for (BlockRef child : sch_.get_child_blocks(parent)) {
      out.push_back(child);
      add(child, out);
    }
  }

 public:
  std::string last;

 private:
  Schedule& sch_;
  Random& random_;
  Choices choices_;
  std::vector<BlockRef> blocks_;
  bool finished_ = false;
};

}  // namespace weft::schedule::testing
