// SPDX-License-Identifier: Apache-2.0
#pragma once
// Names of the QPU's operations, conditions, signals and register addresses: the one list from
// which table, assembler, disassembler and manual take their words. Source: architecture guide,
// tables 1 to 14.

#include <cstdint>
#include <vector>

#include "weft/isa/isa.h"

namespace weft::qpu::hw::names {

struct Op {
  std::uint8_t code;
  const char* name;
  const char* meaning;
};

inline constexpr Op kAddOps[] = {
    {0, "nop", "nothing"},
    {1, "fadd", "a + b, float, rounded toward zero"},
    {2, "fsub", "a - b, float, rounded toward zero"},
    {3, "fmin", "the smaller float; C: a > b"},
    {4, "fmax", "the larger float; C: a > b"},
    {5, "fminabs", "the smaller of |a| and |b|"},
    {6, "fmaxabs", "the larger of |a| and |b|"},
    {7, "ftoi", "float a to signed integer, truncated; out of range gives 0"},
    {8, "itof", "signed integer a to float, truncated"},
    {12, "add", "a + b; C: carry"},
    {13, "sub", "a - b; C: unsigned borrow"},
    {14, "shr", "a >> (b & 31), zeros in; C: last bit out"},
    {15, "asr", "a >> (b & 31), sign in; C: last bit out"},
    {16, "ror", "a rotated right by b & 31"},
    {17, "shl", "a << (b & 31); C: last bit out"},
    {18, "min", "smaller signed integer; C: a > b"},
    {19, "max", "larger signed integer; C: a > b"},
    {20, "and", "a & b"},
    {21, "or", "a | b"},
    {22, "xor", "a ^ b"},
    {23, "not", "~a"},
    {24, "clz", "leading zeros of a, 32 for 0"},
    {30, "v8adds", "four bytes a + b, saturated to 255"},
    {31, "v8subs", "four bytes a - b, saturated to 0"},
};

inline constexpr Op kMulOps[] = {
    {0, "nop", "nothing"},
    {1, "fmul", "a * b, float"},
    {2, "mul24", "low 32 bits of the product of the low 24 bits, unsigned"},
    {3, "v8muld", "four bytes (a * b + 127) / 255"},
    {4, "v8min", "four bytes, the smaller"},
    {5, "v8max", "four bytes, the larger"},
    {6, "v8adds", "four bytes a + b, saturated to 255"},
    {7, "v8subs", "four bytes a - b, saturated to 0"},
};

inline constexpr const char* kConditions[] = {"never", "always", "zs", "zc",
                                              "ns",    "nc",     "cs", "cc"};
inline constexpr const char* kBranchConditions[] = {
    "allz", "allnz", "anyz", "anynz", "alln", "allnn", "anyn", "anynn",
    "allc", "allnc", "anyc", "anync", "",     "",      "",     "always"};
inline constexpr const char* kSignals[] = {"bkpt",   "none",   "thrsw",  "thrend", "sbwait",
                                           "sbdone", "lthrsw", "loadcv", "loadc",  "ldcend",
                                           "ldtmu0", "ldtmu1", "loadam"};

/// Addresses 32..63; null: no meaning.
inline constexpr const char* kReadA[] = {
    "unif",    nullptr, nullptr, "vary",  nullptr, nullptr, "elem", "null",    nullptr,   "x_coord",
    "ms_mask", nullptr, nullptr, nullptr, nullptr, nullptr, "vpm",  "vr_busy", "vr_wait", "mutex"};
inline constexpr const char* kReadB[] = {
    "unif",     nullptr, nullptr, "vary",  nullptr, nullptr, "qpu", "null",    nullptr,   "y_coord",
    "rev_flag", nullptr, nullptr, nullptr, nullptr, nullptr, "vpm", "vw_busy", "vw_wait", "mutex"};
inline constexpr const char* kWriteA[] = {
    "r0",        "r1",       "r2",      "r3",      "tmu_noswap", "r5quad", "host_int", "null",
    "unif_addr", "quad_x",   "ms_mask", "stencil", "tlbz",       "tlbm",   "tlbc",     "tlbam",
    "vpm",       "vr_setup", "vr_addr", "mutex",   "recip",      "rsqrt",  "exp2",     "log2",
    "tmu0_s",    "tmu0_t",   "tmu0_r",  "tmu0_b",  "tmu1_s",     "tmu1_t", "tmu1_r",   "tmu1_b"};
inline constexpr const char* kWriteB[] = {
    "r0",        "r1",       "r2",       "r3",      "tmu_noswap", "r5rep",  "host_int", "null",
    "unif_addr", "quad_y",   "rev_flag", "stencil", "tlbz",       "tlbm",   "tlbc",     "tlbam",
    "vpm",       "vw_setup", "vw_addr",  "mutex",   "recip",      "rsqrt",  "exp2",     "log2",
    "tmu0_s",    "tmu0_t",   "tmu0_r",   "tmu0_b",  "tmu1_s",     "tmu1_t", "tmu1_r",   "tmu1_b"};

inline std::vector<isa::NamedCode> add_codes() {
  std::vector<isa::NamedCode> out;
  for (const Op& op : kAddOps) out.push_back({op.name, op.code});
  return out;
}
inline std::vector<isa::NamedCode> mul_codes() {
  std::vector<isa::NamedCode> out;
  for (const Op& op : kMulOps) out.push_back({op.name, op.code});
  return out;
}
inline std::vector<isa::NamedCode> conditions() {
  std::vector<isa::NamedCode> out;
  for (std::uint64_t i = 0; i < 8; ++i) out.push_back({kConditions[i], i});
  return out;
}
inline std::vector<isa::NamedCode> branch_conditions() {
  std::vector<isa::NamedCode> out;
  for (std::uint64_t i = 0; i < 16; ++i) {
    if (*kBranchConditions[i]) out.push_back({kBranchConditions[i], i});
  }
  return out;
}
inline std::vector<isa::NamedCode> alu_signals() {
  std::vector<isa::NamedCode> out;
  for (std::uint64_t i = 0; i < 13; ++i) out.push_back({kSignals[i], i});
  return out;
}

}  // namespace weft::qpu::hw::names
