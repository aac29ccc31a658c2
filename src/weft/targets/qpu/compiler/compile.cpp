// SPDX-License-Identifier: Apache-2.0
#include "weft/targets/qpu/compiler/compile.h"

#include "weft/targets/qpu/compiler/mir.h"

namespace weft::qpu {

Compiled compile_program(const ast::Program& program) {
  mir::Function f = mir::lower(program, false);
  mir::optimise(f);
  std::vector<std::int16_t> home;
  if (!mir::allocate(f, home)) {
    f = mir::lower(program, true);
    mir::optimise(f);
    bool fits = mir::allocate(f, home);
    WEFT_CHECK(fits, "spilling left kernel \"", program.name, "\" without registers");
  }
  mir::Emitted e = mir::schedule(f, home);
  Compiled out;
  out.instructions = e.code.size();
  runtime::Binary& b = out.binary;
  b.target = "qpu";
  b.format = "qpu";
  std::vector<hw::Code> words;
  for (const hw::Instr& i : e.code) words.push_back(hw::encode(i));
  b.bytes.assign(reinterpret_cast<const char*>(words.data()), words.size() * 8);
  b.source = hw::disassemble(words);
  const ast::Place* last = nullptr;
  for (std::size_t n = 0; n < e.places.size(); ++n) {
    const ast::Place& p = e.places[n];
    if (last && p.line == last->line && p.file == last->file) continue;
    if (p.line == 0) continue;
    b.debug.push_back({n * 8, program.name, p.file, p.line});
    last = &p;
  }
  runtime::KernelSignature kernel;
  kernel.name = program.name;
  std::vector<runtime::KernelParam> scalars;
  std::size_t number = 0;
  for (const ast::Param& p : program.params) {
    std::string name = cat("a", number++);
    if (p.kind == ast::Param::Kind::pointer)
      kernel.params.push_back({name, runtime::ParamKind::pointer, dtypes::int32, "global"});
    else
      scalars.push_back({name, runtime::ParamKind::scalar,
                         p.kind == ast::Param::Kind::real ? dtypes::float32 : dtypes::int32,
                         "global"});
  }
  kernel.params.insert(kernel.params.end(), scalars.begin(), scalars.end());
  kernel.axes = {"qpu"};
  b.kernels.push_back(kernel);
  b.metadata = Json::object();
  b.metadata["uniforms"] = Json::array();
  for (const std::string& u : f.uniforms) b.metadata["uniforms"].push_back(u);
  b.metadata["spill_bytes"] = f.spill_slots * 64;
  b.metadata["prints"] = Json::array();
  for (const auto& p : e.prints) {
    Json item = Json::object();
    item["pc"] = p.pc;
    item["kind"] = f.prints[static_cast<std::size_t>(p.print)].kind;
    item["text"] = f.prints[static_cast<std::size_t>(p.print)].text;
    b.metadata["prints"].push_back(item);
  }
  return out;
}

}  // namespace weft::qpu
