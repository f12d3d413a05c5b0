# SPDX-License-Identifier: Apache-2.0
# Options, and the target `espalier_options` that every target of ours is compiled with.

option(ESPALIER_BUILD_TOOLS "Build the espalier command" ${PROJECT_IS_TOP_LEVEL})
option(ESPALIER_BUILD_BENCH "With the command, build espalier-bench and what it compares with" ON)
option(ESPALIER_BUILD_TESTS "Build the tests" ${PROJECT_IS_TOP_LEVEL})
option(ESPALIER_BUILD_PLANTED "Build the variant with planted bugs, and its tests" ON)
option(ESPALIER_BUILD_FUZZERS "Build *_fuzz.cpp with libFuzzer (clang only)" OFF)
option(ESPALIER_BATCHES "Compile in batches of sources" ${PROJECT_IS_TOP_LEVEL})
option(ESPALIER_PRECOMPILE "Precompile the headers that many sources include"
       ${PROJECT_IS_TOP_LEVEL})
option(ESPALIER_CHECK_HEADERS "Compile every header alone, with the tests" ON)
option(ESPALIER_WERROR "Make warnings errors; the presets do" OFF)
option(ESPALIER_HARDEN "Compile and link so that faults are hard to use" ON)
option(ESPALIER_ONLY_CONCURRENCY "Compile only those tests that have threads" OFF)
set(ESPALIER_SANITIZERS "" CACHE STRING "Sanitizers to build with, as -fsanitize= takes them")

set(CMAKE_CXX_STANDARD 23)
set(CMAKE_CXX_STANDARD_REQUIRED ON)
set(CMAKE_CXX_EXTENSIONS OFF)
set(CMAKE_RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/bin)
set(CMAKE_ARCHIVE_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/lib)
if(NOT CMAKE_BUILD_TYPE AND NOT CMAKE_CONFIGURATION_TYPES)
  set(CMAKE_BUILD_TYPE Release)
endif()
# Assertions stay on in every build: no NDEBUG. ESPALIER_DEBUG_ASSERT asks for its own macro.
set(CMAKE_CXX_FLAGS_RELEASE "-O3 -g1")

set(THREADS_PREFER_PTHREAD_FLAG ON)
find_package(Threads REQUIRED)

# Precompiled headers make ccache careful; these two relaxations are what its manual asks for.
# Paths are hashed relative to the sources, so that another clone finds what this one compiled.
find_program(ESPALIER_CCACHE ccache)
if(ESPALIER_CCACHE AND PROJECT_IS_TOP_LEVEL AND NOT CMAKE_CXX_COMPILER_LAUNCHER)
  set(CMAKE_CXX_COMPILER_LAUNCHER ${CMAKE_COMMAND} -E env
      CCACHE_SLOPPINESS=pch_defines,time_macros
      CCACHE_BASEDIR=${PROJECT_SOURCE_DIR} CCACHE_NOHASHDIR=1 ${ESPALIER_CCACHE})
endif()

add_library(espalier_options INTERFACE)
target_include_directories(espalier_options INTERFACE
  ${PROJECT_SOURCE_DIR}/src ${PROJECT_SOURCE_DIR}/include ${PROJECT_SOURCE_DIR})
target_link_libraries(espalier_options INTERFACE Threads::Threads)
# -pthread at compile time too, which ThreadSanitizer and the C library like to know.
target_compile_options(espalier_options INTERFACE
  -Wall -Wextra -Wpedantic -Wconversion -Wshadow
  $<$<COMPILE_LANGUAGE:CXX>:-Wold-style-cast> $<$<COMPILE_LANGUAGE:CXX>:-Wnon-virtual-dtor>
  $<$<COMPILE_LANG_AND_ID:CXX,GNU>:-fpch-preprocess>
  $<$<BOOL:${ESPALIER_WERROR}>:-Werror>)
target_compile_definitions(espalier_options INTERFACE
  $<$<CONFIG:Debug>:ESPALIER_DEBUG_ASSERTIONS=1>)

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU" AND CMAKE_CXX_COMPILER_VERSION VERSION_LESS 13)
  # GCC 12 sees impossible lengths in std::string's operator+ (its bugs 105329 and 105651), under
  # each of these four names.
  target_compile_options(espalier_options INTERFACE -Wno-restrict
    -Wno-stringop-overflow -Wno-stringop-overread -Wno-array-bounds)
endif()

if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  # `a & b` of two comparisons is how a search says that it wants no branch.
  # And -Wconversion is to mean what it means to g++, whose C++ form leaves signs out.
  target_compile_options(espalier_options INTERFACE
    -Wno-bitwise-instead-of-logical -Wno-sign-conversion)
endif()

if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC collects garbage long before it has what one source takes, 1.5 GB at most: a tenth of its
  # time. In kB.
  target_compile_options(espalier_options INTERFACE "SHELL:--param ggc-min-heapsize=2000000")
endif()

# Each test program of a build with sanitizers is some hundred MiB: lld links them several times as
# fast as the usual linker. Where it is missing, that one does.
find_program(ESPALIER_LLD NAMES ld.lld-19 ld.lld)
mark_as_advanced(ESPALIER_LLD)
if(ESPALIER_LLD AND ESPALIER_SANITIZERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
  target_link_options(espalier_options INTERFACE --ld-path=${ESPALIER_LLD})
endif()

# What makes a fault hard to use: programs lie anywhere, with tables of the linker that cannot be
# written, functions that notice an overrun of their arrays, checked calls of the C library, and on
# x86 marks for its control-flow enforcement. Sanitizers see more, and do not go with all of it.
#
# Modules that each request passes, which CMakeLists.txt names, are watched where they have arrays
# of characters: to watch each function with an address on its stack takes 35 of some 500
# instructions that a request costs both sides.
if(ESPALIER_HARDEN AND NOT ESPALIER_SANITIZERS)
  set(on_each_request $<BOOL:$<TARGET_PROPERTY:ESPALIER_ON_EACH_REQUEST>>)
  target_compile_options(espalier_options INTERFACE
    -fPIE -fstack-protector$<$<NOT:${on_each_request}>:-strong>)
  target_compile_definitions(espalier_options INTERFACE $<$<CONFIG:Release>:_FORTIFY_SOURCE=2>)
  target_link_options(espalier_options INTERFACE -pie LINKER:-z,relro,-z,now)
  if(CMAKE_SYSTEM_PROCESSOR STREQUAL "x86_64")
    target_compile_options(espalier_options INTERFACE -fcf-protection=full)
    # crt1.o of Debian has no such mark, and one file without it takes it from the program.
    target_link_options(espalier_options INTERFACE LINKER:-z,ibt,-z,shstk)
  endif()
endif()

if(ESPALIER_SANITIZERS)
  target_compile_options(espalier_options INTERFACE
    -fsanitize=${ESPALIER_SANITIZERS} -fno-sanitize-recover=all -fno-omit-frame-pointer)
  target_link_options(espalier_options INTERFACE -fsanitize=${ESPALIER_SANITIZERS})
endif()
if(ESPALIER_SANITIZERS AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # Between the checks that sanitizers insert, GCC loses track of what is initialised. The builds
  # without them keep the warning.
  target_compile_options(espalier_options INTERFACE -Wno-maybe-uninitialized)
endif()
if(ESPALIER_SANITIZERS MATCHES "thread" AND CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
  # GCC cannot model fences. Code that needs one has another form under ThreadSanitizer
  # (base/barrier.hpp), so this warning would only repeat what is known.
  target_compile_options(espalier_options INTERFACE -Wno-tsan)
endif()
