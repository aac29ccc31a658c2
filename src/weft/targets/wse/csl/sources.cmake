# Sources of the CSL compiler, relative to the target's folder, and the embedded library modules.
set(WSE_CSL_SOURCES
  csl/analyzer.cpp csl/builtins_bulk.cpp csl/builtins_config.cpp csl/builtins_core.cpp csl/builtins_dsd.cpp csl/builtins_fifo.cpp csl/builtins_layout.cpp csl/builtins_native.cpp csl/builtins_task.cpp
  csl/call.cpp csl/check_uses.cpp csl/emit.cpp csl/expr.cpp csl/extern.cpp csl/finish.cpp csl/lexer.cpp csl/loop.cpp csl/modules.cpp csl/ops.cpp csl/packed.cpp
  csl/parse_expr.cpp csl/parser.cpp csl/place.cpp csl/source.cpp csl/stmt.cpp csl/types.cpp csl/value.cpp)
file(GLOB_RECURSE WSE_CSL_LIBRARY CONFIGURE_DEPENDS RELATIVE "${CMAKE_CURRENT_LIST_DIR}/../lib" "${CMAKE_CURRENT_LIST_DIR}/../lib/*.csl")
set(WSE_CSL_EMBEDDED "${CMAKE_CURRENT_BINARY_DIR}/csl_library.cpp")
set(WSE_CSL_LIBRARY_FILES ${WSE_CSL_LIBRARY})
list(TRANSFORM WSE_CSL_LIBRARY_FILES PREPEND "${CMAKE_CURRENT_LIST_DIR}/../lib/")
add_custom_command(OUTPUT "${WSE_CSL_EMBEDDED}"
  COMMAND "${CMAKE_COMMAND}" "-DROOT=${CMAKE_CURRENT_LIST_DIR}/../lib" "-DOUT=${WSE_CSL_EMBEDDED}" -P "${CMAKE_CURRENT_LIST_DIR}/embed.cmake"
  DEPENDS ${WSE_CSL_LIBRARY_FILES} "${CMAKE_CURRENT_LIST_DIR}/embed.cmake"
  VERBATIM)
list(APPEND WSE_CSL_SOURCES "${WSE_CSL_EMBEDDED}")
