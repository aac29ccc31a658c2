# weft_qpu_module(<name> <source>...): a Python extension module of QPU kernels (WEFT_QPU_MODULE in one of the
# sources), without libtorch. In a project of your own:
#
#   cmake_minimum_required(VERSION 3.20)
#   project(dot_cpp LANGUAGES CXX)
#   find_package(Python 3.8 REQUIRED COMPONENTS Interpreter Development.Module)
#   execute_process(COMMAND "${Python_EXECUTABLE}" -m weft.qpu cmake
#     OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE weft_cmake COMMAND_ERROR_IS_FATAL ANY)
#   include("${weft_cmake}")
#   weft_qpu_module(dot_cpp dot.cpp)
# Where nobody has looked for Python yet, the function does.
function(weft_qpu_module name)
  if(NOT Python_EXECUTABLE OR NOT COMMAND Python_add_library)
    find_package(Python 3.8 REQUIRED COMPONENTS Interpreter Development.Module)
  endif()
  foreach(what include library)
    execute_process(COMMAND "${Python_EXECUTABLE}" -m weft.qpu ${what}
      OUTPUT_STRIP_TRAILING_WHITESPACE OUTPUT_VARIABLE weft_${what} COMMAND_ERROR_IS_FATAL ANY)
  endforeach()
  Python_add_library(${name} MODULE WITH_SOABI ${ARGN})
  target_compile_features(${name} PRIVATE cxx_std_20)
  target_compile_definitions(${name} PRIVATE WEFT_QPU_PYTHON)
  target_include_directories(${name} PRIVATE "${weft_include}")
  target_link_libraries(${name} PRIVATE "${weft_library}")
  get_filename_component(folder "${weft_library}" DIRECTORY)
  set_target_properties(${name} PROPERTIES BUILD_RPATH "${folder}" INSTALL_RPATH "${folder}")
endfunction()
