# find_package(weft): the imported target weft::weft.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
include("${CMAKE_CURRENT_LIST_DIR}/weftTargets.cmake")
