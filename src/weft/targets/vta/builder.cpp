// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/vta/builder.h"

#include <algorithm>
#include <utility>

#include "weft/targets/vta/checker.h"
#include "weft/targets/vta/synchronise.h"
#include "weft/targets/vta/tokens.h"

namespace weft::vta {

namespace {
int token_of(Stage from, Stage to) {
  if (from == Stage::load && to == Stage::compute) return kLoadToCompute;
  if (from == Stage::compute && to == Stage::load) return kComputeToLoad;
  if (from == Stage::compute && to == Stage::store) return kComputeToStore;
  if (from == Stage::store && to == Stage::compute) return kStoreToCompute;
  throw Error(ErrorKind::value, "vta.token.pair",
              cat("there are no tokens from ", to_string(from), " to ", to_string(to)))
      .note("legal: load and compute, compute and store, either way")
      .help("go through compute: a token to compute, and one from compute");
}
constexpr std::int64_t kMaxExtent = (1 << 14) - 1, kMaxSize = 65535, kMaxPad = 15;

[[noreturn, gnu::noinline, gnu::cold]] void out_of_range(std::int64_t v, const char* what) {
  throw Error(ErrorKind::value, "vta.build.range", cat(what, " is ", v))
      .note("legal: 0 to 4294967295");
}
inline std::uint32_t narrow(std::int64_t v, const char* what) {
  if (static_cast<std::uint64_t>(v) > 0xffffffffull) [[unlikely]]
    out_of_range(v, what);
  return static_cast<std::uint32_t>(v);
}
}  // namespace

UopKernel UopKernel::compress(std::vector<Loop> dims, Uop first) {
  UopKernel out;
  std::erase_if(dims, [](const Loop& l) { return l.extent == 1; });
  // Neighbouring dimensions that continue one another are one.
  for (std::size_t i = 1; i < dims.size();) {
    Loop& outer = dims[i - 1];
    const Loop& inner = dims[i];
    if (outer.dst == inner.dst * inner.extent && outer.src == inner.src * inner.extent &&
        outer.wgt == inner.wgt * inner.extent && outer.extent * inner.extent <= kMaxExtent) {
      outer = {outer.extent * inner.extent, inner.dst, inner.src, inner.wgt};
      dims.erase(dims.begin() + static_cast<std::ptrdiff_t>(i));
    } else {
      ++i;
    }
  }
  for (std::size_t i = 0; i < dims.size();
       ++i) {  // too long for one loop: a divisor stays, the rest is a dimension of its own
    if (dims[i].extent <= kMaxExtent) continue;
    std::int64_t part = kMaxExtent;
    while (dims[i].extent % part) --part;
    Loop rest{dims[i].extent / part, dims[i].dst * part, dims[i].src * part, dims[i].wgt * part};
    dims[i].extent = part;
    dims.insert(dims.begin() + static_cast<std::ptrdiff_t>(i), rest);
    ++i;
  }
  // Which two become the loops: fewest micro-operations among the choices whose innermost step
  // moves on.
  auto n = static_cast<int>(dims.size());
  int best_a = -1, best_b = -1;
  std::int64_t best = -1;
  auto total = [&] {
    std::int64_t t = 1;
    for (const Loop& d : dims) t *= d.extent;
    return t;
  }();
  for (int a = -1; a < n; ++a) {
    for (int b = -1; b < n; ++b) {
      if (a == b && a >= 0) continue;
      if (n >= 2 && (a < 0 || b < 0)) continue;
      if (n == 1 && ((a < 0) == (b < 0))) continue;
      std::int64_t count = total;
      for (int d : {a, b}) count /= d >= 0 ? dims[static_cast<std::size_t>(d)].extent : 1;
      int innermost = -1;
      for (int d = 0; d < n; ++d) innermost = d != a && d != b ? d : innermost;
      if (innermost < 0) innermost = b >= 0 ? b : a;
      bool moves = innermost < 0 || dims[static_cast<std::size_t>(innermost)].dst != 0;
      std::int64_t cost = count + (moves ? 0 : std::int64_t{1} << 40);
      if (best < 0 || cost < best) best = cost, best_a = a, best_b = b;
    }
  }
  if (best_a >= 0) out.loops[0] = dims[static_cast<std::size_t>(best_a)];
  if (best_b >= 0) out.loops[1] = dims[static_cast<std::size_t>(best_b)];
  for (int d : {std::max(best_a, best_b), std::min(best_a, best_b)}) {
    if (d >= 0) dims.erase(dims.begin() + d);
  }
  out.uops.push_back(first);
  for (const Loop& dim : dims) {
    std::vector<Uop> all;
    for (const Uop& base : out.uops) {
      for (std::int64_t i = 0; i < dim.extent; ++i) {
        all.push_back({narrow(base.dst + i * dim.dst, "dst"), narrow(base.src + i * dim.src, "src"),
                       narrow(base.wgt + i * dim.wgt, "wgt")});
      }
    }
    out.uops = std::move(all);
  }
  return out;
}

bool UopKernel::repeats_destination() const {
  if (uops.empty()) return false;
  const auto& [out, in] = loops;
  const std::int64_t first = uops.front().dst, last = uops.back().dst;
  if (in.extent > 1 && last == first + in.dst) return true;
  if (out.extent > 1 && last + (in.extent - 1) * in.dst == first + out.dst) return true;
  auto same = [](const Uop& a, const Uop& b) { return a.dst == b.dst; };
  return std::adjacent_find(uops.begin(), uops.end(), same) != uops.end();
}

Builder::Builder(const Config& config, std::string kernel_name)
    : isa_(config), name_(std::move(kernel_name)) {
  for (int m = 0; m < 6; ++m) depth_[m] = isa_.config().depth(static_cast<MemType>(m));
  stream_.insns.reserve(4096);
  stream_.base.reserve(4096);
}

int Builder::param(std::string name, DType dtype) {
  params_.push_back({std::move(name), runtime::ParamKind::pointer, dtype, "global"});
  return static_cast<int>(params_.size()) - 1;
}

void Builder::seal(std::uint16_t base) {
  Insn& n = stream_.insns.back();
  if (!isa_.fits(n)) [[unlikely]] {
    Insn bad = n;
    stream_.insns.pop_back();
    isa_.encode(bad);  // throws
  }
  const Stage stage = n.stage();
  last_[static_cast<int>(stage)] = static_cast<std::int64_t>(stream_.base.size());
  stream_.base.push_back(base);
  // The pops that wait for an instruction of this stage.
  if (stage == Stage::compute) {
    n.pop_prev |= std::exchange(pending_[kLoadToCompute], false);
    n.pop_next |= std::exchange(pending_[kStoreToCompute], false);
  } else if (stage == Stage::load) {
    n.pop_next |= std::exchange(pending_[kComputeToLoad], false);
  } else {
    n.pop_prev |= std::exchange(pending_[kComputeToStore], false);
  }
}

void Builder::emit_nop(Stage stage) {
  Insn& n = begin();
  n.op = stage == Stage::store ? Opcode::store : Opcode::load;
  n.mem = stage == Stage::load ? MemType::inp : stage == Stage::store ? MemType::out : MemType::uop;
  seal(kAbsolute);
}

void Builder::push(Stage from, Stage to) {
  int t = token_of(from, to);
  auto flag = [&](Insn& n) -> bool& {
    return t == kLoadToCompute || t == kComputeToStore ? n.push_next : n.push_prev;
  };
  std::int64_t at = last_[static_cast<int>(from)];
  // A pop that waits for an instruction of `from` must come before this push.
  bool waiting = from == Stage::compute ? pending_[kLoadToCompute] || pending_[kStoreToCompute]
                 : from == Stage::load  ? pending_[kComputeToLoad]
                                        : pending_[kComputeToStore];
  if (at < 0 || waiting || flag(stream_.insns[static_cast<std::size_t>(at)])) {
    emit_nop(from);
    at = last_[static_cast<int>(from)];
  }
  flag(stream_.insns[static_cast<std::size_t>(at)]) = true;
}

void Builder::pop(Stage from, Stage to) {
  int t = token_of(from, to);
  if (pending_[t]) emit_nop(to);
  pending_[t] = true;
}

void Builder::load(MemType mem, std::int64_t sram, int param, std::int64_t dram, const Rect& r) {
  if (mem == MemType::out || mem == MemType::uop)
    throw Error(ErrorKind::value, "vta.build.memory",
                cat("LOAD into \"", to_string(mem), "\" is not for programs"));
  if (param < 0 || static_cast<std::size_t>(param) >= params_.size())
    throw Error(ErrorKind::value, "vta.build.parameter",
                cat("parameter ", param, " of ", params_.size()));
  const std::int64_t stride = r.stride ? r.stride : r.x, width = r.pad_left + r.x + r.pad_right;
  const MemType memory = mem == MemType::acc8 ? MemType::acc : mem;
  std::int64_t total = width * (r.pad_top + r.y + r.pad_bottom),
               depth = depth_[static_cast<int>(memory)];
  if (sram < 0 || total < 0 || sram + total > depth) {
    throw Error(
        ErrorKind::lower, "vta.build.capacity",
        cat("elements ", sram, " to ", sram + total - 1, " do not fit into ", to_string(memory)))
        .note(cat(to_string(memory), " has ", depth, " elements of ", config().elem_bytes(memory),
                  " bytes (",
                  human_bytes(static_cast<std::uint64_t>(config().buffer_bytes(memory))), ")"));
  }
  if (r.x > 0 && r.y > 0 && r.x == stride && !r.pad_left && !r.pad_right && !r.pad_top &&
      !r.pad_bottom && r.x * r.y <= kMaxSize && r.y > 1) {
    return load(mem, sram, param, dram, {1, r.x * r.y});  // contiguous: one row
  }
  if (r.y <= kMaxSize && static_cast<std::uint64_t>(dram | r.x | r.y | stride | r.pad_left |
                                                    r.pad_right | r.pad_top | r.pad_bottom) >>
                                 32 ==
                             0) {  // one instruction
    auto low = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
    Insn& n = begin();
    n.op = Opcode::load, n.mem = mem, n.sram = low(sram), n.dram = low(dram), n.y_size = low(r.y);
    n.x_size = low(r.x), n.x_stride = low(stride);
    n.y_pad_0 = low(r.pad_top), n.y_pad_1 = low(r.pad_bottom), n.x_pad_0 = low(r.pad_left);
    n.x_pad_1 = low(r.pad_right);
    return seal(static_cast<std::uint16_t>(param));
  }
  for (std::int64_t y = 0; y < r.y || (y == 0 && r.y == 0); y += kMaxSize) {
    std::uint32_t sram_at = narrow(sram, "sram"), dram_at = narrow(dram + y * stride, "dram"),
                  rows = narrow(std::min(r.y - y, kMaxSize), "y");
    std::uint32_t x = narrow(r.x, "x"), pitch = narrow(stride, "stride"),
                  top = narrow(y == 0 ? r.pad_top : 0, "pad");
    std::uint32_t bottom = narrow(y + kMaxSize >= r.y ? r.pad_bottom : 0, "pad"),
                  left = narrow(r.pad_left, "pad"), right = narrow(r.pad_right, "pad");
    Insn& n = begin();
    n.op = Opcode::load, n.mem = mem, n.sram = sram_at, n.dram = dram_at, n.y_size = rows,
    n.x_size = x, n.x_stride = pitch;
    n.y_pad_0 = top, n.y_pad_1 = bottom, n.x_pad_0 = left, n.x_pad_1 = right;
    seal(static_cast<std::uint16_t>(param));
    sram += stream_.insns.back().sram_elements();
    if (r.y == 0) break;
  }
}

void Builder::store(std::int64_t sram, int param, std::int64_t dram, const Rect& r) {
  if (param < 0 || static_cast<std::size_t>(param) >= params_.size())
    throw Error(ErrorKind::value, "vta.build.parameter",
                cat("parameter ", param, " of ", params_.size()));
  if (r.pad_left | r.pad_right | r.pad_top | r.pad_bottom)
    throw Error(ErrorKind::lower, "vta.build.store_pad", "STORE cannot pad");
  std::int64_t stride = r.stride ? r.stride : r.x, depth = depth_[static_cast<int>(MemType::acc)];
  if (sram < 0 || sram + r.x * r.y > depth) {
    throw Error(ErrorKind::lower, "vta.build.capacity",
                cat("elements ", sram, " to ", sram + r.x * r.y - 1, " lie outside acc"))
        .note(cat("acc has ", depth, " elements"));
  }
  std::uint32_t sram_at = narrow(sram, "sram"), dram_at = narrow(dram, "dram"),
                rows = narrow(r.y, "y"), x = narrow(r.x, "x"), pitch = narrow(stride, "stride");
  bool contiguous = r.x == stride && r.y > 1 && r.x * r.y <= kMaxSize;
  Insn& n = begin();
  n.op = Opcode::store, n.mem = MemType::out, n.sram = sram_at, n.dram = dram_at;
  n.y_size = contiguous ? 1 : rows, n.x_size = contiguous ? x * rows : x,
  n.x_stride = contiguous ? x * rows : pitch;
  seal(static_cast<std::uint16_t>(param));
}

std::uint32_t Builder::make_resident(const std::vector<Uop>& uops) {
  auto depth = static_cast<std::uint32_t>(config().depth(MemType::uop));
  if (uops.empty() || uops.size() > depth) {
    throw Error(ErrorKind::lower, "vta.uop.capacity",
                cat("a kernel of ", uops.size(), " micro-operations does not fit"))
        .note(cat("legal: 1 to ", depth, ", the micro-operation memory"))
        .help("fold more of the kernel into its two loops");
  }
  recent_at_ = -1;
  std::vector<std::uint32_t> words;
  words.reserve(uops.size());
  for (const Uop& u : uops) words.push_back(isa_.encode(u));
  auto [entry, fresh] = known_.try_emplace(std::move(words), places_.size());
  auto count = static_cast<std::uint32_t>(uops.size());
  if (fresh) {
    // The arena only grows: what a recorded LOAD refers to is never overwritten, resident or not.
    places_.push_back({static_cast<std::uint32_t>(arena_.size()), count, -1});
    arena_.insert(arena_.end(), entry->first.begin(), entry->first.end());
  }
  Place& place = places_[entry->second];
  recent_uops_ = uops;
  if (place.sram >= 0) {
    recent_at_ = place.sram;
    return static_cast<std::uint32_t>(place.sram);
  }
  if (next_uop_ + count > depth) next_uop_ = 0;
  std::uint32_t at = next_uop_;
  for (auto it = resident_.begin(); it != resident_.end();) {
    Place& old = places_[it->second];
    if (it->first < at + count && it->first + old.count > at) {
      old.sram = -1;
      it = resident_.erase(it);
    } else {
      ++it;
    }
  }
  Insn& n = begin();
  n.op = Opcode::load, n.mem = MemType::uop, n.sram = at, n.dram = place.arena, n.y_size = 1,
  n.x_size = count, n.x_stride = count;
  seal(kUopArena);
  place.sram = recent_at_ = at;
  resident_[at] = entry->second;
  next_uop_ = at + count;
  return at;
}

void Builder::run_kernel(Opcode op, bool reset, AluOp alu, bool use_imm, std::int32_t imm,
                         const UopKernel& kernel) {
  if (kernel.repeats_destination()) [[unlikely]]
    return run_in_parts(op, reset, alu, use_imm, imm, kernel);
  const std::uint32_t first =
      recent_at_ >= 0 && kernel.uops == recent_uops_  // the last kernel's, still on chip
          ? static_cast<std::uint32_t>(recent_at_)
          : make_resident(kernel.uops);
  const auto& [out, in] = kernel.loops;
  const bool reads = !reset && !use_imm;
  if (static_cast<std::uint64_t>(out.extent | in.extent | out.dst | in.dst |
                                 (reads ? out.src | in.src | out.wgt | in.wgt : 0)) >>
      32) [[unlikely]] {
    for (const UopKernel::Loop& l : kernel.loops) {
      narrow(l.extent, "extent"), narrow(l.dst, "dst");
      if (reads) narrow(l.src, "src"), narrow(l.wgt, "wgt");
    }
  }
  auto low = [](std::int64_t v) { return static_cast<std::uint32_t>(v); };
  Insn& n = begin();
  n.op = op, n.reset = reset, n.use_imm = use_imm;
  n.uop_begin = first, n.uop_end = first + static_cast<std::uint32_t>(kernel.uops.size());
  n.iter_out = low(out.extent), n.iter_in = low(in.extent);
  n.dst_out = low(out.dst), n.dst_in = low(in.dst);
  if (reads) n.src_out = low(out.src), n.src_in = low(in.src);
  if (op == Opcode::alu) {
    n.alu = alu, n.imm = imm;
  } else if (reads) {
    n.wgt_out = low(out.wgt), n.wgt_in = low(in.wgt);
  }
  seal(kAbsolute);
}

void Builder::run_in_parts(Opcode op, bool reset, AluOp alu, bool use_imm, std::int32_t imm,
                           const UopKernel& kernel) {
  for (std::size_t l = 0; l < 2; ++l) {
    const UopKernel::Loop loop = kernel.loops[l];
    if (loop.extent < 2) continue;
    UopKernel part = kernel;
    part.loops[l] = {};
    for (std::int64_t i = 0; i < loop.extent; ++i) {
      run_kernel(op, reset, alu, use_imm, imm, part);
      for (Uop& u : part.uops) {
        u.dst = narrow(u.dst + loop.dst, "dst"), u.src = narrow(u.src + loop.src, "src");
        u.wgt = narrow(u.wgt + loop.wgt, "wgt");
      }
    }
    return;
  }
  UopKernel part;
  for (const Uop& u : kernel.uops) {
    if (!part.uops.empty() && part.uops.back().dst == u.dst) {
      run_kernel(op, reset, alu, use_imm, imm, part);
      part.uops.clear();
    }
    part.uops.push_back(u);
  }
  run_kernel(op, reset, alu, use_imm, imm, part);
}

void Builder::gemm(const UopKernel& kernel) {
  run_kernel(Opcode::gemm, false, AluOp::min, false, 0, kernel);
}
void Builder::reset(const UopKernel& kernel) {
  run_kernel(Opcode::gemm, true, AluOp::min, false, 0, kernel);
}
void Builder::alu(AluOp op, const UopKernel& kernel) {
  run_kernel(Opcode::alu, false, op, false, 0, kernel);
}
void Builder::alu_imm(AluOp op, const UopKernel& kernel, std::int64_t imm) {
  if (op == AluOp::shr && (imm < -31 || imm > 31)) {
    throw Error(ErrorKind::lower, "vta.build.shift", cat("a shift by ", imm, " cannot be lowered"))
        .note("legal: 0 to 31 to the right, -31 to -1 to the left");
  }
  if (imm < -32768 || imm > 32767) {
    throw Error(ErrorKind::lower, "vta.build.constant",
                cat("the constant ", imm, " does not fit into ALU's 16 bits"))
        .note("legal: -32768 to 32767")
        .help("load it into the accumulator as data");
  }
  if (op == AluOp::shr) {  // the hardware's amounts have 5 bits, and a sign
    for (; imm > 15; imm -= 15) run_kernel(Opcode::alu, false, op, true, 15, kernel);
    for (; imm < -16; imm += 16) run_kernel(Opcode::alu, false, op, true, -16, kernel);
  }
  run_kernel(Opcode::alu, false, op, true, static_cast<std::int32_t>(imm), kernel);
}

void Builder::load_uops_first() {
  if (arena_.empty() || arena_.size() > static_cast<std::size_t>(config().depth(MemType::uop)))
    return;
  auto& [insns, base] = stream_;
  const auto at =
      static_cast<std::size_t>(std::find(base.begin(), base.end(), kUopArena) - base.begin());
  // What a LOAD that goes away waited for, the instruction behind it waits for.
  bool pop_prev = insns[at].pop_prev, pop_next = insns[at].pop_next;
  // The first takes everything, and moves to the front.
  std::move_backward(insns.begin(), insns.begin() + static_cast<std::ptrdiff_t>(at),
                     insns.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  std::move_backward(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(at),
                     base.begin() + static_cast<std::ptrdiff_t>(at) + 1);
  Insn& first = insns[0] = {};
  first.op = Opcode::load, first.mem = MemType::uop, first.y_size = 1;
  first.x_size = first.x_stride = static_cast<std::uint32_t>(arena_.size());
  base[0] = kUopArena;
  // Nothing was evicted, so micro-operations lie on chip as they do in the arena.
  std::size_t to = at + 1;
  for (std::size_t i = at + 1; i < insns.size(); ++i) {
    Insn& n = insns[i];
    if (base[i] == kUopArena) {
      pop_prev |= n.pop_prev, pop_next |= n.pop_next;
      continue;
    }
    if ((pop_prev | pop_next) && n.stage() == Stage::compute) {
      n.pop_prev |= std::exchange(pop_prev, false);
      n.pop_next |= std::exchange(pop_next, false);
    }
    if (to != i) insns[to] = n, base[to] = base[i];
    ++to;
  }
  insns.resize(to), base.resize(to);
}

void Builder::finish_into(Program& program, Checked checked) {
  WEFT_CHECK(program.config.same_machine(config()), "kernels of one program share a configuration");
  for (int t = 0; t < 4; ++t) {
    if (pending_[t] && (t == kComputeToLoad || t == kComputeToStore))
      emit_nop(t == kComputeToLoad ? Stage::load : Stage::store);
  }
  if (last_[0] >= 0) push(Stage::load, Stage::compute), pop(Stage::load, Stage::compute);
  if (last_[2] >= 0) push(Stage::store, Stage::compute), pop(Stage::store, Stage::compute);
  if (pending_[kLoadToCompute] || pending_[kStoreToCompute]) emit_nop(Stage::compute);
  begin().op = Opcode::finish;
  seal(kAbsolute);
  load_uops_first();
  auto shift = static_cast<std::uint32_t>(program.uops.size());
  for (std::size_t i = 0; i < stream_.insns.size(); ++i) {
    if (stream_.base[i] == kUopArena) stream_.insns[i].dram += shift;
  }
  program.uops.insert(program.uops.end(), arena_.begin(), arena_.end());
  program.kernels.push_back({{name_, params_, {}, 0}, std::move(stream_), {}});
  if (checked == Checked::yes) {
    if (Verdict refusal = check(program, program.kernels.size() - 1)) {
      program.kernels.pop_back();
      throw Error(ErrorKind::lower, std::move(*refusal));
    }
  }
}

void Builder::finish_in_order(Program& program) {
  begin().op = Opcode::finish;
  seal(kAbsolute);
  load_uops_first();
  stream_ = synchronise(stream_, arena_, isa_);
  auto shift = static_cast<std::uint32_t>(program.uops.size());
  for (std::size_t i = 0; i < stream_.insns.size(); ++i) {
    if (stream_.base[i] == kUopArena) stream_.insns[i].dram += shift;
  }
  program.uops.insert(program.uops.end(), arena_.begin(), arena_.end());
  program.kernels.push_back({{name_, params_, {}, 0}, std::move(stream_), {}});
  if (Verdict refusal = check(program, program.kernels.size() - 1))
    throw Error(ErrorKind::lower, std::move(*refusal));
}

Program Builder::finish(Checked checked) {
  Program program{config(), {}, {}};
  finish_into(program, checked);
  return program;
}

}  // namespace weft::vta
