// SPDX-License-Identifier: Apache-2.0
#pragma once
// One door for other languages: a runtime handle, methods by name, arguments and results as JSON,
// arrays as pointers to 32-bit words. The C functions below are what the Python module exports;
// they never throw: an error comes back as JSON {"kind", "code", "message", "text"}.

#include <cstdint>
#include <string>

#include "weft/base/json.h"
#include "weft/targets/wse/sdk_runtime.h"

namespace weft::wse {

/// Calls a method of a runtime. Throws Error(value, "wse.api.method") for unknown names.
Json call_runtime(SdkRuntime& runtime, const std::string& method, const Json& args, void* data,
                  std::int64_t count);

/// Functions without a runtime: "compile", "compile_layout".
Json call_tool(const std::string& method, const Json& args);

}  // namespace weft::wse

extern "C" {
/// Null on error. `options`: {"cmaddr", "timed", "threads", "engine", "trace", "trace_links"}; with
/// "trace" the method save_trace {"path"} writes what ran so far.
void* weft_wse_open(const char* directory, const char* options, char** error);
void weft_wse_close(void* runtime);
/// Result text, or null on error. Free both with weft_wse_free.
char* weft_wse_call(void* runtime, const char* method, const char* args, void* data,
                    std::int64_t count, char** error);
char* weft_wse_tool(const char* method, const char* args, char** error);
void weft_wse_free(char* text);
/// Calls of this thread end with "wse.interrupted" soon after *stop becomes other than 0; null:
/// they run to their end. Another thread may write *stop meanwhile.
void weft_wse_watch(const std::int32_t* stop);
}
