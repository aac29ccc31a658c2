// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/rules.h"

namespace weft::qpu::hw {

namespace {
bool add_writes(const Instr& i) { return i.kind == kBranch || i.cond_add != kNever; }
bool mul_writes(const Instr& i) { return i.kind == kBranch || i.cond_mul != kNever; }
}  // namespace

bool writes_address(const Instr& i, bool file_b, unsigned address) {
  return (add_writes(i) && i.waddr_add == address && add_file_b(i) == file_b) ||
         (mul_writes(i) && i.waddr_mul == address && mul_file_b(i) == file_b);
}

bool writes_peripheral(const Instr& i, unsigned address) {
  return (add_writes(i) && i.waddr_add == address) || (mul_writes(i) && i.waddr_mul == address);
}

bool reads_address(const Instr& i, bool file_b, unsigned address) {
  if (i.kind == kBranch) return !file_b && i.reg && i.raddr_a == address;
  if (!is_alu(i)) return false;
  if (file_b) return i.kind == kAlu && i.raddr_b == address;
  return i.raddr_a == address;
}

bool reads_mux(const Instr& i, unsigned mux) {
  if (!is_alu(i)) return false;
  int n = add_operands(i.op_add);
  return (n > 0 && i.add_a == mux) || (n > 1 && i.add_b == mux) ||
         (i.op_mul && (i.mul_a == mux || i.mul_b == mux));
}

bool writes_acc(const Instr& i, unsigned acc) {
  return writes_peripheral(i, acc == 5 ? unsigned{kWR5} : kWAcc0 + acc);
}

namespace {
/// A physical register is read when its address is set and a mux takes it.
bool reads_register(const Instr& i, bool file_b, unsigned address) {
  if (i.kind == kBranch) return !file_b && i.reg && i.raddr_a == address;
  return is_alu(i) && reads_address(i, file_b, address) && reads_mux(i, file_b ? kMuxB : kMuxA);
}
/// How many of the two ALUs write a peripheral of an address range.
int writes_within(const Instr& i, unsigned low, unsigned high) {
  return (add_writes(i) && i.waddr_add >= low && i.waddr_add <= high) +
         (mul_writes(i) && i.waddr_mul >= low && i.waddr_mul <= high);
}
int sfu_writes(const Instr& i) { return writes_within(i, kWRecip, kWLog2); }
int tmu_writes(const Instr& i) { return writes_within(i, kWTmu0S, 63); }
int tlb_writes(const Instr& i) { return writes_within(i, 43, 47); }
bool tmu_load(const Instr& i) {
  return i.kind == kAlu && (i.sig == kSigLoadTmu0 || i.sig == kSigLoadTmu1);
}
bool r4_load(const Instr& i) {
  return i.kind == kAlu && (tmu_load(i) || i.sig == kSigCoverage || i.sig == kSigColour ||
                            i.sig == kSigColourEnd || i.sig == kSigAlphaMask);
}
bool tlb_load(const Instr& i) { return r4_load(i) && !tmu_load(i); }
/// A colour is loaded and another written: one access of the TLB.
bool tlb_colour_swap(const Instr& i) {
  return i.kind == kAlu && (i.sig == kSigColour || i.sig == kSigColourEnd) &&
         writes_within(i, kWTlbColourMs, kWTlbColour) == 1 && tlb_writes(i) == 1;
}
bool tlb_z_write(const Instr& i) { return writes_peripheral(i, kWTlbZ); }
bool reads_any(const Instr& i, unsigned address) {
  return reads_address(i, false, address) || reads_address(i, true, address);
}
bool uniform_read(const Instr& i) { return reads_any(i, kRUniform); }
bool varying_read(const Instr& i) { return reads_any(i, 35); }
int mutex_reads(const Instr& i) {
  return reads_address(i, false, kRMutex) + reads_address(i, true, kRMutex);
}
bool vpm_access(const Instr& i) { return reads_any(i, kRVpm) || writes_peripheral(i, kWVpm); }
bool vpm_related(const Instr& i) {
  return vpm_access(i) || writes_peripheral(i, kWVpmSetup) || writes_peripheral(i, kWDmaAddr) ||
         reads_address(i, false, 49) || reads_address(i, true, 49) || reads_address(i, false, 50) ||
         reads_address(i, true, 50);
}
bool ends(const Instr& i) { return i.kind == kAlu && (i.sig == kSigEnd || i.sig == kSigColourEnd); }
bool rotates(const Instr& i) { return i.kind == kAluImm && i.raddr_b >= 48; }

using Check = std::string (*)(const Instr&);
struct WordRule {
  const char* slug;
  Check check;
};

std::string together(const Instr& i) {
  struct Access {
    int count;
    const char* name;
  };
  const bool swap = tlb_colour_swap(i);
  const Access accesses[] = {{tmu_writes(i), "TMU write"},
                             {tmu_load(i), "TMU load"},
                             {swap, "combined TLB colour read and write"},
                             {swap ? 0 : tlb_writes(i), "TLB write"},
                             {!swap && tlb_load(i), "TLB load"},
                             {sfu_writes(i), "SFU write"},
                             {mutex_reads(i), "mutex read"},
                             {i.kind == kSem, "semaphore"}};
  int total = 0;
  std::string named;
  for (const Access& a : accesses) {
    for (int n = 0; n < a.count; ++n) named += cat(total++ ? " and " : "", a.name);
  }
  return total > 1 ? cat(named, " in one instruction") : "";
}
std::string conditional_peripheral(const Instr& i) {
  if (i.kind == kBranch) return "";
  auto bad = [](unsigned cond, unsigned address) {
    return cond != kNever && cond != kAlways && address >= 36 && address != kNull &&
           address != kWHostInt && address != kWR5;
  };
  if (bad(i.cond_add, i.waddr_add))
    return cat("conditional write of ", write_name(add_file_b(i), i.waddr_add));
  if (bad(i.cond_mul, i.waddr_mul))
    return cat("conditional write of ", write_name(mul_file_b(i), i.waddr_mul));
  return "";
}
std::string same_destination(const Instr& i) {
  if (i.waddr_add == kNull || i.waddr_add != i.waddr_mul || !add_writes(i) || !mul_writes(i) ||
      i.waddr_add < 32)
    return "";
  bool differ = need_differs(i.waddr_add);
  if (differ && i.waddr_add != kWR5) return "";
  bool opposite = i.cond_add >= 2 && (i.cond_add ^ 1) == i.cond_mul;
  if (opposite && i.waddr_add < 36) return "";
  return cat("both ALUs write ", write_name(add_file_b(i), i.waddr_add));
}
std::string vpm_together(const Instr& i) {
  bool read_setup = writes_address(i, false, kWVpmSetup),
       write_setup = writes_address(i, true, kWVpmSetup);
  if (read_setup && write_setup) return "two VPM set-ups in one instruction";
  if ((read_setup || write_setup) && vpm_access(i))
    return "a VPM set-up together with a VPM access";
  if (vpm_access(i) && tmu_load(i)) return "a VPM access together with a TMU load";
  return "";
}
std::string uniform_both_ports(const Instr& i) {
  return reads_address(i, false, kRUniform) && reads_address(i, true, kRUniform)
             ? "the uniform is read through both files"
             : "";
}
std::string odd_branch_register(const Instr& i) {
  return i.kind == kBranch && i.reg && (i.raddr_a & 1)
             ? cat("ra", i.raddr_a, " is odd, so the branch also rewrites the flags")
             : "";
}
std::string reserved_pack(const Instr& i) {
  if (!is_alu(i)) return "";
  if (i.pm && (i.pack == 1 || i.pack == 2 || i.pack >= 8))
    return cat("pack ", i.pack, " is reserved when pm is set");
  if (!i.pm && i.pack) {
    unsigned address = i.ws ? i.waddr_mul : i.waddr_add;
    if (address >= 32)
      return cat("pack ", i.pack, " with ", write_name(false, address),
                 ", which is no register of file A");
  }
  return "";
}
std::string idle_write(const Instr& i) {
  if (!is_alu(i)) return "";
  if (!i.op_add && i.cond_add != kNever && i.waddr_add != kNull)
    return cat("the idle ADD ALU writes ", write_name(add_file_b(i), i.waddr_add));
  if (!i.op_mul && i.cond_mul != kNever && i.waddr_mul != kNull)
    return cat("the idle MUL ALU writes ", write_name(mul_file_b(i), i.waddr_mul));
  return "";
}
constexpr WordRule kWordRules[] = {
    {"idle_write", idle_write},
    {"unit_conflict", together},
    {"conditional_peripheral", conditional_peripheral},
    {"same_destination", same_destination},
    {"vpm_conflict", vpm_together},
    {"uniform_ports", uniform_both_ports},
    {"branch_register", odd_branch_register},
    {"pack", reserved_pack},
};

}  // namespace

std::string word_rule(const Instr& i, const char** slug) {
  for (const WordRule& w : kWordRules) {
    if (std::string detail = w.check(i); !detail.empty()) {
      *slug = w.slug;
      return detail;
    }
  }
  return "";
}

std::string path_rule(const Instr& before, const Instr& after, unsigned distance,
                      const char** slug) {
  if (distance == 1) {
    for (unsigned b = 0; b < 2; ++b) {
      for (unsigned waddr : {before.waddr_add, before.waddr_mul}) {
        if (waddr < 32 && writes_address(before, b, waddr) && reads_register(after, b, waddr)) {
          *slug = "read_after_write";
          return cat(read_name(b, waddr),
                     " is read one instruction after it was written; it still holds the old value");
        }
      }
    }
    if (rotates(after) && after.raddr_b == 48 && writes_acc(before, 5)) {
      *slug = "rotate_r5";
      return "the rotation takes its amount from r5, which the instruction before wrote";
    }
    if (rotates(after) && after.op_mul) {
      for (unsigned acc = 0; acc < 4; ++acc) {
        if ((after.mul_a == acc || after.mul_b == acc) && writes_acc(before, acc)) {
          *slug = "rotate_acc";
          return cat("r", acc, " is rotated directly after it was written");
        }
      }
    }
  }
  if (distance <= 2) {
    if (sfu_writes(before)) {
      if (reads_mux(after, kMuxR4)) {
        *slug = "sfu_latency";
        return cat("r4 is read ", distance,
                   " instructions after an SFU write; the result comes after 3");
      }
      if (sfu_writes(after) || r4_load(after)) {
        *slug = "sfu_busy";
        return cat("r4 is loaded again ", distance, " instructions after an SFU write");
      }
    }
    if (tlb_z_write(before) && reads_address(after, false, kRMsMaskA) && reads_mux(after, kMuxA)) {
      *slug = "tlb_z_mask";
      return cat("the multisample mask is read ", distance,
                 " instructions after a TLB Z write; 2 must lie between");
    }
    if (writes_peripheral(before, kWUniformsAddr) && uniform_read(after)) {
      *slug = "uniform_address";
      return cat("a uniform is read ", distance,
                 " instructions after the uniforms' address was written; 2 must lie between");
    }
  }
  if (distance <= 3) {
    if (before.kind == kBranch && after.kind == kBranch) {
      *slug = "branch_distance";
      return cat("a branch ", distance, " instructions after another");
    }
    if (writes_peripheral(before, kWNoswap) && tmu_writes(after)) {
      *slug = "tmu_noswap";
      return cat("a TMU write ", distance, " instructions after tmu_noswap; 3 must lie between");
    }
    if (writes_address(before, false, kWVpmSetup) && reads_any(after, kRVpm)) {
      *slug = "vpm_read_setup";
      return cat("the VPM is read ", distance,
                 " instructions after the read set-up; 3 must lie between");
    }
  }
  return "";
}

bool need_differs(unsigned address) {
  return write_name(false, address) != write_name(true, address);
}

const std::vector<Rule>& rules() {
  using enum RuleKind;
  static const std::vector<Rule> rows{
      {"H1", "read_after_write", path, "guide p. 37",
       "a register of file A or B must not be read by the instruction after its write",
       "put one independent instruction between them, or use an accumulator"},
      {"H2", "sfu_latency", path, "guide p. 37",
       "r4 must not be read in the two instructions after an SFU write",
       "put two instructions between"},
      {"H2b", "sfu_busy", path, "guide p. 37",
       "r4 must not be loaded by TMU, TLB or SFU in the two instructions after an SFU write",
       "put two instructions between"},
      {"H3", "rotate_r5", path, "guide p. 37",
       "a rotation by r5 must not follow a write of r5 directly", "put one instruction between"},
      {"H4", "rotate_acc", path, "guide p. 37",
       "a rotation must not follow a write of the accumulator that it rotates directly",
       "put one instruction between"},
      {"H5", "uniform_address", path, "guide p. 22",
       "two instructions without uniforms follow a write of the uniforms' address",
       "put two instructions between"},
      {"H6", "end_access", path, "guide p. 37",
       "program end and its two slots access no uniform, varying or VPM, nor ra14 and rb14; "
       "program end writes no register file, the second slot no TLB Z",
       "finish with three plain instructions"},
      {"H7", "branch_distance", path, "guide p. 34", "no branch lies in the three slots of another",
       "put three instructions between"},
      {"H7b", "branch_register", word, "measured: bit 45 is also the set-flags bit",
       "a register branch uses an even register", "move the target into an even register"},
      {"H7c", "branch_target", path, "guide p. 34", "a branch stays inside the program",
       "branch to an instruction of the program"},
      {"H8", "unit_conflict", word, "guide p. 37",
       "one of TMU write, TMU load, TLB write, TLB load, combined TLB colour read and write, SFU "
       "write, mutex read and semaphore per instruction",
       "use two instructions"},
      {"H9", "conditional_peripheral", word,
       "measured: the unit is triggered whatever the condition",
       "peripheral writes are unconditional", "select the value into a register first"},
      {"H10", "same_destination", word, "measured: one write is lost",
       "the two ALUs write different destinations", "drop one of the writes"},
      {"H11", "tmu_noswap", path, "guide p. 37",
       "tmu_noswap is written at least three instructions before the first TMU write",
       "write it earlier"},
      {"H12", "vpm_conflict", word, "measured: one access is lost",
       "VPM set-ups, VPM accesses and TMU loads exclude each other in one instruction",
       "use two instructions"},
      {"H13", "vpm_read_setup", path, "guide p. 56",
       "three instructions lie between a VPM read set-up and the first read",
       "put three instructions between"},
      {"H14", "vpm_read_count", run, "guide, section 7",
       "exactly the vectors set up are read from the VPM, at most two set-ups waiting",
       "read what was set up, or set up what is read"},
      {"H15", "dma_outstanding", run, "guide, section 7",
       "a DMA load (store) is waited for before the next starts", "read vr_wait (vw_wait) first"},
      {"H16", "tmu_overflow", run, "measured: the guide says eight",
       "at most four requests are outstanding per TMU", "receive before requesting more"},
      {"H17", "tmu_unread", run, "guide, section 4",
       "every TMU request is received before the program ends", "receive it"},
      {"H18", "scoreboard", path, "guide p. 37",
       "no scoreboard wait in the first two instructions, nor a TLB access, which implies one",
       "put it later"},
      {"H19", "pack", word, "guide p. 30",
       "packing acts on file A (pm = 0) or on the MUL result (pm = 1: 3 to 7)",
       "write a register of file A"},
      {"H20", "uniform_ports", word, "not documented",
       "a uniform is read through one register file", "use the same file twice"},
      {"H22", "idle_write", word, "measured: it delivers lanes 12 to 15 of the last result",
       "an idle ALU has no destination: it would deliver a stale value",
       "write condition never, or destination null"},
      {"H21", "no_end", path, "guide, section 3",
       "a program ends with a program end signal and two slots", "append thrend and two nops"},
      {"H23", "tlb_z_mask", path, "guide p. 37",
       "the multisample mask must not be read in the two instructions after a TLB Z write",
       "put two instructions between"},
  };
  return rows;
}

const Rule& rule(std::string_view slug) {
  for (const Rule& r : rules())
    if (r.slug == slug) return r;
  WEFT_CHECK(false, "no rule is called ", slug);
  return rules().front();
}

bool has_register_branch(const std::vector<Instr>& program) {
  for (const Instr& i : program)
    if (i.kind == kBranch && i.reg) return true;
  return false;
}

std::vector<std::vector<std::uint32_t>> predecessors(const std::vector<Instr>& program) {
  std::vector<std::vector<std::uint32_t>> out(program.size());
  for (std::size_t i = 0; i < program.size(); ++i) {
    bool cut = i + 1 >= program.size();
    if (i >= 3 && program[i - 3].kind == kBranch) {
      const Instr& b = program[i - 3];
      if (!b.reg) {
        std::int64_t target =
            static_cast<std::int32_t>(b.imm) / 8 + (b.rel ? static_cast<std::int64_t>(i) + 1 : 0);
        if (target >= 0 && target < static_cast<std::int64_t>(program.size()))
          out[static_cast<std::size_t>(target)].push_back(static_cast<std::uint32_t>(i));
      }
      if (b.cond_br == kBranchAlways) cut = true;
    }
    if (i >= 2 && ends(program[i - 2])) cut = true;
    if (!cut) out[i + 1].push_back(static_cast<std::uint32_t>(i));
  }
  return out;
}

std::vector<Violation> validate(const std::vector<Instr>& program, std::size_t entry) {
  std::vector<Violation> out;
  auto report = [&](const char* slug, std::size_t at, std::size_t because, std::string detail) {
    for (const Violation& v : out)
      if (v.at == at && v.because == because && v.rule->slug == std::string_view(slug)) return;
    out.push_back({&rule(slug), at, because, std::move(detail)});
  };
  auto before = predecessors(program);
  bool any_end = false;
  for (std::size_t n = 0; n < program.size(); ++n) {
    const Instr& i = program[n];
    for (const WordRule& w : kWordRules) {
      if (std::string detail = w.check(i); !detail.empty()) report(w.slug, n, n, std::move(detail));
    }
    if (n >= entry && n < entry + 2) {
      if (i.kind == kAlu && i.sig == kSigWaitScore)
        report("scoreboard", n, n, cat("a scoreboard wait in instruction ", n - entry));
      else if (tlb_writes(i) || tlb_load(i))
        report("scoreboard", n, n,
               cat("a TLB access, which waits for the scoreboard, in instruction ", n - entry));
    }
    // Along all paths, up to three instructions back.
    auto walk = [&](auto&& self, std::size_t at, unsigned distance) -> void {
      for (std::uint32_t p : before[at]) {
        const char* slug = nullptr;
        if (std::string detail = path_rule(program[p], i, distance, &slug); slug)
          report(slug, n, p, std::move(detail));
        if (distance < 3) self(self, p, distance + 1);
      }
    };
    walk(walk, n, 1);
    if (i.kind == kBranch && !i.reg) {
      std::int64_t target =
          static_cast<std::int32_t>(i.imm) + (i.rel ? static_cast<std::int64_t>(n + 4) * 8 : 0);
      if (target < 0 || target % 8 || target / 8 >= static_cast<std::int64_t>(program.size())) {
        report("branch_target", n, n,
               cat("the branch goes to byte ", target, " of a program of ", program.size() * 8));
      }
    }
    if (i.kind == kBranch && n + 3 >= program.size())
      report("branch_target", n, n, "the program ends within the delay slots of a branch");
    if (ends(i)) {
      any_end = true;
      if (n + 2 >= program.size())
        report("no_end", n, n, "the two slots after program end are missing");
      for (unsigned b = 0; b < 2; ++b) {
        if ((add_writes(i) && i.waddr_add < 32) || (mul_writes(i) && i.waddr_mul < 32)) {
          report("end_access", n, n, "the program end instruction writes a register file");
          break;
        }
      }
      for (std::size_t s = n; s < std::min(n + 3, program.size()); ++s) {
        const Instr& x = program[s];
        if (uniform_read(x)) report("end_access", s, n, "a uniform is read at program end");
        if (varying_read(x)) report("end_access", s, n, "a varying is read at program end");
        if (s == n + 2 && tlb_z_write(x))
          report("end_access", s, n, "the last instruction of the program writes the TLB's Z");
        if (vpm_related(x))
          report("end_access", s, n, "the VPM or its DMA is accessed at program end");
        for (unsigned b = 0; b < 2; ++b) {
          if (reads_register(x, b, 14) || writes_address(x, b, 14))
            report("end_access", s, n, cat(read_name(b, 14), " is used at program end"));
        }
      }
    }
  }
  if (!any_end)
    report("no_end", program.empty() ? 0 : program.size() - 1, 0,
           "no instruction carries the program end signal");
  return out;
}

Error violation_error(const Violation& v, const std::vector<Instr>& program) {
  Error error(ErrorKind::emit, cat("qpu.hazard.", v.rule->slug), v.detail);
  if (v.because != v.at && v.because < program.size())
    error.at(cat("pc ", hex(v.because * 8)), print(program[v.because]));
  if (v.at < program.size()) error.at(cat("pc ", hex(v.at * 8)), print(program[v.at]));
  error.note(cat("rule ", v.rule->name, " (", v.rule->source, "): ", v.rule->text));
  error.help(v.rule->help);
  return error;
}

}  // namespace weft::qpu::hw
