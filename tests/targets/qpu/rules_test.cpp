// SPDX-License-Identifier: Apache-2.0
// One program per static rule that breaks it, and one that keeps it. Rules of kind `run` are the
// emulator's and tested with it.

#include "weft/targets/qpu/rules.h"

#include <gtest/gtest.h>

#include <set>

namespace weft::qpu::hw {
namespace {

struct Case {
  const char* slug;
  const char* bad;
  const char* good;
  const char* text;
};

constexpr const char* kEnd = "nop; nop; thrend\nnop\nnop\n";

const Case kCases[] = {
    {"read_after_write", "mov ra1, r0\nadd r0, ra1, r0\n", "mov ra1, r0\nnop\nadd r0, ra1, r0\n",
     "ra1 is read one instruction"},
    {"sfu_latency", "mov recip, r0\nnop\nmov r1, r4\n", "mov recip, r0\nnop\nnop\nmov r1, r4\n",
     "r4 is read 2"},
    {"sfu_busy", "mov recip, r0\nmov exp2, r0\n", "mov recip, r0\nnop\nnop\nmov exp2, r0\n",
     "loaded again 1"},
    {"rotate_r5", "mov r5rep, r0\nnop; mov r1, r2; rot=r5\n",
     "mov r5rep, r0\nnop\nnop; mov r1, r2; rot=r5\n", "amount from r5"},
    {"rotate_acc", "mov r2, r0\nnop; mov r1, r2; rot=3\n",
     "mov r2, r0\nnop\nnop; mov r1, r2; rot=3\n", "r2 is rotated"},
    {"rotate_acc", "mov r2, r0\nnop; mov r1, r2; rot=3\n", "mov r2, r0\nnop; mov r1, r2\n",
     "r2 is rotated"},
    {"read_after_write", "mov ra4, r0\nnop; fmul r3, ra4, r1\n",
     "mov ra4, r0\nnop\nnop; fmul r3, ra4, r1\n", "ra4 is read one instruction"},
    {"read_after_write", "mov ra4, r0\nnop; fmul r3, r1, ra4\n",
     "mov ra4, r0\nnop\nnop; fmul r3, r1, ra4\n", "ra4 is read one instruction"},
    {"uniform_address", "mov unif_addr, r0\nnop\nmov r1, unif\n",
     "mov unif_addr, r0\nnop\nnop\nmov r1, unif\n", "a uniform is read 2"},
    {"end_access", "nop; nop; thrend\nmov r0, unif\nnop\n", "mov r0, unif\n",
     "uniform is read at program end"},
    {"end_access", "mov ra3, r0; nop; thrend\nnop\nnop\n", "mov ra3, r0\n",
     "writes a register file"},
    {"end_access", "nop; nop; thrend\nnop\nmov rb14, r0\n", "mov rb14, r0\n", "rb14"},
    {"end_access", "nop; nop; thrend\nmov vpm, r0\nnop\n", "mov vpm, r0\n", "VPM"},
    {"end_access", "nop; nop; thrend\nmov r0, vary\nnop\n", "mov r0, vary\n",
     "varying is read at program end"},
    {"end_access", "nop; nop; thrend\nnop\nmov r0, vpm\n", "mov r0, vpm\nnop\n", "VPM"},
    {"end_access", "nop; nop; thrend\nmov vr_setup, r0\nnop\n", "mov vr_setup, r0\n", "VPM"},
    {"end_access", "nop; nop; thrend\nnop\nmov vw_addr, r0\n", "mov vw_addr, r0\n", "DMA"},
    {"end_access", "nop; nop; thrend\nmov r0, ra14\nnop\n", "mov r0, ra14\n", "ra14"},
    {"branch_distance", "bra.anyz rel, 0\nnop\nbra.anyc rel, 0\nnop\nnop\nnop\n",
     "bra.anyz rel, 0\nnop\nnop\nnop\nbra.anyc rel, 0\nnop\nnop\nnop\n", "a branch 2"},
    {"branch_distance", "bra.anyz rel, 0\nnop\nnop\nbra.anyc rel, 0\nnop\nnop\nnop\n",
     "bra.anyz rel, 0\nnop\nnop\nnop\nbra.anyc rel, 0\nnop\nnop\nnop\n", "a branch 3"},
    {"idle_write", "nop.always r1, r0\n", "nop.never r1, r0\n", "idle ADD"},
    {"branch_register", "bra.always ra3, 0\nnop\nnop\nnop\n", "bra.always ra2, 0\nnop\nnop\nnop\n",
     "ra3 is odd"},
    {"branch_target", "bra.always rel, 800\nnop\nnop\nnop\n", "bra.always rel, 0\nnop\nnop\nnop\n",
     "goes to byte"},
    {"unit_conflict", "mov tmu0_s, r0; mov recip, r1\n", "mov tmu0_s, r0\nmov recip, r1\n",
     "TMU write and SFU write"},
    {"unit_conflict", "mov tmu1_s, r1; mov tmu0_s, r0\n", "mov tmu1_s, r1\nmov tmu0_s, r0\n",
     "TMU write and TMU write"},
    {"unit_conflict", "mov tmu0_t, r1; mov tmu0_s, r0\n", "mov tmu0_t, r1\nmov tmu0_s, r0\n",
     "TMU write and TMU write"},
    {"unit_conflict", "mov recip, r1; mov exp2, r0\n", "mov recip, r1; mov r2, r0\n",
     "SFU write and SFU write"},
    {"unit_conflict", "nop\nnop\nmov tlbc, r1; mov tlbz, r0\n",
     "nop\nnop\nmov tlbz, r0\nmov tlbc, r1\n", "TLB write and TLB write"},
    {"unit_conflict", "nop\nnop\nmov tlbz, r0; nop; loadc\n",
     "nop\nnop\nmov tlbz, r0\nnop; nop; loadc\n", "TLB write and TLB load"},
    // A colour loaded and another written in one instruction are one access; with anything else of
    // the TLB they are two.
    {"unit_conflict", "nop\nnop\nmov tlbc, r0; nop; loadcv\n",
     "nop\nnop\nmov tlbc, r0; nop; loadc\n", "TLB write and TLB load"},
    {"unit_conflict", "nop\nnop\nmov tlbc, r0; mov recip, r1; loadc\n",
     "nop\nnop\nmov tlbm, r0; mov r2, r1; loadc\n",
     "combined TLB colour read and write and SFU write"},
    {"unit_conflict", "mov tmu0_s, r0; nop; ldtmu1\n", "mov tmu0_s, r0\nnop; nop; ldtmu1\n",
     "TMU write and TMU load"},
    {"unit_conflict", "nop; nop; ldtmu0; raddr_b=51\n", "nop; nop; ldtmu0\nnop; nop; raddr_b=51\n",
     "TMU load and mutex read"},
    {"unit_conflict", "nop; nop; raddr_a=51; raddr_b=51\n", "nop; nop; raddr_a=51\n",
     "mutex read and mutex read"},
    {"tlb_z_mask", "nop\nnop\nmov tlbz, r0\nnop\nmov r1, ms_mask\n",
     "nop\nnop\nmov tlbz, r0\nnop\nnop\nmov r1, ms_mask\n", "multisample mask is read 2"},
    {"end_access", "nop; nop; thrend\nnop\nmov tlbz, r0\n", "nop\nnop\nmov tlbz, r0\n",
     "writes the TLB's Z"},
    {"scoreboard", "nop\nmov tlbc, r0\n", "nop\nnop\nmov tlbc, r0\n",
     "a TLB access, which waits for the scoreboard, in instruction 1"},
    {"conditional_peripheral", "mov.zs tmu0_s, r0\n", "mov.zs r1, r0\nmov tmu0_s, r1\n",
     "conditional write of tmu0_s"},
    {"same_destination", "add r1, r0, r0; fmul r1, r2, r2\n",
     "add.zs r1, r0, r0; fmul.zc r1, r2, r2\n", "both ALUs write r1"},
    {"tmu_noswap", "mov tmu_noswap, r0\nnop\nnop\nmov tmu0_s, r1\n",
     "mov tmu_noswap, r0\nnop\nnop\nnop\nmov tmu0_s, r1\n", "3 instructions after"},
    {"vpm_conflict", "mov vr_setup, r0; mov vw_setup, r1\n", "mov vr_setup, r0\nmov vw_setup, r1\n",
     "two VPM set-ups"},
    {"vpm_conflict", "mov r1, vpm; nop; ldtmu0\n", "mov r1, vpm\nnop; nop; ldtmu0\n", "TMU load"},
    {"vpm_read_setup", "mov vr_setup, r0\nnop\nnop\nmov r1, vpm\n",
     "mov vr_setup, r0\nnop\nnop\nnop\nmov r1, vpm\n", "VPM is read 3"},
    {"scoreboard", "nop; nop; sbwait\n", "nop\nnop\nnop; nop; sbwait\n",
     "scoreboard wait in instruction 0"},
    {"pack", "mov r1, r0; nop; pack=1\n", "mov ra1, r0; nop; pack=1\n", "no register of file A"},
    {"pack", "nop; fmul r1, r0, r0; pm; pack=9\n", "nop; fmul r1, r0, r0; pm; pack=5\n",
     "reserved"},
    {"uniform_ports", "add r0, unif, unif_b\n", "add r0, unif, unif\n", "through both files"},
};

std::string slugs(const std::vector<Violation>& found) {
  std::string out;
  for (const Violation& v : found) out += cat(v.rule->slug, " at ", v.at, ": ", v.detail, "\n");
  return out;
}

TEST(QpuRules, each_static_rule_is_refused_where_it_is_broken) {
  std::set<std::string> seen;
  for (const Case& c : kCases) {
    bool ending = std::string_view(c.bad).find("thrend") == std::string_view::npos;
    std::vector<Instr> bad = assemble(std::string(c.bad) + (ending ? kEnd : ""));
    std::vector<Violation> found = validate(bad);
    ASSERT_EQ(found.size(), 1u) << c.bad << slugs(found);
    EXPECT_EQ(found[0].rule->slug, std::string_view(c.slug)) << c.bad;
    EXPECT_NE(found[0].detail.find(c.text), std::string::npos) << found[0].detail;
    Error error = violation_error(found[0], bad);
    EXPECT_EQ(error.code(), cat("qpu.hazard.", c.slug));
    EXPECT_NE(std::string(error.what()).find("pc 0x"), std::string::npos);
    seen.insert(c.slug);
    EXPECT_EQ(slugs(validate(assemble(std::string(c.good) + kEnd))), "") << c.good;
  }
  EXPECT_EQ(validate(assemble("nop\nnop\n")).front().rule->slug, std::string_view("no_end"));
  seen.insert("no_end");
  for (const Rule& r : rules()) {
    if (r.kind == RuleKind::run) continue;
    EXPECT_TRUE(seen.count(r.slug)) << "no test breaks rule " << r.name << " " << r.slug;
  }
}

TEST(QpuRules, hazards_are_seen_along_branches) {
  // ra1 is written in the last delay slot and read at the target only.
  std::vector<Instr> program =
      assemble(cat("add r0, ra1, r0\nnop\nbra.anyz rel, -48\nnop\nnop\nmov ra1, r0\n", kEnd));
  std::vector<Violation> found = validate(program);
  ASSERT_EQ(found.size(), 1u) << slugs(found);
  EXPECT_EQ(found[0].at, 0u);
  EXPECT_EQ(found[0].because, 5u);
  // What follows an unconditional branch's slots is not reached from them.
  program = assemble(cat("bra.always rel, 8\nnop\nnop\nmov ra1, r0\nadd r0, ra1, r0\n", kEnd));
  EXPECT_EQ(slugs(validate(program)), "");
}

TEST(QpuRules, idle_operations_and_dropped_reads_break_nothing) {
  EXPECT_EQ(slugs(validate(
                assemble(cat("mov ra1, r0\nnop; nop; raddr_a=1\nmov.never tmu0_s, r0\n", kEnd)))),
            "");
}

TEST(QpuRules, a_semaphore_excludes_other_peripherals) {
  Instr i;
  i.kind = kSem, i.sig = kSigLdi, i.sem = 3;
  i.cond_add = kAlways, i.waddr_add = kWTmu0S;
  const char* slug = nullptr;
  EXPECT_EQ(word_rule(i, &slug), "TMU write and semaphore in one instruction");
  i.waddr_add = kWVpm;
  EXPECT_EQ(word_rule(i, &slug), "");
}

TEST(QpuRules, each_rule_names_its_source) {
  for (const Rule& r : rules()) EXPECT_NE(std::string_view(r.source), "") << r.name;
}

}  // namespace
}  // namespace weft::qpu::hw
