# For other projects: weft::weft, all that <weft/weft.h> needs. With add_subdirectory(weft) the target is there; an
# installed weft (cmake --install build --component cpp) is found by find_package(weft).
add_library(weft INTERFACE)
add_library(weft::weft ALIAS weft)
target_link_libraries(weft INTERFACE weft_array weft_registry weft_schedule)
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)
install(TARGETS weft EXPORT weft COMPONENT cpp)
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION lib/cmake/weft COMPONENT cpp)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/weft" DESTINATION include COMPONENT cpp
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inl")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake" "${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
  DESTINATION lib/cmake/weft COMPONENT cpp)
