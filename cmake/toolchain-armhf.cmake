# Raspberry Pi 2, 3 and Zero 2 with a 32-bit system, from a PC: Debian's g++-arm-linux-gnueabihf. Both processors
# (Cortex-A7, A53) have NEON and VFPv4. A Pi 1 or Zero has an ARMv6, for which Debian has no cross compiler (its armhf is
# ARMv7): a toolchain of its own is needed there.
set(WEFT_CROSS arm-linux-gnueabihf)
set(CMAKE_SYSTEM_PROCESSOR armv7)
set(CMAKE_CXX_FLAGS_INIT "-mcpu=cortex-a7 -mfpu=neon-vfpv4 -Wno-psabi")
set(CMAKE_C_FLAGS_INIT "${CMAKE_CXX_FLAGS_INIT}")
set(WEFT_QEMU qemu-arm)
include("${CMAKE_CURRENT_LIST_DIR}/toolchain-debian.cmake")
