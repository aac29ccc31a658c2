weft_test(wse_csl_test
  SOURCES csl/language_test.cpp csl/errors_test.cpp csl/builtins_test.cpp csl/layout_test.cpp csl/random_test.cpp csl/mutation_test.cpp
  COMPONENTS target_wse LABELS sim TIMEOUT 300)
