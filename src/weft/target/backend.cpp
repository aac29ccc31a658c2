// SPDX-License-Identifier: Apache-2.0
#include "weft/target/backend.h"

namespace weft {

namespace {
[[noreturn]] void no_assembler(const Target& target, std::size_t size) {
  throw Error(ErrorKind::value, "target.assembler.none",
              cat("target \"", target.text(), "\" has no assembler for the ", size,
                  " bytes that were given"));
}
}  // namespace

std::string Backend::assemble(std::string_view text, std::string_view, const Target& target) const {
  no_assembler(target, text.size());
}

std::string Backend::disassemble(std::string_view words, const Target& target) const {
  no_assembler(target, words.size());
}

}  // namespace weft
