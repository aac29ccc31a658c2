// SPDX-License-Identifier: Apache-2.0
// Products are sums, and sums of int32 with wrap-around commute: a GEMM instruction may therefore
// be regrouped so that a few accumulator rows stay in registers while all their terms are added.
// The regrouping of a range of micro-operations is kept until those micro-operations change.
#include <algorithm>
#include <cstring>

#include "weft/base/hash.h"
#include "weft/targets/vta/engine.h"

namespace weft::vta {
namespace {

/// Micro-operations with the same relative inputs and the same weights, hence rows of one product.
struct Cluster {
  struct Row {
    std::uint32_t dst, src;
  };
  std::vector<Row> rows;
  std::vector<Row> steps;  // {weight, input relative to the row's}: reuse of the pair type
};

/// Registers are loaded whole, so nothing that they hold should cross a cache line.
template <typename T>
class Aligned {
 public:
  void assign(std::size_t n, T value) {
    room_.assign(n + kLine / sizeof(T), value);
    auto at = reinterpret_cast<std::uintptr_t>(room_.data());
    data_ = room_.data() + (kLine - at % kLine) % kLine / sizeof(T);
  }
  T* data() { return data_; }
  const T* data() const { return data_; }

 private:
  static constexpr std::size_t kLine = 64;
  std::vector<T> room_;
  T* data_ = nullptr;
};

struct Plan {
  std::uint32_t end = 0;
  bool valid = false;
  std::uint32_t max_dst = 0, max_src = 0, max_wgt = 0;
  std::vector<Cluster> clusters;
};

class FastEngine final : public Engine {
 public:
  FastEngine(const Isa& isa, const KernelSet& kernels)
      : Engine(isa),
        c_(isa.config()),
        k_(kernels),
        block_(c_.block_in()),
        batch_(static_cast<std::uint32_t>(c_.batch())),
        lanes_(c_.lanes()) {
    for (int m = 0; m < 6; ++m) elem_[m] = c_.elem_bytes(static_cast<MemType>(m));
    depth_acc_ = c_.depth(MemType::acc), depth_inp_ = c_.depth(MemType::inp),
    depth_wgt_ = c_.depth(MemType::wgt), depth_uop_ = c_.depth(MemType::uop);
    inp_row_ = static_cast<std::uint32_t>(block_ * k_.inp_scale);
    wgt_elem_ = static_cast<std::uint32_t>(k_.wgt_bytes(block_));
    inp_.assign(static_cast<std::size_t>(depth_inp_) * batch_ * inp_row_ + 64, k_.inp_zero);
    wgt_.assign(static_cast<std::size_t>(depth_wgt_) * wgt_elem_ + 64, std::byte{0});
    acc_.assign(static_cast<std::size_t>(depth_acc_ * lanes_) + 16, 0);
    uop_.resize(static_cast<std::size_t>(depth_uop_));
    plans_.resize(static_cast<std::size_t>(depth_uop_));
    stamp_.resize(static_cast<std::size_t>(depth_acc_), 0);
    high_[0] = high_[1] = high_[2] = high_[3] = 0;
  }

  void clear() override {
    std::fill_n(inp_.data(), high_[0] * batch_ * inp_row_, k_.inp_zero);
    std::fill_n(wgt_.data(), high_[1] * wgt_elem_, std::byte{0});
    std::fill_n(acc_.data(), high_[2] * static_cast<std::size_t>(lanes_), 0);
    // Micro-operations stay: a program that reads what it never loaded is refused by the checker,
    // and keeping them lets the plans of a program that runs again survive. Reads of unloaded ones
    // see zero: see uop_valid_.
    uop_valid_ = 0;
    high_[0] = high_[1] = high_[2] = 0;
  }

  void load(const Insn& n, const std::byte* dram) override {
    if (n.is_nop()) return;
    std::int64_t total = n.sram_elements();
    std::int64_t depth = n.mem == MemType::inp   ? depth_inp_
                         : n.mem == MemType::wgt ? depth_wgt_
                         : n.mem == MemType::uop ? depth_uop_
                                                 : depth_acc_;
    if (n.sram + total > depth) {
      fault_sram(n, to_string(n.mem == MemType::acc8 ? MemType::acc : n.mem), n.sram,
                 n.sram + total - 1, depth);
    }
    if (n.mem == MemType::uop) return load_uops(n, dram);
    std::size_t& high = high_[n.mem == MemType::inp ? 0 : n.mem == MemType::wgt ? 1 : 2];
    high = std::max(high, static_cast<std::size_t>(n.sram + total));
    std::int64_t at = n.sram;
    const std::int64_t bytes = elem_[static_cast<int>(n.mem)];
    std::int64_t row = n.x_pad_0 + n.x_size + n.x_pad_1;
    if (n.y_pad_0) zero(n.mem, at, n.y_pad_0 * row), at += n.y_pad_0 * row;
    if (n.x_pad_0 == 0 && n.x_pad_1 == 0 && n.x_size == n.x_stride && n.y_size) {
      copy(n.mem, at, dram, std::int64_t{n.y_size} * n.x_size);
      at += std::int64_t{n.y_size} * n.x_size;
    } else {
      for (std::uint32_t y = 0; y < n.y_size; ++y) {
        if (n.x_pad_0) zero(n.mem, at, n.x_pad_0), at += n.x_pad_0;
        copy(n.mem, at, dram + std::int64_t{y} * n.x_stride * bytes, n.x_size);
        at += n.x_size;
        if (n.x_pad_1) zero(n.mem, at, n.x_pad_1), at += n.x_pad_1;
      }
    }
    if (n.y_pad_1) zero(n.mem, at, n.y_pad_1 * row);
  }

  void store(const Insn& n, std::byte* dram) override {
    if (n.is_nop()) return;
    std::int64_t total = std::int64_t{n.y_size} * n.x_size;
    if (n.sram + total > depth_acc_) fault_sram(n, "acc", n.sram, n.sram + total - 1, depth_acc_);
    const std::int32_t* src = acc_.data() + std::int64_t{n.sram} * lanes_;
    std::int64_t row = std::int64_t{n.x_size} * lanes_;
    if (n.x_stride == n.x_size) {
      k_.narrow(reinterpret_cast<std::int8_t*>(dram), src,
                static_cast<std::size_t>(total * lanes_));
      return;
    }
    for (std::uint32_t y = 0; y < n.y_size; ++y) {
      k_.narrow(reinterpret_cast<std::int8_t*>(dram) + std::int64_t{y} * n.x_stride * lanes_,
                src + y * row, static_cast<std::size_t>(row));
    }
  }

  void gemm(const Insn& n) override {
    if (n.uop_runs() <= 0) return;
    if (n.iter_out == 1 && n.iter_in == 1 && n.uop_end == n.uop_begin + 1 &&
        n.uop_end <= uop_valid_ && !n.reset)
      return single(n);
    const Plan& plan = plan_of(n);
    std::int64_t y = n.iter_out - 1, x = n.iter_in - 1;
    std::int64_t dst = plan.max_dst + y * n.dst_out + x * n.dst_in;
    if (dst >= depth_acc_) fault_sram(n, "acc", dst, dst, depth_acc_);
    high_[2] = std::max(high_[2], static_cast<std::size_t>(dst) + 1);
    if (n.reset) return reset(n);
    std::int64_t src = plan.max_src + y * n.src_out + x * n.src_in,
                 wgt = plan.max_wgt + y * n.wgt_out + x * n.wgt_in;
    if (src >= depth_inp_) fault_sram(n, "inp", src, src, depth_inp_);
    if (wgt >= depth_wgt_) fault_sram(n, "wgt", wgt, wgt, depth_wgt_);
    const Loop out{n.iter_out, n.dst_out, n.src_out, n.wgt_out},
        in{n.iter_in, n.dst_in, n.src_in, n.wgt_in};
    run(plan, out, in);
  }

  void alu(const Insn& n) override {
    if (n.uop_runs() <= 0) return;
    const Plan& plan = plan_of(n);
    std::int64_t last_y = n.iter_out - 1, last_x = n.iter_in - 1;
    std::int64_t dst = plan.max_dst + last_y * n.dst_out + last_x * n.dst_in;
    if (dst >= depth_acc_) fault_sram(n, "acc", dst, dst, depth_acc_);
    high_[2] = std::max(high_[2], static_cast<std::size_t>(dst) + 1);
    if (!n.use_imm) {
      std::int64_t src = plan.max_src + last_y * n.src_out + last_x * n.src_in;
      if (src >= depth_acc_) fault_sram(n, "acc", src, src, depth_acc_);
    } else if (n.alu == AluOp::shr && (n.imm < -31 || n.imm > 31)) {
      fault_shift(n.imm);
    }
    bool good = true;
    int op = static_cast<int>(n.alu);
    std::uint32_t count = n.uop_end - n.uop_begin;
    auto run = [&](std::uint32_t d, std::uint32_t d_step, std::uint32_t s, std::uint32_t s_step,
                   std::size_t times) {
      good &= k_.alu(op, n.use_imm, n.imm, acc_.data(), lanes_, d, d_step, s, s_step, times);
    };
    if (count == 1) {
      Uop u = uop_at(n.uop_begin);
      if (n.iter_in == 1) {
        run(u.dst, n.dst_out, u.src, n.src_out, n.iter_out);
      } else {
        for (std::uint32_t y = 0; y < n.iter_out; ++y)
          run(u.dst + y * n.dst_out, n.dst_in, u.src + y * n.src_out, n.src_in, n.iter_in);
      }
    } else {
      for (std::uint32_t y = 0; y < n.iter_out; ++y) {
        for (std::uint32_t x = 0; x < n.iter_in; ++x) {
          std::uint32_t d = y * n.dst_out + x * n.dst_in, s = y * n.src_out + x * n.src_in;
          // Runs of micro-operations that advance by one are one call.
          for (std::uint32_t i = n.uop_begin; i < n.uop_end;) {
            Uop u = uop_at(i);
            std::uint32_t j = i + 1;
            while (j < n.uop_end && uop_at(j).dst == u.dst + (j - i) &&
                   (n.use_imm || uop_at(j).src == u.src + (j - i)))
              ++j;
            run(u.dst + d, 1, u.src + s, 1, j - i);
            i = j;
          }
        }
      }
    }
    if (!good) {
      throw Error(ErrorKind::fault, "vta.alu.shift",
                  "a lane of the second operand shifts by more than 31")
          .note(
              "legal: 0 to 31 to the right, -31 to -1 to the left; the chips' readings differ "
              "beyond that");
    }
  }

  std::vector<std::int32_t> acc(std::uint32_t element) const override {
    const std::int32_t* begin = acc_.data() + std::int64_t{element} * lanes_;
    return {begin, begin + lanes_};
  }
  std::uint32_t uop_word(std::uint32_t index) const override {
    return index < uop_valid_ ? uop_.at(index) : 0;
  }

 private:
  struct Loop {
    std::uint32_t extent, dst, src, wgt;
    bool operator==(const Loop&) const = default;
  };

  std::byte* wgt_at(std::int64_t element) { return wgt_.data() + element * wgt_elem_; }
  Uop uop_at(std::uint32_t i) const { return isa_.decode_uop(uop_[i]); }

  void zero(MemType mem, std::int64_t at, std::int64_t count) {
    switch (mem) {
      case MemType::inp:
        std::fill_n(inp_.data() + at * batch_ * inp_row_,
                    static_cast<std::size_t>(count) * batch_ * inp_row_, k_.inp_zero);
        break;
      case MemType::wgt:
        std::fill_n(wgt_at(at), static_cast<std::size_t>(count) * wgt_elem_, std::byte{0});
        break;
      default: std::fill_n(acc_.data() + at * lanes_, count * lanes_, 0); break;
    }
  }

  void copy(MemType mem, std::int64_t at, const std::byte* from, std::int64_t count) {
    const std::int8_t* raw = reinterpret_cast<const std::int8_t*>(from);
    switch (mem) {
      case MemType::inp:
        k_.pack_inp(inp_.data() + at * batch_ * inp_row_, raw,
                    static_cast<std::size_t>(count) * batch_, block_);
        break;
      case MemType::wgt:
        for (std::int64_t i = 0; i < count; ++i)
          k_.pack_wgt(wgt_at(at + i), raw + i * block_ * block_, block_);
        break;
      case MemType::acc8:
        k_.widen(acc_.data() + at * lanes_, raw, static_cast<std::size_t>(count * lanes_));
        break;
      default:
        std::memcpy(acc_.data() + at * lanes_, from, static_cast<std::size_t>(count * lanes_) * 4);
        break;
    }
  }

  void load_uops(const Insn& n, const std::byte* dram) {
    // Micro-operation memory is one-dimensional, but the format allows rows and pads.
    std::int64_t row = n.x_pad_0 + n.x_size + n.x_pad_1, at = n.sram;
    if (uop_valid_ < n.sram) {  // what this run has not written reads as zero
      replace(uop_valid_, nullptr, static_cast<std::int64_t>(n.sram) - uop_valid_);
    }
    if (n.y_pad_0) replace(at, nullptr, n.y_pad_0 * row), at += n.y_pad_0 * row;
    for (std::uint32_t y = 0; y < n.y_size; ++y) {
      if (n.x_pad_0) replace(at, nullptr, n.x_pad_0), at += n.x_pad_0;
      replace(at, dram + std::int64_t{y} * n.x_stride * 4, n.x_size), at += n.x_size;
      if (n.x_pad_1) replace(at, nullptr, n.x_pad_1), at += n.x_pad_1;
    }
    if (n.y_pad_1) replace(at, nullptr, n.y_pad_1 * row), at += n.y_pad_1 * row;
    uop_valid_ = std::max(uop_valid_, static_cast<std::uint32_t>(at));
  }

  void replace(std::int64_t at, const std::byte* from, std::int64_t count) {
    auto bytes = static_cast<std::size_t>(count) * 4;
    std::uint32_t* to = uop_.data() + at;
    if (from ? std::memcmp(to, from, bytes) == 0
             : std::all_of(to, to + count, [](std::uint32_t v) { return v == 0; }))
      return;
    if (from) {
      std::memcpy(to, from, bytes);
    } else {
      std::fill_n(to, count, 0u);
    }
    std::int64_t first = std::max<std::int64_t>(0, at - longest_plan_);
    for (std::int64_t i = first; i < at + count; ++i) {
      Plan& plan = plans_[static_cast<std::size_t>(i)];
      if (plan.valid && plan.end > at) plan.valid = false;
    }
  }

  const Plan& plan_of(const Insn& n) {
    if (n.uop_end > depth_uop_)
      fault_sram(n, "uop", n.uop_begin, std::int64_t{n.uop_end} - 1, depth_uop_);
    if (n.uop_end > uop_valid_) {
      replace(uop_valid_, nullptr, std::int64_t{n.uop_end} - uop_valid_);
      uop_valid_ = n.uop_end;
    }
    Plan& plan = plans_[n.uop_begin];
    if (!plan.valid || plan.end != n.uop_end) make(plan, n.uop_begin, n.uop_end);
    return plan;
  }

  void make(Plan& plan, std::uint32_t begin, std::uint32_t end) {
    plan.end = end;
    plan.valid = true;
    plan.clusters.clear();
    plan.max_dst = plan.max_src = plan.max_wgt = 0;
    longest_plan_ = std::max<std::int64_t>(longest_plan_, end - begin);
    groups_.clear();
    next_stamp();
    group_of_.resize(static_cast<std::size_t>(depth_acc_));
    for (std::uint32_t i = begin; i < end; ++i) {
      Uop u = uop_at(i);
      plan.max_dst = std::max(plan.max_dst, u.dst), plan.max_src = std::max(plan.max_src, u.src),
      plan.max_wgt = std::max(plan.max_wgt, u.wgt);
      if (stamp_[u.dst] != epoch_) {
        stamp_[u.dst] = epoch_;
        group_of_[u.dst] = static_cast<std::uint32_t>(groups_.size());
        groups_.push_back({u.dst, u.src, 0, {}});
      }
      Group& g = groups_[group_of_[u.dst]];
      g.steps.push_back({u.wgt, u.src});
      g.src = std::min(g.src, u.src);
    }
    for (Group& g : groups_) {
      for (Cluster::Row& step : g.steps) {
        step.src -= g.src;
        g.hash = hash_combine(g.hash, (std::uint64_t{step.dst} << 32) | step.src);
      }
      Cluster* home = nullptr;
      // Neighbouring groups usually belong together; looking back a few is enough.
      for (std::size_t k = plan.clusters.size();
           k-- > 0 && plan.clusters.size() - k <= 64 && !home;) {
        Cluster& c = plan.clusters[k];
        if (cluster_hash_[k] == g.hash && c.steps.size() == g.steps.size() &&
            std::memcmp(c.steps.data(), g.steps.data(), g.steps.size() * sizeof(Cluster::Row)) ==
                0) {
          home = &c;
        }
      }
      if (!home) {
        cluster_hash_.resize(plan.clusters.size());
        cluster_hash_.push_back(g.hash);
        plan.clusters.push_back({{}, std::move(g.steps)});
        home = &plan.clusters.back();
      }
      home->rows.push_back({g.dst, g.src});
    }
    cluster_hash_.clear();
  }

  void next_stamp() {
    if (++epoch_ == 0) std::fill(stamp_.begin(), stamp_.end(), 0), epoch_ = 1;
  }

  void reset(const Insn& n) {
    const auto lanes = static_cast<std::size_t>(lanes_);
    const bool one = n.uop_end == n.uop_begin + 1;
    // Elements in a row are one piece.
    const bool rows = one && (n.iter_in == 1 || n.dst_in == 1);
    if (rows) {
      const std::uint32_t first = uop_at(n.uop_begin).dst;
      const bool all = n.iter_out == 1 || n.dst_out == n.iter_in;
      const std::size_t length = (all ? n.iter_out : 1) * std::size_t{n.iter_in} * lanes;
      for (std::uint32_t y = 0; y < (all ? 1 : n.iter_out); ++y)
        std::fill_n(acc_.data() + (first + std::size_t{y} * n.dst_out) * lanes, length, 0);
      return;
    }
    for (std::uint32_t y = 0; y < n.iter_out; ++y) {
      for (std::uint32_t x = 0; x < n.iter_in; ++x) {
        for (std::uint32_t i = n.uop_begin; i < n.uop_end; ++i) {
          std::size_t dst = uop_at(i).dst + y * n.dst_out + x * n.dst_in;
          std::fill_n(acc_.data() + dst * lanes, lanes, 0);
        }
      }
    }
  }

  /// A plan under the two loops. Loops that keep the destination lengthen the sums, loops that keep
  /// the weights add rows, the others are run around. Rows and steps are relative, so clusters of
  /// one row share them.
  void run(const Plan& plan, const Loop& out, const Loop& in) {
    const std::uint32_t element = batch_ * inp_row_;
    const Loop* around[2];
    int arounds = 0;
    sum_loops_.assign(1, {0, 0});
    row_loops_.assign(1, {0, 0});
    Loop wanted[2] = {{1, 0, 0, 0}, {1, 0, 0, 0}};
    std::size_t row_count = 0;
    for (const Loop* loop : {&in, &out}) {
      if (loop->extent == 1) continue;
      if (loop->dst != 0 && loop->wgt == 0) wanted[row_count++] = *loop;
      if (loop->dst == 0) {
        std::size_t n = sum_loops_.size();
        for (std::uint32_t i = 1; i < loop->extent; ++i) {
          for (std::size_t j = 0; j < n; ++j)
            sum_loops_.push_back({sum_loops_[j].inp + i * loop->src * element,
                                  sum_loops_[j].wgt + i * loop->wgt * wgt_elem_});
        }
      } else if (loop->wgt == 0) {
        std::size_t n = row_loops_.size();
        for (std::uint32_t i = 1; i < loop->extent; ++i) {
          for (std::size_t j = 0; j < n; ++j)
            row_loops_.push_back(
                {row_loops_[j].dst + i * loop->dst, row_loops_[j].src + i * loop->src});
        }
      } else {
        around[arounds++] = loop;
      }
    }
    std::uint32_t extent0 = arounds > 0 ? around[0]->extent : 1,
                  extent1 = arounds > 1 ? around[1]->extent : 1;
    // Rows of the same loops again, as neighbouring instructions mostly have them.
    bool rows_ready = one_row_made_ && wanted[0] == made_[0] && wanted[1] == made_[1];
    made_[0] = wanted[0], made_[1] = wanted[1];
    for (const Cluster& cluster : plan.clusters) {
      std::uint32_t dst = 0, src = 0, wgt = 0;
      if (cluster.rows.size() == 1) {
        dst = cluster.rows[0].dst, src = cluster.rows[0].src;
        if (!rows_ready) make_rows(kOneRow);
        rows_ready = true;
      } else {
        make_rows(cluster.rows);
        rows_ready = false;
      }
      one_row_made_ = rows_ready;
      const std::vector<GemmStep>* steps = &sum_loops_;
      if (cluster.steps.size() == 1) {
        wgt = cluster.steps[0].dst, src += cluster.steps[0].src;
      } else {
        steps_.clear();
        for (const GemmStep& loop : sum_loops_) {
          for (const Cluster::Row& s : cluster.steps)
            steps_.push_back({loop.inp + s.src * element, loop.wgt + s.dst * wgt_elem_});
        }
        steps = &steps_;
      }
      for (std::uint32_t b = 0; b < extent1; ++b) {
        for (std::uint32_t a = 0; a < extent0; ++a) {
          std::uint32_t d = dst, s = src, w = wgt;
          if (arounds > 0)
            d += a * around[0]->dst, s += a * around[0]->src, w += a * around[0]->wgt;
          if (arounds > 1)
            d += b * around[1]->dst, s += b * around[1]->src, w += b * around[1]->wgt;
          multiply(d, s, w, *steps);
        }
      }
    }
  }

  /// rows_ = (cluster rows x row loops) x batch, in pieces within which `KernelSet::rows`
  /// neighbours are distinct.
  void make_rows(const std::vector<Cluster::Row>& cluster_rows) {
    rows_.clear();
    pieces_.clear();
    const std::size_t window = static_cast<std::size_t>(k_.rows);
    next_stamp();
    std::size_t piece = 0;
    group_of_.resize(static_cast<std::size_t>(depth_acc_));
    for (const Cluster::Row& r : cluster_rows) {
      for (const Cluster::Row& loop : row_loops_) {
        std::uint32_t d = r.dst + loop.dst, s = r.src + loop.src;
        // Seen before: a new piece begins unless the two can never be summed together.
        if (stamp_[d] == epoch_ && group_of_[d] >= piece && rows_.size() - group_of_[d] < window) {
          pieces_.push_back(rows_.size());
          piece = rows_.size();
        }
        stamp_[d] = epoch_;
        group_of_[d] = static_cast<std::uint32_t>(rows_.size());
        for (std::uint32_t b = 0; b < batch_; ++b) {
          rows_.push_back(
              {(d * batch_ + b) * static_cast<std::uint32_t>(block_), (s * batch_ + b) * inp_row_});
        }
      }
    }
    pieces_.push_back(rows_.size());
  }

  void multiply(std::uint32_t dst, std::uint32_t src, std::uint32_t wgt,
                const std::vector<GemmStep>& steps) {
    GemmCall call;
    call.acc = acc_.data() + std::size_t{dst} * static_cast<std::size_t>(lanes_);
    call.inp = inp_.data() + std::size_t{src} * batch_ * inp_row_;
    call.wgt = wgt_.data() + std::size_t{wgt} * wgt_elem_;
    call.steps = steps.data();
    call.step_count = steps.size();
    call.block = block_;
    std::size_t begin = 0;
    for (std::size_t end : pieces_) {
      call.rows = rows_.data() + begin;
      call.row_count = end - begin;
      k_.gemm(call);
      begin = end;
    }
  }

  void single(const Insn& n) {
    Uop u = uop_at(n.uop_begin);
    if (u.dst >= depth_acc_) fault_sram(n, "acc", u.dst, u.dst, depth_acc_);
    if (u.src >= depth_inp_) fault_sram(n, "inp", u.src, u.src, depth_inp_);
    if (u.wgt >= depth_wgt_) fault_sram(n, "wgt", u.wgt, u.wgt, depth_wgt_);
    high_[2] = std::max(high_[2], std::size_t{u.dst} + 1);
    GemmRow rows[64];
    for (std::uint32_t b = 0; b < batch_; ++b)
      rows[b] = {b * static_cast<std::uint32_t>(block_), b * inp_row_};
    const GemmStep step{0, 0};
    k_.gemm({acc_.data() + std::size_t{u.dst} * static_cast<std::size_t>(lanes_),
             inp_.data() + std::size_t{u.src} * batch_ * inp_row_,
             wgt_.data() + std::size_t{u.wgt} * wgt_elem_, rows, batch_, &step, 1, block_});
  }

  struct Group {
    std::uint32_t dst, src;
    std::uint64_t hash;
    std::vector<Cluster::Row> steps;
  };

  const Config& c_;
  const KernelSet& k_;
  int block_;
  std::uint32_t batch_;
  int lanes_;
  std::int64_t depth_acc_, depth_inp_, depth_wgt_, depth_uop_;
  std::int64_t elem_[6];  // bytes of an element of DRAM, by MemType
  std::uint32_t inp_row_, wgt_elem_;
  Aligned<std::byte> inp_, wgt_;
  Aligned<std::int32_t> acc_;
  std::vector<std::uint32_t> uop_;
  std::uint32_t uop_valid_ = 0;  // micro-operations below this index are this run's
  std::size_t high_[4];          // elements of inp, wgt, acc that may be non-zero
  std::vector<Plan> plans_;
  std::int64_t longest_plan_ = 1;
  std::vector<std::uint32_t> stamp_, group_of_;
  std::uint32_t epoch_ = 0;
  std::vector<Group> groups_;
  std::vector<std::uint64_t> cluster_hash_;
  inline static const std::vector<Cluster::Row> kOneRow{{0, 0}};
  std::vector<GemmStep> steps_, sum_loops_;  // scratch of run()
  std::vector<Cluster::Row> row_loops_;
  std::vector<GemmRow> rows_;
  Loop made_[2] = {};          // the row loops that rows_ are of
  bool one_row_made_ = false;  // for clusters of one row
  std::vector<std::size_t> pieces_;
};

}  // namespace

std::unique_ptr<Engine> make_fast_engine(const Isa& isa, const KernelSet* kernels) {
  return std::make_unique<FastEngine>(isa, kernels ? *kernels : *usable_kernels().front());
}

}  // namespace weft::vta
