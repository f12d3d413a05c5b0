# SPDX-License-Identifier: Apache-2.0
# How tests are built and how ctest finds them.
#
# ctest names a case <program>.<Suite>.<Case>, and the suite's name decides its label:
#   *Concurrency*  concurrency: several threads; ./test runs these under ThreadSanitizer
#   *Slow*         slow: more than a second
#   else           fast
if(NOT ESPALIER_BUILD_TESTS)
  return()
endif()
enable_testing()
include(GoogleTest)
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(benchmark QUIET)

# A sanitizer makes code several times slower, and two cores may be shared.
set(ESPALIER_TEST_TIMEOUT_SECONDS 300 CACHE STRING "Longest time for one test case")

# What tests do themselves need not be fast, and optimising it takes a quarter of the time that
# compiling them takes.
function(espalier_hardly_optimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
endfunction()

# GoogleTest and the containers are most of a test's compile time, so they are compiled once.
function(espalier_test_header target)
  file(WRITE ${PROJECT_BINARY_DIR}/generated/test_pch.cpp "// Carries the precompiled header.\n")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/generated/test_pch.cpp)
  target_link_libraries(${target} PUBLIC espalier_options GTest::gtest GTest::gmock)
  espalier_hardly_optimised(${target})
  target_precompile_headers(${target} PRIVATE
    <gtest/gtest.h> <gmock/gmock.h> <algorithm> <atomic> <cstdint> <expected> <map> <memory>
    <span> <string> <string_view> <thread> <vector>)
endfunction()
espalier_test_header(espalier_test_pch)
# What is compiled otherwise cannot share it.
if(ESPALIER_SANITIZERS AND ESPALIER_BUILD_TOOLS)
  espalier_test_header(espalier_commands_test_pch)
  espalier_not_optimised_under_sanitizers(espalier_commands_test_pch)
endif()

# One test program. Sources whose libraries carry other definitions cannot share the header.
# COMMANDS as of a module.
function(espalier_test_program target)
  cmake_parse_arguments(arg "COMMANDS" "" "SOURCES;LIBRARIES" ${ARGN})
  add_executable(${target} ${arg_SOURCES})
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} espalier_options
                        GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE ESPALIER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  espalier_hardly_optimised(${target})
  if(arg_COMMANDS AND ESPALIER_SANITIZERS)
    espalier_not_optimised_under_sanitizers(${target})
    target_precompile_headers(${target} REUSE_FROM espalier_commands_test_pch)
  elseif(NOT "${arg_LIBRARIES}" MATCHES "_planted")
    target_precompile_headers(${target} REUSE_FROM espalier_test_pch)
  endif()
  espalier_discover(${target} fast "-*Concurrency*:*Slow*")
  espalier_discover(${target} concurrency "*Concurrency*")
  espalier_discover(${target} slow "*Slow*-*Concurrency*")
endfunction()

function(espalier_discover target label filter)
  gtest_discover_tests(${target}
    DISCOVERY_MODE PRE_TEST
    TEST_PREFIX ${target}.
    TEST_FILTER ${filter}
    TEST_LIST ${target}_${label}
    PROPERTIES LABELS ${label} TIMEOUT ${ESPALIER_TEST_TIMEOUT_SECONDS})
endfunction()

# The tests, fuzzers and micro-benchmarks beside the sources of one module; COMMANDS as there.
function(espalier_module_tests name tests fuzzers benches)
  set(planted ${tests})
  list(FILTER tests EXCLUDE REGEX "_planted_test\\.cpp$")
  list(FILTER planted INCLUDE REGEX "_planted_test\\.cpp$")
  if(tests)
    espalier_test_program(${name}_test ${ARGN} SOURCES ${tests} LIBRARIES espalier_${name})
  endif()
  if(planted AND ESPALIER_BUILD_PLANTED)
    espalier_test_program(${name}_planted_test SOURCES ${planted}
                          LIBRARIES espalier_${name}_planted)
  endif()
  foreach(source IN LISTS fuzzers)
    espalier_fuzzer(${source} espalier_${name})
  endforeach()
  if(benchmark_FOUND)
    foreach(source IN LISTS benches)
      cmake_path(GET source STEM program)
      add_executable(${program} ${source})
      target_link_libraries(${program} PRIVATE espalier_${name} benchmark::benchmark)
    endforeach()
  endif()
endfunction()

# With libFuzzer a fuzzer; else the same function fed with its corpus, as a test. Its label is not
# one of those that run under ThreadSanitizer.
function(espalier_fuzzer source)
  if(ESPALIER_SANITIZERS MATCHES "thread")
    return()
  endif()
  cmake_path(GET source STEM program)
  cmake_path(GET source PARENT_PATH folder)
  string(REGEX REPLACE "_fuzz$" "" subject ${program})
  if(ESPALIER_BUILD_FUZZERS)
    add_executable(${program} ${source})
    target_compile_options(${program} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    # What it finds that is new goes into the first folder, which must not be that of the sources.
    set(found ${PROJECT_BINARY_DIR}/fuzz/found/${subject})
    file(MAKE_DIRECTORY ${found})
    set(arguments -runs=2000 -seed=1 -max_len=4096 -verbosity=0 ${found})
    if(EXISTS ${folder}/corpus/${subject})
      list(APPEND arguments ${folder}/corpus/${subject})
    endif()
  else()
    add_executable(${program} ${source} ${PROJECT_SOURCE_DIR}/cmake/replay_main.cpp)
    set(arguments ${folder}/corpus/${subject})
  endif()
  set_target_properties(${program} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_link_libraries(${program} PRIVATE ${ARGN} espalier_options)
  espalier_hardly_optimised(${program})
  add_test(NAME fuzz.${program} COMMAND ${program} ${arguments})
  set_tests_properties(fuzz.${program} PROPERTIES LABELS fast
    TIMEOUT ${ESPALIER_TEST_TIMEOUT_SECONDS})
endfunction()

# tests/: what spans modules, one program per file, linked with everything there is.
function(espalier_spanning_tests)
  file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
  set(support_tests ${support})
  list(FILTER support EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER support_tests INCLUDE REGEX "_test\\.cpp$")
  set(upper)
  foreach(module node cmdline tools)
    if(TARGET espalier_${module})
      list(APPEND upper espalier_${module})
    endif()
  endforeach()
  set(common fmt::fmt GTest::gtest)
  espalier_library(espalier_test_support "${support}" espalier_client ${upper} ${common})
  if(ESPALIER_BUILD_PLANTED)
    espalier_library(espalier_test_support_planted "${support}" espalier_client_planted ${common})
  endif()

  # The checks of the sources themselves must run when nothing else builds.
  file(GLOB rules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/source/*.cpp)
  espalier_library(espalier_source_rules "${rules}")

  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
  foreach(source IN LISTS tests support_tests)
    cmake_path(GET source STEM program)
    if(program MATCHES "^(cli|readme|serve|top)_test$" AND NOT TARGET espalier_program)
      continue()  # they run the command
    elseif(program MATCHES "_planted_test$" AND NOT ESPALIER_BUILD_PLANTED)
      continue()
    elseif(program MATCHES "^(layers|style)_test$")
      espalier_test_program(${program} SOURCES ${source} LIBRARIES espalier_source_rules)
      continue()
    elseif(program MATCHES "^roce_")
      espalier_test_program(${program} SOURCES ${source} LIBRARIES espalier_fabric)
      continue()
    elseif(program MATCHES "^fabric_.*_planted_test$")
      espalier_test_program(${program} SOURCES ${source} LIBRARIES espalier_fabric_planted)
      continue()
    elseif(program MATCHES "_planted_test$")
      espalier_test_program(${program} SOURCES ${source} LIBRARIES espalier_test_support_planted)
    else()
      espalier_test_program(${program} SOURCES ${source} LIBRARIES espalier_test_support)
    endif()
    if(TARGET espalier_program)
      add_dependencies(${program} espalier_program)
      target_compile_definitions(${program} PRIVATE
        ESPALIER_PROGRAM="$<TARGET_FILE:espalier_program>")
    endif()
    if(program MATCHES "^(cli|readme)_test$" AND TARGET espalier_bench_program)
      add_dependencies(${program} espalier_bench_program)
    endif()
  endforeach()
endfunction()

# Compiles the C header alone, twice in a row, in each standard of C that it promises.
function(espalier_c_header_checks)
  set(unit ${PROJECT_BINARY_DIR}/generated/headers/espalier.h.c)
  set(line "#include \"espalier/espalier.h\"\n")
  file(CONFIGURE OUTPUT ${unit} CONTENT "${line}${line}")
  foreach(standard 99 11)
    add_library(espalier_header_c${standard} OBJECT ${unit})
    espalier_strict_c(espalier_header_c${standard})
    set_target_properties(espalier_header_c${standard} PROPERTIES C_STANDARD ${standard})
    target_include_directories(espalier_header_c${standard} PRIVATE ${PROJECT_SOURCE_DIR}/include)
  endforeach()
endfunction()

# Whether a header's own source file, which is built without a precompiled header, includes it
# first, and so compiles it alone.
function(espalier_is_proven_by_source folder header result)
  string(REGEX REPLACE "\\.hpp$" ".cpp" source ${PROJECT_SOURCE_DIR}/${folder}/${header})
  set(first "")
  if(EXISTS ${source} AND NOT header MATCHES "^tests/")
    file(STRINGS ${source} first LIMIT_COUNT 1 REGEX "^#include")
  endif()
  if(first STREQUAL "#include \"${header}\"")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Compiles every other header alone, and twice in a row: one that needs what its includer happens to
# include is refused. That none is without #pragma once, the style test sees.
function(espalier_header_checks)
  if(NOT ESPALIER_CHECK_HEADERS)
    return()
  endif()
  set(units)
  foreach(root src include .)
    if(root STREQUAL ".")
      file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
           ${PROJECT_SOURCE_DIR}/bench/*.hpp ${PROJECT_SOURCE_DIR}/tests/*.hpp)
    else()
      file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${root}
           ${PROJECT_SOURCE_DIR}/${root}/*.hpp)
    endif()
    foreach(header IN LISTS headers)
      espalier_is_proven_by_source(${root} ${header} proven)
      if(proven)
        continue()
      endif()
      string(REPLACE "/" "_" unit ${header})
      set(unit ${PROJECT_BINARY_DIR}/generated/headers/${unit}.cpp)
      set(line "#include \"${header}\"\n")
      file(CONFIGURE OUTPUT ${unit} CONTENT "${line}${line}")
      list(APPEND units ${unit})
    endforeach()
  endforeach()
  add_library(espalier_headers OBJECT ${units})
  target_compile_options(espalier_headers PRIVATE -O0 -g0)
  target_link_libraries(espalier_headers PRIVATE espalier_test_support GTest::gmock)
endfunction()

# Installs into the build folder, and builds and runs a small application against what lies there.
function(espalier_install_test)
  if(ESPALIER_SANITIZERS)
    return()  # what is installed is never built with sanitizers
  endif()
  foreach(way package pkgconfig)
    add_test(NAME install.${way}
      COMMAND ${CMAKE_COMMAND} -D WAY=${way} -D BUILD=${PROJECT_BINARY_DIR}
        -D SOURCE=${PROJECT_SOURCE_DIR} -D COMPILER=${CMAKE_CXX_COMPILER}
        -D C_COMPILER=${CMAKE_C_COMPILER}
        -D GENERATOR=${CMAKE_GENERATOR} -D LIBRARIES=${CMAKE_INSTALL_LIBDIR}
        -P ${PROJECT_SOURCE_DIR}/cmake/install_test.cmake)
    set_tests_properties(install.${way} PROPERTIES LABELS fast
      TIMEOUT ${ESPALIER_TEST_TIMEOUT_SECONDS})
  endforeach()
endfunction()
