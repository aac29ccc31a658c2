# weft_target(<name> SOURCES ... [ALONE ...] [APART ...] [PYTHON binding.cpp] [DEPS ...] [LIBRARIES ...]): a back end under
# src/weft/targets/<name>, plugged in from the side. It exports `weft::Backend& weft::<name>::backend()` and,
# with PYTHON, `void weft::<name>::bind(nanobind::module_&)`. weft_registry() writes the lists.

function(weft_target name)
  cmake_parse_arguments(ARG "NO_BACKEND" "PYTHON" "SOURCES;ALONE;APART;DEPS;LIBRARIES" ${ARGN})
  weft_component(target_${name} COLD LAYER targets SOURCES ${ARG_SOURCES} ALONE ${ARG_ALONE} APART ${ARG_APART} DEPS ${ARG_DEPS} LIBRARIES ${ARG_LIBRARIES})
  if(NOT ARG_NO_BACKEND)
    set_property(GLOBAL APPEND PROPERTY WEFT_BACKENDS ${name})
  endif()
  if(ARG_PYTHON)
    set_property(GLOBAL APPEND PROPERTY WEFT_TARGET_BINDINGS ${name})
    set_property(GLOBAL APPEND PROPERTY WEFT_TARGET_BINDING_FILES "${CMAKE_CURRENT_SOURCE_DIR}/${ARG_PYTHON}")
  endif()
endfunction()
