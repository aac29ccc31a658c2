# weft_component(<name> [COLD] SOURCES ... [ALONE ...] [APART ...] [DEPS ...] [LIBRARIES ...]): a static library weft_<name> of one layer.
# ALONE, APART: sources with names of their own that other sources of the component have, too (weft_unity).
# Dependencies on other components must be allowed by layers.txt.

file(STRINGS "${PROJECT_SOURCE_DIR}/layers.txt" WEFT_LAYERS REGEX "^[a-z]+:")
set_property(DIRECTORY "${PROJECT_SOURCE_DIR}" APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS layers.txt)

function(weft_check_layer layer dep)
  foreach(row IN LISTS WEFT_LAYERS)
    string(REGEX REPLACE ":.*" "" name "${row}")
    if(name STREQUAL layer)
      string(REGEX REPLACE "^[a-z]+:" "" allowed "${row}")
      separate_arguments(allowed)
      if(NOT dep IN_LIST allowed)
        message(FATAL_ERROR "layers.txt: \"${layer}\" may not depend on \"${dep}\"; allowed: ${allowed}")
      endif()
      return()
    endif()
  endforeach()
  message(FATAL_ERROR "layers.txt has no row for \"${layer}\"")
endfunction()

# Much of the time to compile goes into the standard library's headers, so they are compiled once. Angle brackets keep the
# checkout's path out of the file: a compiler cache then serves every checkout.
set(WEFT_COMMON_HEADERS <algorithm> <array> <bit> <cmath> <cstdint> <cstring> <deque> <functional> <limits> <map> <memory> <mutex>
  <optional> <span> <string> <string_view> <unordered_map> <unordered_set> <utility> <vector> <weft/base/error.h>)

# weft_headers(<name> COLD|WARM <links> <header>...): headers compiled once, for targets to reuse.
function(weft_headers name heat links)
  file(CONFIGURE OUTPUT "${PROJECT_BINARY_DIR}/empty.cpp" CONTENT "" @ONLY)
  add_library(${name} OBJECT "${PROJECT_BINARY_DIR}/empty.cpp")
  set_target_properties(${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  target_include_directories(${name} PRIVATE "${PROJECT_SOURCE_DIR}/src")
  target_compile_features(${name} PRIVATE cxx_std_20)
  if(links)
    target_link_libraries(${name} PRIVATE ${links})
  endif()
  weft_warnings(${name})
  if(heat STREQUAL "COLD")
    weft_cold(${name})
  endif()
  target_precompile_headers(${name} PRIVATE ${WEFT_COMMON_HEADERS} ${ARGN})
endfunction()

# Three heats. Warm is the build's own -O2. weft_cold(<target>): compilers, emitters, tests: -O1 takes half the time to
# compile. weft_hot(<source>...): inner loops, -O3; GCC may inline their functions although a shared library's could be
# replaced when a program starts.
option(WEFT_SMALL "cold components in the least room: for packages that are downloaded; a third more time to compile" OFF)
function(weft_cold target)
  if(NOT WEFT_QUICK)
    target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O$<IF:$<BOOL:${WEFT_SMALL}>,s,1>>)
  endif()
endfunction()
function(weft_hot)
  foreach(source IN LISTS ARGN)
    set_property(SOURCE ${source} APPEND PROPERTY COMPILE_OPTIONS -O3 -fno-semantic-interposition)
    set_property(SOURCE ${source} PROPERTY SKIP_PRECOMPILE_HEADERS ON)
  endforeach()
endfunction()

# weft_visible(<shared library> <version script>): only what the script leaves visible, and what that needs, is kept.
function(weft_visible target script)
  target_link_options(${target} PRIVATE "LINKER:--version-script,${script}" LINKER:--gc-sections)
  set_property(TARGET ${target} APPEND PROPERTY LINK_DEPENDS "${script}")
endfunction()

# weft_unity(<target> [ALONE source ...] [APART source ...]): with WEFT_UNITY up to 32 sources in one run of the compiler, because most of
# the time goes into templates of their common headers. APART: a run of their own for sources whose file-local names others have, too;
# ALONE: each by itself, as are those with flags of their own. tools/check_unity finds sources that cannot be compiled together.
function(weft_unity target)
  cmake_parse_arguments(ARG "" "" "ALONE;APART" ${ARGN})
  if(WEFT_UNITY)
    set_target_properties(${target} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
    # Types without linkage in a struct of one source are meant; the compiler takes the sources for headers.
    target_compile_options(${target} PRIVATE $<$<CXX_COMPILER_ID:GNU>:-Wno-subobject-linkage>)
    get_target_property(sources ${target} SOURCES)
    list(REMOVE_ITEM sources ${ARG_ALONE} ${ARG_APART})
    set(count 0)
    foreach(source IN LISTS sources)
      math(EXPR group "${count} / 32")
      math(EXPR count "${count} + 1")
      set_source_files_properties(${source} PROPERTIES UNITY_GROUP "group${group}")
    endforeach()
    if(ARG_APART)
      set_source_files_properties(${ARG_APART} PROPERTIES UNITY_GROUP apart)
    endif()
  endif()
endfunction()

weft_headers(weft_headers WARM "")
weft_headers(weft_headers_ir WARM "" <weft/ir/build.h> <weft/ir/visit.h>)
weft_headers(weft_headers_ir_cold COLD "" <weft/ir/build.h> <weft/ir/visit.h>)
if(WEFT_TESTS)
  weft_headers(weft_headers_tests COLD GTest::gtest <gtest/gtest.h>)
  set_target_properties(weft_headers_tests PROPERTIES POSITION_INDEPENDENT_CODE OFF)  # as programs are
endif()

function(weft_component name)
  cmake_parse_arguments(ARG "COLD" "LAYER" "SOURCES;ALONE;APART;DEPS;LIBRARIES" ${ARGN})
  if(NOT ARG_LAYER)
    set(ARG_LAYER ${name})
  endif()
  add_library(weft_${name} STATIC ${ARG_SOURCES})
  set_property(GLOBAL APPEND PROPERTY WEFT_COMPONENTS weft_${name})
  target_include_directories(weft_${name} PUBLIC "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>" "$<INSTALL_INTERFACE:include>")
  target_compile_features(weft_${name} PUBLIC cxx_std_20)
  set_target_properties(weft_${name} PROPERTIES POSITION_INDEPENDENT_CODE ON)
  weft_warnings(weft_${name})
  weft_unity(weft_${name} ALONE ${ARG_ALONE} APART ${ARG_APART})
  if(ARG_COLD)
    weft_cold(weft_${name})
    target_precompile_headers(weft_${name} REUSE_FROM weft_headers_ir_cold)
  elseif(name STREQUAL "ir" OR "ir" IN_LIST ARG_DEPS)
    target_precompile_headers(weft_${name} REUSE_FROM weft_headers_ir)
  else()
    target_precompile_headers(weft_${name} REUSE_FROM weft_headers)
  endif()
  foreach(dep IN LISTS ARG_DEPS)
    weft_check_layer(${ARG_LAYER} ${dep})
    target_link_libraries(weft_${name} PUBLIC weft_${dep})
  endforeach()
  target_link_libraries(weft_${name} PUBLIC ${ARG_LIBRARIES})
  install(TARGETS weft_${name} EXPORT weft ARCHIVE DESTINATION lib COMPONENT cpp)
endfunction()

# weft_run(<name> PROGRAM <target> [ARGUMENTS ...] [READS ...] [LABELS ...] [TIMEOUT seconds]): a program of the build as a test. It is
# run again only when something it depends on has changed since it passed (tools/if_changed): its bytes, its arguments, the files it
# READS, the machine. Exit status 77 is "skipped", with the reason printed.
find_program(WEFT_PYTHON3 python3)
function(weft_run name)
  cmake_parse_arguments(ARG "" "PROGRAM;TIMEOUT" "ARGUMENTS;READS;LABELS" ${ARGN})
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 120)
  endif()
  if(WEFT_PYTHON3 AND NOT CMAKE_CROSSCOMPILING)
    list(TRANSFORM ARG_READS PREPEND "--reads=")
    add_test(NAME ${name} COMMAND "${PROJECT_SOURCE_DIR}/tools/if_changed" ${ARG_READS} -- $<TARGET_FILE:${ARG_PROGRAM}> ${ARG_ARGUMENTS})
  else()
    add_test(NAME ${name} COMMAND ${ARG_PROGRAM} ${ARG_ARGUMENTS})
  endif()
  set_tests_properties(${name} PROPERTIES SKIP_RETURN_CODE 77 LABELS "${ARG_LABELS}" TIMEOUT ${ARG_TIMEOUT})
endfunction()

# weft_test(<name> [LONG] SOURCES ... COMPONENTS ... [LIBRARIES ...] [READS ...] [LABELS ...] [TIMEOUT seconds]): a GoogleTest program
# registered by weft_run. LONG: of more than ten seconds; it starts first.
function(weft_test name)
  cmake_parse_arguments(ARG "LONG" "TIMEOUT" "SOURCES;COMPONENTS;LABELS;LIBRARIES;READS" ${ARGN})
  if(NOT WEFT_TESTS)
    return()
  endif()
  add_executable(${name} ${ARG_SOURCES})
  list(TRANSFORM ARG_COMPONENTS PREPEND weft_)
  target_link_libraries(${name} PRIVATE ${ARG_COMPONENTS} ${ARG_LIBRARIES} GTest::gtest_main)
  weft_warnings(${name})
  weft_cold(${name})
  if(NOT "${ARG_COMPONENTS};${ARG_LIBRARIES}" MATCHES "rpc")  # gRPC's -pthread makes them other headers
    target_precompile_headers(${name} REUSE_FROM weft_headers_tests)
  endif()
  if(NOT ARG_TIMEOUT)
    set(ARG_TIMEOUT 300)
  endif()
  weft_run(${name} PROGRAM ${name} READS ${ARG_READS} LABELS ${ARG_LABELS} TIMEOUT ${ARG_TIMEOUT})
  if(ARG_LONG)
    set_tests_properties(${name} PROPERTIES COST 100)
  endif()
endfunction()

# weft_delayed(<test> [<filter>]): the same program, all tests or those of the filter, with a random pause at every hand-over between host threads (weft/sim/delays.h). The program
# has tests/random_delays.cpp among its sources.
function(weft_delayed name)
  if(NOT WEFT_TESTS)
    return()
  endif()
  list(TRANSFORM ARGN PREPEND "--gtest_filter=")
  get_test_property(${name} LABELS labels)
  get_test_property(${name} TIMEOUT timeout)
  weft_run(${name}_delayed PROGRAM ${name} ARGUMENTS ${ARGN} LABELS ${labels} TIMEOUT ${timeout})
  set_tests_properties(${name}_delayed PROPERTIES ENVIRONMENT "WEFT_TEST_DELAYS=1")
endfunction()

# weft_oldest_llvm(<test> [<argument>...]): the same program with the oldest libLLVM that is installed; as it is, it takes the newest.
function(weft_oldest_llvm name)
  if(NOT WEFT_TESTS)
    return()
  endif()
  get_test_property(${name} LABELS labels)
  get_test_property(${name} TIMEOUT timeout)
  weft_run(${name}_oldest_llvm PROGRAM ${name} ARGUMENTS ${ARGN} LABELS ${labels} TIMEOUT ${timeout})
  set_tests_properties(${name}_oldest_llvm PROPERTIES ENVIRONMENT "WEFT_LLVM=oldest")
endfunction()
