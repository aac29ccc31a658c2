# Common to the cross compilers of Debian and Ubuntu: WEFT_CROSS is their triple, WEFT_QEMU the emulator's name.
set(CMAKE_SYSTEM_NAME Linux)
set(CMAKE_C_COMPILER ${WEFT_CROSS}-gcc)
set(CMAKE_CXX_COMPILER ${WEFT_CROSS}-g++)
# Libraries of this PC are of no use there; programs of this PC are.
set(CMAKE_FIND_ROOT_PATH /usr/${WEFT_CROSS})
set(CMAKE_FIND_ROOT_PATH_MODE_PROGRAM NEVER)
set(CMAKE_FIND_ROOT_PATH_MODE_LIBRARY ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_INCLUDE ONLY)
set(CMAKE_FIND_ROOT_PATH_MODE_PACKAGE ONLY)
# Programs of the build run through qemu-user; ctest puts it before each test.
find_program(WEFT_QEMU_PROGRAM NAMES ${WEFT_QEMU} ${WEFT_QEMU}-static)
if(WEFT_QEMU_PROGRAM)
  set(CMAKE_CROSSCOMPILING_EMULATOR "${WEFT_QEMU_PROGRAM};-L;/usr/${WEFT_CROSS}")
endif()
