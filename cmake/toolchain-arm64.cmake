# Raspberry Pi 3 and Zero 2 with a 64-bit system, from a PC: Debian's g++-aarch64-linux-gnu.
set(WEFT_CROSS aarch64-linux-gnu)
set(CMAKE_SYSTEM_PROCESSOR aarch64)
set(CMAKE_CXX_FLAGS_INIT "-mcpu=cortex-a53")
set(CMAKE_C_FLAGS_INIT "${CMAKE_CXX_FLAGS_INIT}")
set(WEFT_QEMU qemu-aarch64)
include("${CMAKE_CURRENT_LIST_DIR}/toolchain-debian.cmake")
