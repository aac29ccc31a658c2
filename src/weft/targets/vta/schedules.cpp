// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/schedules.h"

#include <algorithm>
#include <array>
#include <functional>

#include "weft/base/integers.h"
#include "weft/targets/vta/execute.h"

namespace weft::vta {

namespace {

using Loop = UopKernel::Loop;

void positive(std::initializer_list<std::pair<const char*, std::int64_t>> values) {
  for (const auto& [name, value] : values) {
    if (value < 1)
      throw Error(ErrorKind::value, "vta.schedule.extent", cat(name, " is ", value))
          .note("legal: at least 1");
  }
}

/// Slots of the on-chip memories in turn, with the tokens that make sharing them safe. Tokens are
/// only given when somebody will take them, so they balance without a prologue.
class Pipeline {
 public:
  Pipeline(Builder& builder, int threads, std::int64_t chunks, std::int64_t tiles)
      : b_(builder), threads_(threads), chunks_(chunks), tiles_(tiles) {}

  std::int64_t begin_load() {
    if (chunk_ >= threads_) b_.pop(Stage::compute, Stage::load);
    return chunk_ % threads_;
  }
  void end_load() { b_.push(Stage::load, Stage::compute); }
  void begin_sum() { b_.pop(Stage::load, Stage::compute); }
  void end_sum() {
    if (chunk_ + threads_ < chunks_) b_.push(Stage::compute, Stage::load);
    ++chunk_;
  }
  std::int64_t begin_tile() {
    if (tile_ >= threads_) b_.pop(Stage::store, Stage::compute);
    return tile_ % threads_;
  }
  void begin_store() {
    b_.push(Stage::compute, Stage::store);
    b_.pop(Stage::compute, Stage::store);
  }
  void end_store() {
    if (tile_ + threads_ < tiles_) b_.push(Stage::store, Stage::compute);
    ++tile_;
  }

 private:
  Builder& b_;
  std::int64_t threads_, chunks_, tiles_, chunk_ = 0, tile_ = 0;
};

Uop at(std::int64_t dst, std::int64_t src = 0, std::int64_t wgt = 0) {
  return {static_cast<std::uint32_t>(dst), static_cast<std::uint32_t>(src),
          static_cast<std::uint32_t>(wgt)};
}

/// acc tile of `channels` x `inner` elements starting at `base`, channels `pitch` apart and inner
/// `step` apart.
void finish_tile(Builder& b, const Epilogue& e, std::int64_t base, std::int64_t channels,
                 std::int64_t pitch, std::int64_t inner, std::int64_t step, std::int64_t bias_at) {
  UopKernel in_place =
      UopKernel::compress({{channels, pitch, pitch, 0}, {inner, step, step, 0}}, at(base, base));
  if (e.shift) b.alu_imm(AluOp::shr, in_place, e.shift);
  if (e.bias)
    b.alu(AluOp::add,
          UopKernel::compress({{channels, pitch, 1, 0}, {inner, step, 0, 0}}, at(base, bias_at)));
  if (e.clip) {
    b.alu_imm(AluOp::max, in_place, e.low);
    b.alu_imm(AluOp::min, in_place, e.high);
  }
}

/// A tile's extent, and the elements that the tile needs where it is `n`.
struct TileExtent {
  const char* name;
  std::int64_t value;
  std::function<std::int64_t(std::int64_t n)> need;
};

/// Refuses tiles that need more than a thread has of a memory; says which extent is to be smaller.
void check_fits(MemType mem, std::int64_t have, int threads,
                std::initializer_list<TileExtent> extents) {
  const TileExtent& first = *extents.begin();
  const std::int64_t need = first.need(first.value);
  if (need <= have) return;
  std::string repair = "smaller tiles, or one thread";
  for (const TileExtent& e : extents) {
    std::int64_t n = e.value;
    while (n > 0 && e.need(n) > have) --n;
    if (n == 0) continue;
    repair = cat("a tile with ", e.name, " ", n, " fits (now ", e.value, ")");
    break;
  }
  throw Error(
      ErrorKind::lower, "vta.schedule.capacity",
      cat("a tile needs ", need, " elements of ", to_string(mem), ", but ", have, " are there",
          threads > 1 ? cat(" for each of ", threads, " threads") : std::string()))
      .help(repair);
}

auto times(std::int64_t by) {
  return [by](std::int64_t n) { return n * by; };
}

std::vector<std::int64_t> divisors(std::int64_t n) {
  std::vector<std::int64_t> out;
  for (std::int64_t d = 1; d <= n; ++d) {
    if (n % d == 0) out.push_back(d);
  }
  return out;
}

}  // namespace

Program matmul(const Config& c, const MatmulShape& s, const MatmulTiles& t, const Epilogue& e) {
  positive({{"o", s.o},
            {"m", s.m},
            {"n", s.n},
            {"tile o", t.o},
            {"tile m", t.m},
            {"tile n", t.n},
            {"threads", t.threads}});
  Builder b(c, "matmul");
  int a_param = b.param("A", dtypes::int8), w_param = b.param("B", dtypes::int8);
  int bias_param = e.bias ? b.param("bias", dtypes::int32) : -1;
  int c_param = b.param("C", dtypes::int8);
  std::int64_t bias = e.bias ? s.m : 0;
  std::int64_t acc_half = (c.depth(MemType::acc) - bias) / t.threads,
               inp_half = c.depth(MemType::inp) / t.threads,
               wgt_half = c.depth(MemType::wgt) / t.threads;
  check_fits(MemType::acc, acc_half, t.threads, {{"m", t.m, times(t.o)}, {"o", t.o, times(t.m)}});
  check_fits(MemType::inp, inp_half, t.threads, {{"n", t.n, times(t.o)}, {"o", t.o, times(t.n)}});
  check_fits(MemType::wgt, wgt_half, t.threads, {{"n", t.n, times(t.m)}, {"m", t.m, times(t.n)}});
  std::int64_t tiles = ceil_div(s.o, t.o) * ceil_div(s.m, t.m);
  Pipeline p(b, t.threads, tiles * ceil_div(s.n, t.n), tiles);
  std::int64_t bias_at = acc_half * t.threads;
  if (e.bias) b.load(MemType::acc, bias_at, bias_param, 0, {1, s.m});
  for (std::int64_t o = 0; o < s.o; o += t.o) {
    for (std::int64_t m = 0; m < s.m; m += t.m) {
      std::int64_t no = std::min(t.o, s.o - o), nm = std::min(t.m, s.m - m);
      std::int64_t acc = p.begin_tile() * acc_half;
      b.reset(UopKernel::compress({{no * nm, 1, 0, 0}}, at(acc)));
      for (std::int64_t n = 0; n < s.n; n += t.n) {
        std::int64_t nn = std::min(t.n, s.n - n);
        std::int64_t slot = p.begin_load();
        b.load(MemType::inp, slot * inp_half, a_param, o * s.n + n, {no, nn, s.n});
        b.load(MemType::wgt, slot * wgt_half, w_param, m * s.n + n, {nm, nn, s.n});
        p.end_load();
        p.begin_sum();
        b.gemm(UopKernel::compress({{nn, 0, 1, 1}, {no, nm, nn, 0}, {nm, 1, 0, nn}},
                                   at(acc, slot * inp_half, slot * wgt_half)));
        p.end_sum();
      }
      finish_tile(b, e, acc, nm, 1, no, nm, bias_at + m);
      p.begin_store();
      b.store(acc, c_param, o * s.m + m, {no, nm, s.m});
      p.end_store();
    }
  }
  return b.finish(Checked::no);
}

Program conv2d(const Config& c, const ConvShape& s, const ConvTiles& t, const Epilogue& e) {
  positive({{"batch", s.batch},
            {"h", s.h},
            {"w", s.w},
            {"ci", s.ci},
            {"co", s.co},
            {"kernel", s.kernel},
            {"stride", s.stride},
            {"groups", s.groups},
            {"dilation", s.dilation},
            {"tile h", t.h},
            {"tile w", t.w},
            {"tile ci", t.ci},
            {"tile co", t.co},
            {"threads", t.threads},
            {"output height", s.out_h()},
            {"output width", s.out_w()}});
  if (s.ci % s.groups || s.co % s.groups) {
    throw Error(ErrorKind::value, "vta.schedule.groups",
                cat(s.groups, " groups do not divide ", s.ci, " input and ", s.co,
                    " output channel blocks"))
        .note("each group must be a whole number of blocks");
  }
  Builder b(c, "conv2d");
  int x_param = b.param("x", dtypes::int8), w_param = b.param("w", dtypes::int8);
  int bias_param = e.bias ? b.param("bias", dtypes::int32) : -1;
  int y_param = b.param("y", dtypes::int8);
  const std::int64_t k = s.kernel, kk = k * k, oh = s.out_h(), ow = s.out_w();
  const std::int64_t ci_group = s.ci / s.groups, co_group = s.co / s.groups;
  // A 1 x 1 kernel needs only every stride-th row.
  const std::int64_t row_step = k == 1 ? s.stride : 1, tile_row = s.stride / row_step;
  auto in_rows = [&](std::int64_t rows) { return (rows - 1) * tile_row + s.reach(); };
  auto in_cols = [&](std::int64_t cols) { return (cols - 1) * s.stride + s.reach(); };
  std::int64_t bias = e.bias ? s.co : 0;
  std::int64_t acc_half = (c.depth(MemType::acc) - bias) / t.threads,
               inp_half = c.depth(MemType::inp) / t.threads,
               wgt_half = c.depth(MemType::wgt) / t.threads;
  check_fits(MemType::acc, acc_half, t.threads,
             {{"co", t.co, times(t.h * t.w)},
              {"h", t.h, times(t.co * t.w)},
              {"w", t.w, times(t.co * t.h)}});
  check_fits(MemType::inp, inp_half, t.threads,
             {{"ci", t.ci, times(in_rows(t.h) * in_cols(t.w))},
              {"h", t.h, [&](std::int64_t n) { return t.ci * in_rows(n) * in_cols(t.w); }},
              {"w", t.w, [&](std::int64_t n) { return t.ci * in_rows(t.h) * in_cols(n); }}});
  check_fits(MemType::wgt, wgt_half, t.threads,
             {{"ci", t.ci, times(t.co * kk)}, {"co", t.co, times(t.ci * kk)}});
  std::int64_t tiles =
      s.batch * s.groups * ceil_div(co_group, t.co) * ceil_div(oh, t.h) * ceil_div(ow, t.w);
  const std::int64_t lead = t.lead > 0 ? std::min(t.lead, t.ci) : t.ci;
  Pipeline p(b, t.threads, (tiles - 1) * ceil_div(ci_group, t.ci) + ceil_div(ci_group, lead),
             tiles);
  std::int64_t bias_at = acc_half * t.threads;
  bool first_tile = true;
  if (e.bias) b.load(MemType::acc, bias_at, bias_param, 0, {1, s.co});
  // Weights that a slot already holds are not loaded again.
  std::vector<std::array<std::int64_t, 3>> held(static_cast<std::size_t>(t.threads), {-1, -1, -1});
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t g = 0; g < s.groups; ++g) {
      for (std::int64_t co = 0; co < co_group; co += t.co) {
        for (std::int64_t y = 0; y < oh; y += t.h) {
          for (std::int64_t x = 0; x < ow; x += t.w) {
            std::int64_t nco = std::min(t.co, co_group - co), ny = std::min(t.h, oh - y),
                         nx = std::min(t.w, ow - x);
            std::int64_t first_co = g * co_group + co;
            std::int64_t acc = p.begin_tile() * acc_half;
            b.reset(UopKernel::compress({{nco * ny * nx, 1, 0, 0}}, at(acc)));
            // The input rectangle, cut at the image's border; the rest is padding.
            std::int64_t rows = in_rows(ny), cols = in_cols(nx);
            std::int64_t top = y * s.stride - s.pad, left = x * s.stride - s.pad;
            // Rows before the image's first, and the first row past its last.
            std::int64_t pad_top = std::clamp<std::int64_t>(
                             ceil_div(std::max<std::int64_t>(-top, 0), row_step), 0, rows),
                         past = ceil_div(std::max<std::int64_t>(s.h - top, 0), row_step);
            std::int64_t pad_bottom = std::clamp<std::int64_t>(rows - past, 0, rows - pad_top),
                         pad_left = std::clamp<std::int64_t>(-left, 0, cols),
                         pad_right =
                             std::clamp<std::int64_t>(left + cols - s.w, 0, cols - pad_left);
            Rect rect{rows - pad_top - pad_bottom,
                      cols - pad_left - pad_right,
                      row_step * s.w,
                      pad_top,
                      pad_bottom,
                      pad_left,
                      pad_right};
            // A tile that lies wholly in the padding is one row of zeros.
            const bool outside = rect.y == 0 || rect.x == 0;
            if (outside) rect = {0, rows * cols, rows * cols, 1, 0, 0, 0};
            const std::int64_t step = first_tile ? lead : t.ci;
            first_tile = false;
            for (std::int64_t ci = 0; ci < ci_group; ci += step) {
              std::int64_t nci = std::min(step, ci_group - ci), slot = p.begin_load();
              for (std::int64_t i = 0; i < nci; ++i) {
                std::int64_t channel = n * s.ci + g * ci_group + ci + i;
                const std::int64_t from =
                    (channel * s.h + top + pad_top * row_step) * s.w + left + pad_left;
                b.load(MemType::inp, slot * inp_half + i * rows * cols, x_param, outside ? 0 : from,
                       rect);
              }
              auto& have = held[static_cast<std::size_t>(slot)];
              if (have != std::array{first_co, ci, nci}) {
                b.load(MemType::wgt, slot * wgt_half, w_param, (first_co * ci_group + ci) * kk,
                       {nco, nci * kk, ci_group * kk});
                have = {first_co, ci, nci};
              }
              p.end_load();
              p.begin_sum();
              b.gemm(UopKernel::compress({{nci, 0, rows * cols, kk},
                                          {k, 0, s.dilation * cols, k},
                                          {k, 0, s.dilation, 1},
                                          {ny, nx, tile_row * cols, 0},
                                          {nx, 1, s.stride, 0},
                                          {nco, ny * nx, 0, nci * kk}},
                                         at(acc, slot * inp_half, slot * wgt_half)));
              p.end_sum();
            }
            // In parts, so that storing one overlaps with finishing the next.
            std::int64_t part = ceil_div(nco, std::max<std::int64_t>(t.parts, 1));
            for (std::int64_t first = 0; first < nco; first += part) {
              std::int64_t count = std::min(part, nco - first), from = acc + first * ny * nx;
              finish_tile(b, e, from, count, ny * nx, ny * nx, 1, bias_at + first_co + first);
              p.begin_store();
              std::int64_t out = ((n * s.co + first_co + first) * oh + y) * ow + x;
              if (nx == ow) {
                b.store(from, y_param, out, {count, ny * ow, oh * ow});
              } else {
                for (std::int64_t i = 0; i < count; ++i)
                  b.store(from + i * ny * nx, y_param, out + i * oh * ow, {ny, nx, ow});
              }
            }
            p.end_store();
          }
        }
      }
    }
  }
  return b.finish(Checked::no);
}

Program conv2d_transpose(const Config& c, const ConvTransposeShape& s, const ConvTransposeTiles& t,
                         const Epilogue& e) {
  positive({{"batch", s.batch},
            {"h", s.h},
            {"w", s.w},
            {"ci", s.ci},
            {"co", s.co},
            {"kernel", s.kernel},
            {"stride", s.stride},
            {"tile ci", t.ci},
            {"tile co", t.co}});
  Builder b(c, "conv2d_transpose");
  int x_param = b.param("x", dtypes::int8), w_param = b.param("w", dtypes::int8);
  int bias_param = e.bias ? b.param("bias", dtypes::int32) : -1;
  int y_param = b.param("y", dtypes::int8);
  const std::int64_t k = s.kernel, kk = k * k, oh = s.out_h(), ow = s.out_w();
  // The whole image of a channel block is one tile: the input is framed with zeros so that no tap
  // needs a guard.
  const std::int64_t frame = k - 1, rows = s.h + 2 * frame, cols = s.w + 2 * frame;
  std::int64_t bias = e.bias ? s.co : 0;
  std::int64_t acc_half = (c.depth(MemType::acc) - bias) / t.threads,
               inp_half = c.depth(MemType::inp) / t.threads,
               wgt_half = c.depth(MemType::wgt) / t.threads;
  check_fits(MemType::acc, acc_half, t.threads, {{"co", t.co, times(oh * ow)}});
  check_fits(MemType::inp, inp_half, t.threads, {{"ci", t.ci, times(rows * cols)}});
  check_fits(MemType::wgt, wgt_half, t.threads,
             {{"ci", t.ci, times(t.co * kk)}, {"co", t.co, times(t.ci * kk)}});
  std::int64_t tiles = s.batch * ceil_div(s.co, t.co);
  Pipeline p(b, t.threads, tiles * ceil_div(s.ci, t.ci), tiles);
  std::int64_t bias_at = acc_half * t.threads;
  if (e.bias) b.load(MemType::acc, bias_at, bias_param, 0, {1, s.co});
  for (std::int64_t n = 0; n < s.batch; ++n) {
    for (std::int64_t co = 0; co < s.co; co += t.co) {
      std::int64_t nco = std::min(t.co, s.co - co), acc = p.begin_tile() * acc_half;
      b.reset(UopKernel::compress({{nco * oh * ow, 1, 0, 0}}, at(acc)));
      for (std::int64_t ci = 0; ci < s.ci; ci += t.ci) {
        std::int64_t nci = std::min(t.ci, s.ci - ci), slot = p.begin_load();
        for (std::int64_t i = 0; i < nci; ++i) {
          b.load(MemType::inp, slot * inp_half + i * rows * cols, x_param,
                 (n * s.ci + ci + i) * s.h * s.w, {s.h, s.w, s.w, frame, frame, frame, frame});
        }
        b.load(MemType::wgt, slot * wgt_half, w_param, (co * s.ci + ci) * kk,
               {nco, nci * kk, s.ci * kk});
        p.end_load();
        p.begin_sum();
        // out[oy] = sum over ky with (oy + pad - ky) divisible by the stride of in[(oy + pad - ky)
        // / stride] * w[ky]: for each output phase the taps that hit it. Zero taps vanish.
        for (std::int64_t py = 0; py < s.stride; ++py) {
          for (std::int64_t px = 0; px < s.stride; ++px) {
            std::int64_t ny = ceil_div(oh - py, s.stride), nx = ceil_div(ow - px, s.stride);
            if (ny <= 0 || nx <= 0) continue;
            for (std::int64_t ky = (py + s.pad) % s.stride; ky < k; ky += s.stride) {
              for (std::int64_t kx = (px + s.pad) % s.stride; kx < k; kx += s.stride) {
                std::int64_t iy = (py + s.pad - ky) / s.stride + frame,
                             ix = (px + s.pad - kx) / s.stride + frame;
                b.gemm(UopKernel::compress({{nci, 0, rows * cols, kk},
                                            {nco, oh * ow, 0, nci * kk},
                                            {ny, s.stride * ow, cols, 0},
                                            {nx, s.stride, 1, 0}},
                                           at(acc + py * ow + px, slot * inp_half + iy * cols + ix,
                                              slot * wgt_half + ky * k + kx)));
              }
            }
          }
        }
        p.end_sum();
      }
      finish_tile(b, e, acc, nco, oh * ow, oh * ow, 1, bias_at + co);
      p.begin_store();
      b.store(acc, y_param, (n * s.co + co) * oh * ow, {nco, oh * ow, oh * ow});
      p.end_store();
    }
  }
  return b.finish(Checked::no);
}

Program elementwise(const Config& c, std::int64_t elements, const std::vector<AluStep>& chain) {
  positive({{"elements", elements}});
  Builder b(c, "elementwise");
  int x = b.param("x", dtypes::int32);
  std::vector<int> others;
  for (std::size_t i = 0; i < chain.size(); ++i)
    others.push_back(chain[i].use_imm ? -1 : b.param(cat("operand", i), dtypes::int32));
  int y = b.param("y", dtypes::int8);
  std::int64_t tile = c.depth(MemType::acc) / 2;
  for (std::int64_t first = 0, round = 0; first < elements; first += tile, ++round) {
    std::int64_t n = std::min(tile, elements - first);
    if (round) b.pop(Stage::store, Stage::compute);
    b.load(MemType::acc, 0, x, first, {1, n});
    UopKernel in_place = UopKernel::compress({{n, 1, 1, 0}}),
              with = UopKernel::compress({{n, 1, 1, 0}}, at(0, tile));
    for (std::size_t i = 0; i < chain.size(); ++i) {
      if (chain[i].use_imm) {
        b.alu_imm(chain[i].op, in_place, chain[i].imm);
      } else {
        b.load(MemType::acc, tile, others[i], first, {1, n});
        b.alu(chain[i].op, with);
      }
    }
    // STORE reads what GEMM and ALU wrote, so a bare copy needs an operation that changes nothing.
    if (chain.empty()) b.alu_imm(AluOp::shr, in_place, 0);
    b.push(Stage::compute, Stage::store);
    b.pop(Stage::compute, Stage::store);
    b.store(0, y, first, {1, n});
    if (first + tile < elements) b.push(Stage::store, Stage::compute);
  }
  return b.finish(Checked::no);
}

MatmulTiles default_tiles(const Config& c, const MatmulShape& s, const Epilogue& e, int threads,
                          const TimingParams& timing) {
  MatmulTiles best;
  std::int64_t best_cycles = -1;
  std::int64_t acc = (c.depth(MemType::acc) - (e.bias ? s.m : 0)) / threads,
               inp = c.depth(MemType::inp) / threads, wgt = c.depth(MemType::wgt) / threads;
  for (std::int64_t o : divisors(s.o)) {
    for (std::int64_t m : divisors(s.m)) {
      if (o * m > acc) continue;
      for (std::int64_t n : divisors(s.n)) {
        if (o * n > inp || m * n > wgt) continue;
        if ((s.o / o) * (s.m / m) * (s.n / n) > 4096) continue;  // needless small tiles
        MatmulTiles t{o, m, n, threads};
        std::int64_t cycles =
            estimate(Prepared(matmul(c, s, t, e).kernels[0].stream), c, timing).cycles;
        if (best_cycles < 0 || cycles < best_cycles) best = t, best_cycles = cycles;
      }
    }
  }
  if (best_cycles < 0) best.threads = threads;
  return best;
}

ConvTiles default_tiles(const Config& c, const ConvShape& s, const Epilogue& e, int threads,
                        const TimingParams& timing) {
  ConvTiles best;
  best.threads = threads;
  std::int64_t best_cycles = -1;
  std::int64_t acc = (c.depth(MemType::acc) - (e.bias ? s.co : 0)) / threads,
               inp = c.depth(MemType::inp) / threads, wgt = c.depth(MemType::wgt) / threads;
  std::int64_t ow = s.out_w(), oh = s.out_h(), ci_group = s.ci / s.groups,
               co_group = s.co / s.groups;
  std::int64_t tile_row = s.kernel == 1 ? 1 : s.stride;
  for (std::int64_t w : {ow, ceil_div(ow, 2), ceil_div(ow, 4)}) {
    for (std::int64_t h = 1; h <= oh; ++h) {
      if (h > 1 && ceil_div(oh, h) == ceil_div(oh, h - 1)) continue;  // same count of tiles, larger
      for (std::int64_t co : divisors(co_group)) {
        if (co * h * w > acc || co * h * w * 16 < acc)
          continue;  // far too small tiles are never best
        for (std::int64_t ci : divisors(ci_group)) {
          std::int64_t need =
              ci * ((h - 1) * tile_row + s.reach()) * ((w - 1) * s.stride + s.reach());
          if (need > inp || co * ci * s.kernel * s.kernel > wgt) continue;
          ConvTiles t{h, w, ci, co, threads};
          std::int64_t cycles =
              estimate(Prepared(conv2d(c, s, t, e).kernels[0].stream), c, timing).cycles;
          if (best_cycles < 0 || cycles < best_cycles) best = t, best_cycles = cycles;
        }
      }
    }
  }
  // How the stream begins and ends: a shorter first sum, stores in parts.
  for (std::int64_t lead : divisors(best.ci)) {
    for (std::int64_t parts : divisors(best.co)) {
      if (best_cycles < 0 || parts > 8) break;
      ConvTiles t = best;
      t.lead = lead, t.parts = parts;
      std::int64_t cycles =
          estimate(Prepared(conv2d(c, s, t, e).kernels[0].stream), c, timing).cycles;
      if (cycles < best_cycles) best = t, best_cycles = cycles;
    }
  }
  return best;
}

const std::vector<ResnetLayer>& resnet18_layers() {
  static const std::vector<ResnetLayer> layers{
      {"C2", 56, 64, 64, 3, 1, 1, 4},    {"C3", 56, 64, 128, 3, 2, 1, 1},
      {"C4", 56, 64, 128, 1, 2, 0, 1},   {"C5", 28, 128, 128, 3, 1, 1, 3},
      {"C6", 28, 128, 256, 3, 2, 1, 1},  {"C7", 28, 128, 256, 1, 2, 0, 1},
      {"C8", 14, 256, 256, 3, 1, 1, 3},  {"C9", 14, 256, 512, 3, 2, 1, 1},
      {"C10", 14, 256, 512, 1, 2, 0, 1}, {"C11", 7, 512, 512, 3, 1, 1, 3}};
  return layers;
}

ConvShape shape_of(const ResnetLayer& l, const Config& c) {
  return {1,
          l.size,
          l.size,
          l.in_channels / c.block_in(),
          l.out_channels / c.block_out(),
          l.kernel,
          l.stride,
          l.pad,
          1};
}

}  // namespace weft::vta
