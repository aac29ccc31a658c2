// SPDX-License-Identifier: Apache-2.0
// What a back end does when it says nothing. Kept apart from build.cpp, which needs the list of
// back ends: a program that links one target links this.
#include "weft/target/backend.h"

#include "weft/base/text.h"
#include "weft/schedule/schedule.h"

namespace weft {

namespace {
[[noreturn]] void no_assembler(const Target& target, std::size_t size) {
  throw Error(ErrorKind::value, "target.assembler.none",
              cat("target \"", target.text(), "\" has no assembler for the ", size,
                  " bytes that were given"))
      .help("choose a target whose source() is assembly");
}
}  // namespace

std::unique_ptr<schedule::Schedule> Backend::default_steps(const ir::PrimFunc& f,
                                                           const Target& target,
                                                           const Json&) const {
  throw Error(ErrorKind::value, "target.schedule.steps",
              cat("target ", target.name, " makes no steps for \"", f->name,
                  "\": its default schedule is no list of public steps"))
      .help("weft.build applies it by itself");
}

std::string Backend::assemble(std::string_view text, std::string_view, const Target& target) const {
  no_assembler(target, text.size());
}

std::string Backend::disassemble(std::string_view words, const Target& target) const {
  no_assembler(target, words.size());
}

}  // namespace weft
