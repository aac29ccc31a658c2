// SPDX-License-Identifier: Apache-2.0
// One distinct PE program: instantiation, code, frame sizes, memory image and symbols.
#include <algorithm>

#include "weft/targets/wse/csl/depth.h"

namespace weft::wse::csl {

/// Addresses of the used named objects as their declarations stand in the source, descriptors after
/// the rest: the machine's have another size, and an array that a program overruns has its
/// neighbour behind it. Empty where they lie that way already. Constants without a name follow at
/// `end`.
std::map<DeclaredAt, std::int32_t> Analyzer::declaration_order(std::uint32_t* end) const {
  std::map<std::pair<bool, DeclaredAt>, const Global*> named;
  for (const Global* g : program_->used) {
    if (!g->name || !g->module) continue;
    const Type& element = g->type->kind == T::array ? *g->type->elem : *g->type;
    named.emplace(std::pair(element.is_dsd(), declared_at(*g)), g);
  }
  std::map<DeclaredAt, std::int32_t> out;
  bool in_order = true;
  std::map<std::int32_t, std::int32_t> before;  // of each section
  ProgramState ends;
  for (const auto& [where, g] : named) {
    std::int32_t& last = before.try_emplace(g->section, -1).first->second;
    in_order = in_order && g->address > last;
    last = g->address;
    std::uint32_t& next = section_end(ends, g->section);
    const std::uint32_t align = std::max(g->align, g->type->align);
    const std::uint32_t at = (next + align - 1) / align * align;
    out.emplace(where.second, static_cast<std::int32_t>(at));
    next = at + std::max(1u, g->type->size);
  }
  *end = ends.data_end;
  if (in_order) out.clear();
  return out;
}

// An address is part of constants and descriptors from its first use on. Hence programs whose
// objects are first used in another order than they are declared in are compiled again.
void Analyzer::compile_program(std::size_t index) {
  const std::uint64_t steps = steps_;
  program_ = std::make_unique<ProgramState>();
  compile_once(index);
  if (program_->broken) return;
  std::uint32_t end = 0;
  auto order = declaration_order(&end);
  if (order.empty()) return;
  steps_ = steps;
  program_ = std::make_unique<ProgramState>();
  program_->placed = std::move(order);
  program_->data_end = end;
  compile_once(index);
}

void Analyzer::compile_once(std::size_t index) {
  const TileProgram& tile = layout_->programs[index];
  frame_ = nullptr;
  depth_ = 0;
  program_->out.fp16 = static_cast<std::uint8_t>(options_.fp16);
  std::string label = tile.source->path;
  std::size_t slash = label.rfind('/');
  if (slash != std::string::npos) label = label.substr(slash + 1);
  program_->out.name = cat(label, " (", index, ")");
  int errors = diagnostics_.error_count();
  try {
    Module* m =
        instantiate(tile.source, tile.params.defined() ? &tile.params : nullptr, tile.pos, true);
    run_module(m, false);
    // Settings that name tasks wait until all tasks are bound; code that is compiled later may add
    // more of them (a FIFO that only a function uses).
    bool checked = false;
    for (std::size_t next = 0; !checked || next < program_->deferred.size();) {
      Frame frame;
      frame.module = m;
      frame_ = &frame;
      while (next < program_->deferred.size()) {
        try {
          program_->deferred[next++]();
        } catch (const Abandon&) {
          program_->broken = true;
        }
      }
      frame_ = nullptr;
      if (!checked) check_task_ids();
      checked = true;
      compile_pending();
    }
    check_uses(index);
    if (diagnostics_.error_count() > errors || program_->broken) {
      program_->broken = true;
      return;
    }
    finish_program();
  } catch (const Abandon&) {
    program_->broken = true;
  }
}

/// Objects of sections with an address lie in memory and on nothing else; returns where they end.
std::uint32_t Analyzer::check_sections() {
  if (program_->section_ends.empty()) return 0;
  std::vector<Global*> all = program_->used;
  std::sort(all.begin(), all.end(), [](Global* a, Global* b) { return a->address < b->address; });
  auto end_of = [](const Global* g) {
    return static_cast<std::uint32_t>(g->address) + std::max(1u, g->type->size);
  };
  auto named = [&](const Global* g) {
    return g->name ? cat('"', name(g->name), '"') : std::string("a constant");
  };
  std::uint32_t end = 0;
  const Global* before = nullptr;
  for (Global* g : all) {
    if (before && static_cast<std::uint32_t>(g->address) < end_of(before)) {
      const bool later = g->section >= 0;
      fail(later ? g->pos : before->pos, "wse.csl.section.overlap",
           cat(named(g), " would lie at byte ", g->address, ", where ", named(before),
               " lies from ", before->address, " to ", end_of(before)),
           "give the section another address, or move it behind the rest");
    }
    if (g->section >= 0 && end_of(g) > static_cast<std::uint32_t>(kMemoryBytes))
      fail(g->pos, "wse.csl.section.outside",
           cat(named(g), " would lie at bytes ", g->address, " to ", end_of(g), "; a PE has ",
               kMemoryBytes));
    if (!before || end_of(g) > end_of(before)) before = g;
    if (g->section >= 0) end = std::max(end, end_of(g));
  }
  return end;
}

void Analyzer::finish_program() {
  // Writing initial data can name further objects and functions.
  std::vector<std::string> images;
  std::size_t done = 0;
  Frame frame;
  Module none;
  frame.module = &none;
  for (;;) {
    compile_pending();
    if (program_->broken) return;
    frame_ = &frame;
    if (done == program_->used.size()) break;
    while (done < program_->used.size()) {
      Global* g = program_->used[done++];
      std::string bytes(std::min<std::uint32_t>(g->type->size, 1u << 17), '\0');
      if (g->init.defined() && g->type->size <= (1u << 17)) write_bytes(bytes, 0, g->init, g->pos);
      images.push_back(std::move(bytes));
    }
  }
  finish_functions();
  Program& out = program_->out;
  std::uint32_t instructions = 0;
  for (const Function& f : out.functions) instructions += static_cast<std::uint32_t>(f.code.size());
  out.code_bytes =
      instructions * 4 + static_cast<std::uint32_t>(out.bulks.size() + out.maps.size()) * 8;
  out.data_bytes = (program_->data_end + 1) / 2 * 2;
  const std::uint32_t sections_end = check_sections();
  if (out.data_bytes + out.code_bytes > static_cast<std::uint32_t>(kMemoryBytes)) {
    std::vector<Global*> largest = program_->used;
    std::sort(largest.begin(), largest.end(),
              [](Global* a, Global* b) { return a->type->size > b->type->size; });
    std::string note = "the largest objects are ";
    for (std::size_t k = 0; k < std::min<std::size_t>(4, largest.size()); ++k) {
      note +=
          cat(k ? ", " : "", largest[k]->name ? name(largest[k]->name) : std::string("a constant"),
              " (", largest[k]->type->size, " bytes)");
    }
    Pos pos = largest.empty() ? Pos{0, 0xffff, 1} : largest[0]->pos;
    fail(pos, "wse.csl.memory.overflow",
         cat("program \"", out.name, "\" needs ", out.data_bytes, " bytes of data and about ",
             out.code_bytes, " bytes of code; a PE has ", kMemoryBytes, " bytes"),
         note);
  }
  out.data_bytes = std::max(out.data_bytes, (sections_end + 1) / 2 * 2);
  for (std::size_t k = 0; k < program_->used.size(); ++k) {
    Global* g = program_->used[k];
    const std::string& bytes = images[k];
    if (bytes.find_first_not_of('\0') != std::string::npos) {
      out.image.push_back({static_cast<std::uint16_t>(g->address), bytes});
    }
    if (g->name) {
      Symbol s0 = g->name;
      wse::Symbol s;
      s.name = name(s0);
      if (g->link_name) s.name = name(g->link_name);
      else if (g->module && !g->module->is_root) s.name = cat(g->module->label, ".", s.name);
      s.address = static_cast<std::uint16_t>(g->address);
      s.bytes = g->type->size;
      TypeRef elem = g->type->kind == T::array ? g->type->elem : g->type;
      s.elem = elem->is_scalar() ? bytecode_type(elem) : Ty::u8;
      out.symbols.push_back(std::move(s));
    }
  }
  frame_ = nullptr;
}

/// Marks the calls of functions that compilers put in place of the call: those called from one
/// place or no longer than kInlineInstructions, recursive ones apart. `recursive` by function.
void Analyzer::mark_inlined(const std::vector<bool>& recursive) {
  constexpr std::size_t kInlineInstructions = 45;
  std::vector<int> sites(program_->builders.size(), 0);
  for (const Builder& f : program_->builders) {
    for (const auto& call : f.calls)
      if (call.first >= 0) ++sites[static_cast<std::size_t>(call.first)];
  }
  auto in_place = [&](std::size_t k) {
    return !recursive[k] &&
           (sites[k] == 1 || program_->builders[k].out.code.size() <= kInlineInstructions);
  };
  for (std::size_t k = 0; k < program_->builders.size(); ++k) {
    for (Insn& i : program_->builders[k].out.code) {
      if ((i.op == Op::call && in_place(i.c)) || (i.op == Op::ret && sites[k] > 0 && in_place(k)))
        i.ty = kInlined;
    }
  }
}

/// Register windows of callees lie above their caller's: sizes of frames add up along calls.
void Analyzer::finish_functions() {
  std::size_t n = program_->builders.size();
  std::vector<std::pair<int, int>> total(n, {-1, -1});
  std::vector<int> state(n, 0);
  std::vector<bool> recursive(n, false);
  struct Step {
    std::size_t fn, next;
  };
  for (std::size_t root = 0; root < n; ++root) {
    if (state[root]) continue;
    std::vector<Step> stack{{root, 0}};
    state[root] = 1;
    while (!stack.empty()) {
      Step& s = stack.back();
      Builder& f = program_->builders[s.fn];
      std::vector<int> callees;
      if (s.next < f.calls.size()) {
        auto& call = f.calls[s.next++];
        if (call.first >= 0) callees.push_back(call.first);
        else callees.assign(program_->pointed.begin(), program_->pointed.end());
        for (int c : callees) {
          if (state[static_cast<std::size_t>(c)] == 1)
            recursive[static_cast<std::size_t>(c)] = true;
          if (state[static_cast<std::size_t>(c)] == 0) {
            state[static_cast<std::size_t>(c)] = 1;
            stack.push_back({static_cast<std::size_t>(c), 0});
          }
        }
        continue;
      }
      int regs = std::max<int>(1, f.out.regs), dsds = f.out.dsds;
      for (auto& call : f.calls) {
        std::vector<int> targets;
        if (call.first >= 0) targets.push_back(call.first);
        else targets.assign(program_->pointed.begin(), program_->pointed.end());
        for (int c : targets) {
          auto [r, d] = total[static_cast<std::size_t>(c)];
          if (r < 0) {  // recursion: the engine grows the window at the call
            r = std::max<int>(1, program_->builders[static_cast<std::size_t>(c)].out.regs);
            d = program_->builders[static_cast<std::size_t>(c)].out.dsds;
          }
          regs = std::max(regs, call.second.first + r);
          dsds = std::max(dsds, call.second.second + d);
        }
      }
      total[s.fn] = {std::min(regs, 0xffff), std::min(dsds, 0xffff)};
      state[s.fn] = 2;
      stack.pop_back();
    }
  }
  mark_inlined(recursive);
  for (std::size_t k = 0; k < n; ++k) {
    program_->builders[k].out.regs = static_cast<std::uint16_t>(total[k].first);
    program_->builders[k].out.dsds = static_cast<std::uint16_t>(total[k].second);
    program_->out.functions.push_back(std::move(program_->builders[k].out));
  }
}

}  // namespace weft::wse::csl
