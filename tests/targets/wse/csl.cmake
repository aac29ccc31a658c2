weft_test(wse_csl_test LONG
  SOURCES csl/ahead_test.cpp csl/ahead_random_test.cpp csl/language_test.cpp csl/errors_test.cpp csl/builtins_test.cpp csl/config_test.cpp csl/fabric_programs_test.cpp csl/layout_test.cpp csl/library_test.cpp csl/library_math_test.cpp csl/native_test.cpp csl/random_test.cpp csl/refusals_test.cpp csl/scheduling_test.cpp csl/mutation_test.cpp
  COMPONENTS target_wse LABELS sim TIMEOUT 900)
weft_oldest_llvm(wse_csl_test "--gtest_filter=Engines.*")
if(WEFT_TESTS)
  # Random programs and the long mutation run (commands, not tests) and, with clang, the libFuzzer harness.
  add_executable(wse_csl_streams EXCLUDE_FROM_ALL fuzz/csl_streams.cpp)
  target_link_libraries(wse_csl_streams PRIVATE weft_target_wse)
  add_executable(wse_csl_mutate EXCLUDE_FROM_ALL fuzz/csl_mutate.cpp)
  target_link_libraries(wse_csl_mutate PRIVATE weft_target_wse)
endif()
