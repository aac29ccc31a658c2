// SPDX-License-Identifier: Apache-2.0
// The tools without a runtime: cslc, and the compilation of SdkLayout programs.
#include "weft/base/error.h"
#include "weft/targets/wse/api.h"
#include "weft/targets/wse/program_io.h"

#if __has_include("weft/targets/wse/csl/driver_ready.h")
#include "weft/targets/wse/csl/compile.h"
#define WEFT_WSE_HAS_CSL 1
#endif

namespace weft::wse {

Json call_tool(const std::string& method, const Json&) {
  throw Error(ErrorKind::value, "wse.api.method", cat("there is no tool \"", method, "\""));
}

}  // namespace weft::wse
