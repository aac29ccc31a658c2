# A wheel for aarch64 from a PC with Debian: g++-aarch64-linux-gnu, and Debian's arm64 libraries beside the PC's own
# (dpkg --add-architecture arm64). tools/wheel_arm64 installs and uses both.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_C_COMPILER aarch64-linux-gnu-gcc)
set(CMAKE_CXX_COMPILER aarch64-linux-gnu-g++)
# Libraries are looked for in this folder of /usr/lib, never among the PC's own.
set(CMAKE_LIBRARY_ARCHITECTURE aarch64-linux-gnu)
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
list(APPEND CMAKE_PREFIX_PATH /usr/lib/aarch64-linux-gnu/cmake)
# pkg-config would describe the PC's libraries (gRPC asks it for RE2).
set(ENV{PKG_CONFIG_LIBDIR} /usr/lib/aarch64-linux-gnu/pkgconfig:/usr/share/pkgconfig)
# Programs of the build run through qemu-user.
find_program(WEFT_QEMU_PROGRAM NAMES qemu-aarch64 qemu-aarch64-static REQUIRED)
set(CMAKE_CROSSCOMPILING_EMULATOR "${WEFT_QEMU_PROGRAM}")
