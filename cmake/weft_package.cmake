# For other projects, with add_subdirectory(weft) or, installed by cmake --install build --component cpp, with find_package(weft):
# weft::weft is the shared library, weft::static the archives. pkg-config knows the shared library as "weft".
include(GNUInstallDirs)
include(CMakePackageConfigHelpers)

add_library(weft INTERFACE)
add_library(weft::static ALIAS weft)
set_target_properties(weft PROPERTIES EXPORT_NAME static)
target_link_libraries(weft INTERFACE weft_autograd weft_fusion weft_linalg weft_registry weft_schedule)

# Every component whole, because a program may call whatever a header declares.
get_property(components GLOBAL PROPERTY WEFT_COMPONENTS)
list(REMOVE_ITEM components weft_cli)
add_library(weft_shared SHARED "${PROJECT_BINARY_DIR}/empty.cpp")
add_library(weft::weft ALIAS weft_shared)
set_target_properties(weft_shared PROPERTIES OUTPUT_NAME weft EXPORT_NAME weft VERSION ${PROJECT_VERSION}
  SOVERSION ${PROJECT_VERSION_MAJOR}.${PROJECT_VERSION_MINOR})
target_include_directories(weft_shared INTERFACE "$<BUILD_INTERFACE:${PROJECT_SOURCE_DIR}/src>" "$<INSTALL_INTERFACE:include>")
target_compile_features(weft_shared INTERFACE cxx_std_20)
# The objects and not whole archives: those that others need, too, come twice in the command, which GNU ld refuses.
foreach(component IN LISTS components)
  target_sources(weft_shared PRIVATE $<TARGET_OBJECTS:${component}>)
endforeach()
target_link_libraries(weft_shared PRIVATE ${components})

install(TARGETS weft weft_shared EXPORT weft LIBRARY DESTINATION lib COMPONENT cpp NAMELINK_COMPONENT cpp)
install(EXPORT weft NAMESPACE weft:: FILE weftTargets.cmake DESTINATION lib/cmake/weft COMPONENT cpp)
install(DIRECTORY "${PROJECT_SOURCE_DIR}/src/weft" DESTINATION include COMPONENT cpp
  FILES_MATCHING PATTERN "*.h" PATTERN "*.def" PATTERN "*.inl")
write_basic_package_version_file("${PROJECT_BINARY_DIR}/weftConfigVersion.cmake" COMPATIBILITY SameMinorVersion)
configure_file("${PROJECT_SOURCE_DIR}/cmake/weft.pc.in" "${PROJECT_BINARY_DIR}/weft.pc" @ONLY)
install(FILES "${PROJECT_SOURCE_DIR}/cmake/weftConfig.cmake" "${PROJECT_BINARY_DIR}/weftConfigVersion.cmake"
  DESTINATION lib/cmake/weft COMPONENT cpp)
install(FILES "${PROJECT_BINARY_DIR}/weft.pc" DESTINATION lib/pkgconfig COMPONENT cpp)
