// SPDX-License-Identifier: Apache-2.0
#pragma once
// The artifact directory of a compiled layout: out.json (parameters and a summary),
// bin/out_rpc.json (symbol table), bin/layout.bin and bin/out_<k>.bin (one file per distinct
// program, checksummed). Written beside the target and renamed, so that a killed run leaves nothing
// that looks whole.

#include <string>

#include "weft/targets/wse/program.h"

namespace weft::wse {

/// Replaces `directory`. Throws Error(io, "wse.artifact.write"), also when `directory` exists and
/// does not look like an artifact directory (it is then left alone).
void write_artifact(const Layout& layout, const std::string& directory);

/// Throws Error(io, "wse.artifact.read") naming the file and what is wrong with it.
Layout read_artifact(const std::string& directory);

/// One program or layout as bytes and back; throws Error(io, "wse.artifact.read").
std::string to_bytes(const Program& program);
Program program_from_bytes(std::string_view bytes, std::string_view file);

}  // namespace weft::wse
