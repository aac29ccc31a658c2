// SPDX-License-Identifier: Apache-2.0
// Mutated texts and files through the parsers: each ends in a value or a weft::Error, never in
// another exception, a crash, or a hang of ten seconds. Without arguments a short run with a fixed
// seed; `fuzz_parsers COUNT [SEED [NAME]]` tries so many texts of each parser, or of one
// (tools/check_parsers runs it under sanitizers); `fuzz_parsers --list` prints the names. What ends
// the process leaves its text in "fuzz_parsers.last"; `fuzz_parsers --last NAME` parses it again.

#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <functional>
#include <random>
#include <string>
#include <vector>

#include "ir_programs.h"
#include "last_input.h"
#include "weft/base/hash.h"
#include "weft/base/json.h"
#include "weft/ir/text.h"
#include "weft/isa/isa.h"
#include "weft/runtime/module.h"
#include "weft/target/target.h"
#if WEFT_FUZZ_QPU
#include "weft/targets/qpu/isa.h"
#endif
#if WEFT_FUZZ_VTA
#include "weft/targets/vta/isa.h"
#endif

namespace {

using weft::cat;

struct Parser {
  std::string name;
  std::function<void(const std::string&)> parse;
  std::vector<std::string> seeds;
};

const weft::isa::InstructionSet& toy() {
  using namespace weft::isa;
  static const InstructionSet set("toy", 32,
                                  {Format{"add",
                                          {{28, 4, 1}},
                                          {{"rd", 0, 5, FieldKind::unsigned_, {}, ""},
                                           {"ra", 5, 5, FieldKind::unsigned_, {}, ""},
                                           {"imm", 10, 12, FieldKind::signed_, {}, ""}},
                                          "r{rd}, r{ra}, {imm}",
                                          "adds"},
                                   Format{"halt", {{28, 4, 2}}, {}, "", "ends"}});
  return set;
}

std::string module_bytes() {
  using namespace weft::runtime;
  Binary b;
  b.target = b.format = "toy";
  b.bytes = std::string("\0\1\2\3", 4);
  b.kernels = {{"k", {{"data", ParamKind::pointer, weft::dtypes::int8, "global"}}, {}, 0}};
  HostPlan plan;
  plan.name = "main";
  plan.slots = 3, plan.buffers = 2;
  PlanParam data, number;
  data.tensor = {"data",  weft::dtypes::int8, {{{PlanOp::slot, 0}}}, {0}, false, {}, 1, true,
                 "global"};
  number.is_tensor = false, number.scalar = {"n", weft::dtypes::int64, 1};
  plan.params = {data, number};
  auto step = [](StepKind kind, std::int32_t target, PlanExpr value) {
    PlanStep s;
    s.kind = kind, s.target = target, s.value = std::move(value);
    return s;
  };
  PlanStep launch = step(StepKind::launch, 0, {}),
           turns = step(StepKind::loop, 2, {{PlanOp::slot, 1}}),
           choice = step(StepKind::branch, 0,
                         {{PlanOp::slot, 1}, {PlanOp::constant, 3}, {PlanOp::lt, 0}});
  launch.text = "k", launch.args = {{}}, launch.args[0].offset_bytes = {{PlanOp::constant, 0}};
  turns.min = {{PlanOp::constant, 0}}, turns.body = {launch};
  choice.body = {turns}, choice.otherwise = {launch};
  PlanStep room = step(StepKind::allocate, 1, {{PlanOp::constant, 64}});
  room.text = "global";
  plan.steps = {room, choice, step(StepKind::release, 1, {})};
  return Module(b, {plan}).serialize();
}

/// A module file around a header: what is behind the checks of length and checksum is reached.
std::string module_around(const std::string& header) {
  const std::string whole = module_bytes();
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data() + 12, 8);
  std::string out = whole.substr(0, 12);
  auto put = [&](std::uint64_t n) { out.append(reinterpret_cast<const char*>(&n), 8); };
  put(header.size());
  out += header + whole.substr(20 + length, whole.size() - 28 - length);
  put(weft::hash_bytes(out.data(), out.size()));
  return out;
}
std::string module_header() {
  const std::string whole = module_bytes();
  std::uint64_t length = 0;
  std::memcpy(&length, whole.data() + 12, 8);
  return whole.substr(20, length);
}

const char* kPrograms[] = {
    R"(@T.prim_func
def main(A: T.Buffer((8, 16), "float32"), B: T.Buffer((16, 4), "float32"), C: T.Buffer((8, 4), "float32")):
    T.func_attr({"global_symbol": "main", "tir.noalias": True})
    for i, j, k in T.grid(8, 4, 16):
        with T.block("C"):
            vi, vj, vk = T.axis.remap("SSR", [i, j, k])
            T.reads(A[vi, vk], B[vk, vj])
            with T.init():
                C[vi, vj] = T.float32(0)
            C[vi, vj] = C[vi, vj] + A[vi, vk] * B[vk, vj]
)",
    R"(@T.ir_module
class Module:
    @T.prim_func
    def main(a: T.handle, n: T.int64):
        A = T.match_buffer(a, (n, 4), "int8", strides=[8, 1])
        s = T.alloc_buffer((4,), "int32", scope="shared")
        for i in T.thread_binding(4, thread="threadIdx.x"):
            with T.block("s"):
                vi = T.axis.spatial(4, i)
                T.where(vi < 3)
                s[vi] = T.if_then_else(vi % 2 == 0, T.Cast("int32", A[0, vi]), T.max(vi, 1) // 2)
)",
    "x = 'a\\n' + \"b\" # comment\n"};

std::vector<std::string> programs() {
  std::vector<std::string> out(std::begin(kPrograms), std::end(kPrograms));
  for (const char* p : weft::ir::programs::all()) out.emplace_back(p);
  return out;
}

std::string mutate(std::string s, const std::vector<std::string>& others, std::mt19937_64& rng) {
  auto below = [&](std::size_t n) { return n ? static_cast<std::size_t>(rng() % n) : 0; };
  static const std::string pieces[] = {"(",
                                       ")",
                                       "[",
                                       "{",
                                       "\"",
                                       "'",
                                       "\n",
                                       "\t",
                                       "    ",
                                       ",",
                                       ":",
                                       "-1",
                                       "99999999999999999999",
                                       "1e999",
                                       "\\u0000",
                                       "\xff",
                                       "\0",
                                       "T.",
                                       "0x",
                                       "#"};
  for (std::size_t edits = rng() % 2 ? 1 : 1 + below(6); edits > 0; --edits) {
    std::size_t at = below(s.size() + 1), n = below(12);
    switch (rng() % 7) {
      case 0:
        if (at < s.size()) s[at] = static_cast<char>(rng());
        break;
      case 1:
        if (at < s.size()) s[at] = static_cast<char>(s[at] ^ (1 << (rng() % 8)));
        break;
      case 2: s.erase(at, n); break;
      case 3: s.insert(at, pieces[below(std::size(pieces))]); break;
      case 4: s.insert(at, s.substr(below(s.size() + 1), below(40))); break;
      case 5: s.resize(at); break;
      default: {
        const std::string& other = others[below(others.size())];
        s.insert(at, other.substr(below(other.size() + 1), below(60)));
      }
    }
    if (s.size() > 20000) s.resize(20000);
  }
  return s;
}

std::vector<Parser> make_parsers() {
  std::vector<Parser> out = {
      {"T-script",
       [](const std::string& s) {
         weft::ir::IRModule m = weft::ir::parse_module(s);
         std::string text = weft::ir::print(m);
         try {  // what parses also prints, and parses again
           weft::ir::parse_module(text);
         } catch (const weft::Error& error) {
           throw weft::Error(weft::ErrorKind::internal, "fuzz.print",
                             cat("the printed text is refused: ", error.what(), "\n", text));
         }
       },
       programs()},
      {"JSON",
       [](const std::string& s) { weft::Json::parse(weft::Json::parse(s).dump()); },
       {R"({"a": [1, -2.5e3, "x\u00e9\n", null, true], "b": {"c": {}}})", "[[[[]]]]",
        "9223372036854775808"}},
      {"target",
       [](const std::string& s) { weft::Target::parse(weft::Target::parse(s).text()); },
       {"cuda:arch=sm_90a,max_threads_per_block=1024", "wse:4x4", "vta:config.json"}},
      {"assembly",
       [](const std::string& s) { toy().assemble(s); },
       {"add r1, r2, -5\nhalt ; end\n"}},
      {"module file",
       [](const std::string& s) { weft::runtime::Module::deserialize(s, "<fuzz>"); },
       {module_bytes()}},
      {"module header",
       [](const std::string& s) {
         auto read = weft::runtime::Module::deserialize(module_around(s), "<fuzz>");
         weft::runtime::Module::deserialize(read->serialize(), "<again>");
       },
       {module_header()}},
      {"element type",
       [](const std::string& s) { weft::parse_dtype(s); },
       {"float32x4", "bfloat16", "bool"}},
  };
#if WEFT_FUZZ_QPU
  out.push_back(
      {"QPU text",
       [](const std::string& s) {
         for (const auto& i : weft::qpu::hw::assemble(s))
           weft::qpu::hw::assemble(weft::qpu::hw::print(i));
       },
       {"fadd r0, r1, r2; fmul.zs r3, ra4, rb5; sf; ldtmu0\nbra.anyz rel, ra2, -8; link ra3\n",
        "ldi ra1, 0x10; to rb2\nsacq 3, r0; to r1\nadd.nc null, #3, r1; mov rb1, r2; pack=1\n",
        "mov ra28, unif # vpm\nnop; nop; thrend\nldi.zc r0, 1.5\nfmaxabs rb31, r5, elem\n"}});
#endif
#if WEFT_FUZZ_VTA
  static const weft::vta::Isa isa(weft::vta::Config::sample(weft::vta::Config::samples().front()));
  std::string all;
  for (unsigned op = 0; op < 5; ++op) {
    weft::vta::Insn n;
    n.op = static_cast<weft::vta::Opcode>(op);
    if (n.op == weft::vta::Opcode::store) n.mem = weft::vta::MemType::out;
    all += isa.print(n) + "\n";
  }
  out.push_back({"VTA text", [](const std::string& s) { isa.assemble(s); }, {all}});
  out.push_back({"VTA configuration",
                 [](const std::string& s) { weft::vta::Config::parse(s); },
                 {isa.config().to_json().dump()}});
#endif
  return out;
}

}  // namespace

int main(int argc, char** argv) {
  const char* path = "fuzz_parsers.last";
  if (argc == 2 && std::string(argv[1]) == "--list") {
    for (const Parser& p : make_parsers()) std::printf("%s\n", p.name.c_str());
    return 0;
  }
  const bool again = argc == 3 && std::string(argv[1]) == "--last";
  const std::string stored = again ? weft::testing::LastInput::read(path) : "";
  const long count = again ? 1 : argc > 1 ? std::atol(argv[1]) : 250;
  const std::uint64_t seed = argc > 2 && !again ? std::strtoull(argv[2], nullptr, 10) : 20261121;
  const std::string only = again ? argv[2] : argc > 3 ? argv[3] : "";
  std::printf("fuzz_parsers: seed %llu\n", static_cast<unsigned long long>(seed));
  int bad = 0, tried = 0;
  // Short runs of the tests share a folder.
  weft::testing::LastInput last(argc > 1 && !again ? path : "/dev/null");
  for (const Parser& p : make_parsers()) {
    if (!only.empty() && p.name != only) continue;
    ++tried;
    std::mt19937_64 rng(seed);
    long accepted = 0, refused = 0;
    double longest = 0;
    auto complain = [&](const char* what, const std::string& said, const std::string& text) {
      std::printf("%s: %s %s\n  for: %s\n", p.name.c_str(), what, said.c_str(),
                  weft::json_quote(text).c_str());
      ++bad;
    };
    for (long round = 0; round < count && bad < 20; ++round) {
      const std::size_t whole = static_cast<std::size_t>(round);
      const std::string text = again ? stored
                               : whole < p.seeds.size()
                                   ? p.seeds[whole]
                                   : mutate(p.seeds[rng() % p.seeds.size()], p.seeds, rng);
      last.keep(text);
      const std::clock_t begin = std::clock();  // of the processor: others may be busy with it
      try {
        p.parse(text);
        ++accepted;
      } catch (const weft::Error& error) {
        ++refused;
        if (round == 0 && !again) complain("the whole text is refused:", error.what(), text);
        if (error.kind() == weft::ErrorKind::internal || error.code().empty() || !*error.what())
          complain("", error.what(), text);
      } catch (const std::exception& error) {
        complain("foreign exception", error.what(), text);
      }
      const double took = static_cast<double>(std::clock() - begin) / CLOCKS_PER_SEC;
      longest = std::max(longest, took);
      if (took > 10) complain("took", std::to_string(took) + " s", text);
    }
    std::printf("%-18s %8ld accepted %8ld refused, longest %.3f s\n", p.name.c_str(), accepted,
                refused, longest);
    std::fflush(stdout);
    if (!refused && !again) ++bad;  // a parser that takes everything was not tried
  }
  return bad || !tried ? 1 : 0;
}
