# Warnings that every target of ours is built with (g++ 12 warns wrongly about std::string's own code: the last two); -DWEFT_WERROR=ON makes them errors.
option(WEFT_WERROR "treat warnings as errors" OFF)
# A quick build, which is there to be used, has none: a twentieth of the time to compile.
function(weft_warnings target)
  if(WEFT_QUICK AND NOT WEFT_WERROR)
    target_compile_options(${target} PRIVATE -w)
    return()
  endif()
  target_compile_options(${target} PRIVATE -Wall -Wextra -Wpedantic -Wshadow=local -Wnon-virtual-dtor
    $<$<CXX_COMPILER_ID:GNU>:-Wno-restrict$<SEMICOLON>-Wno-array-bounds$<SEMICOLON>-Wno-stringop-overread>
    $<$<BOOL:${WEFT_WERROR}>:-Werror>)
endfunction()
