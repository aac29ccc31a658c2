# find_package(weft): the imported targets weft::weft, a shared library, and weft::static, archives.
include(CMakeFindDependencyMacro)
find_dependency(Threads)
# The thread pool of a weft that was built where oneTBB is installed.
find_package(TBB CONFIG QUIET)
include("${CMAKE_CURRENT_LIST_DIR}/weftTargets.cmake")
