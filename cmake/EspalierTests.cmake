# SPDX-License-Identifier: Apache-2.0
# How tests are built and how ctest finds them.
#
# ctest names a test <program>.<Suite>, and the suite's name decides its label:
#   *Concurrency*  concurrency: several threads; ./test runs these under ThreadSanitizer
#   *Slow*         slow: more than a second; each case is a test of its own
#   else           fast
#
# The target espalier_quick is what ./test builds: the programs that have a budget for the preset in
# tests/budgets.txt, the fuzzers where they are real ones, and of the release build what ./run
# builds. All else is built by all.
if(NOT ESPALIER_BUILD_TESTS)
  return()
endif()
enable_testing()
find_package(GTest REQUIRED)
find_package(fmt REQUIRED)
find_package(benchmark QUIET)

# A sanitizer makes code several times slower, and two cores may be shared.
set(ESPALIER_TEST_TIMEOUT_SECONDS 900 CACHE STRING "Longest time for one suite")

# Where the tests of this build are told apart, as tests/budgets.txt, quick.txt and skips.txt do.
cmake_path(GET PROJECT_BINARY_DIR FILENAME ESPALIER_PRESET)
add_custom_target(espalier_quick)
add_test(NAME budgets COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-budgets.sh)
set_tests_properties(budgets PROPERTIES LABELS fast)

# Whether ./test runs a program: each must have a line in the budgets, with seconds for the preset.
# Presets that have no column are for people; there everything counts as quick.
set_property(DIRECTORY APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS
             ${PROJECT_SOURCE_DIR}/tests/budgets.txt)
function(espalier_is_quick program result)
  set(budgets ${PROJECT_SOURCE_DIR}/tests/budgets.txt)
  file(STRINGS ${budgets} columns LIMIT_COUNT 1 REGEX "^program ")
  file(STRINGS ${budgets} line LIMIT_COUNT 1 REGEX "^${program} ")
  if(NOT line)
    message(FATAL_ERROR "tests/budgets.txt has no line for ${program}. Give it the processor "
                        "seconds that it may take in ./test, by preset, or - where it is not run.")
  endif()
  string(REGEX REPLACE " +" ";" columns "${columns}")
  string(REGEX REPLACE " +" ";" line "${line}")
  list(FIND columns "${ESPALIER_PRESET}" column)
  set(${result} TRUE PARENT_SCOPE)
  if(NOT column EQUAL -1)
    list(GET line ${column} seconds)
    if(seconds STREQUAL "-")
      set(${result} FALSE PARENT_SCOPE)
    endif()
  endif()
endfunction()

# What tests do themselves need not be fast, and optimising it takes a quarter of the time that
# compiling them takes; of clang's with its sanitizers' checks in between, two thirds.
function(espalier_hardly_optimised target)
  target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)
  if(ESPALIER_SANITIZERS AND CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# GoogleTest and the containers are most of a test's compile time, so they are compiled once.
set(ESPALIER_TEST_HEADERS
  <gtest/gtest.h> <gmock/gmock.h> <algorithm> <atomic> <cstdint> <expected> <map> <memory> <span>
  <string> <string_view> <thread> <vector>)
function(espalier_test_header target)
  file(WRITE ${PROJECT_BINARY_DIR}/generated/test_pch.cpp "// Carries the precompiled header.\n")
  add_library(${target} OBJECT ${PROJECT_BINARY_DIR}/generated/test_pch.cpp)
  target_link_libraries(${target} PUBLIC espalier_options GTest::gtest GTest::gmock)
  espalier_hardly_optimised(${target})
  target_precompile_headers(${target} PRIVATE ${ESPALIER_TEST_HEADERS})
  if(ESPALIER_PRECOMPILE)
    target_precompile_headers(${target} PRIVATE ${ESPALIER_COMMON_HEADERS})
  endif()
endfunction()
espalier_test_header(espalier_test_pch)
# What is compiled otherwise cannot share it.
if(ESPALIER_SANITIZERS AND ESPALIER_BUILD_TOOLS)
  espalier_test_header(espalier_commands_test_pch)
  espalier_not_optimised_under_sanitizers(espalier_commands_test_pch)
endif()

# Keeps the sources of a list that name a suite with threads: a build that runs no others need not
# compile them. An edit that gives a source its first such suite configures the build anew.
function(espalier_with_threads list)
  set(kept)
  foreach(source IN LISTS ${list})
    file(STRINGS ${source} lines REGEX "Concurrency" LIMIT_COUNT 1)
    if(lines)
      list(APPEND kept ${source})
    endif()
  endforeach()
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY CMAKE_CONFIGURE_DEPENDS ${${list}})
  set(${list} ${kept} PARENT_SCOPE)
endfunction()

# One test program. Sources whose libraries carry other definitions cannot share the header.
# COMMANDS as of a module.
function(espalier_test_program target)
  cmake_parse_arguments(arg "COMMANDS" "" "SOURCES;LIBRARIES" ${ARGN})
  if(ESPALIER_ONLY_CONCURRENCY)
    espalier_with_threads(arg_SOURCES)
    if(NOT arg_SOURCES)
      return()
    endif()
  endif()
  add_executable(${target} ${arg_SOURCES})
  espalier_batches(${target} "${arg_SOURCES}")
  target_link_libraries(${target} PRIVATE ${arg_LIBRARIES} espalier_options
                        GTest::gtest GTest::gmock GTest::gtest_main)
  target_compile_definitions(${target} PRIVATE ESPALIER_SOURCE_DIR="${PROJECT_SOURCE_DIR}")
  espalier_hardly_optimised(${target})
  if(arg_COMMANDS AND ESPALIER_SANITIZERS)
    espalier_not_optimised_under_sanitizers(${target})
  endif()
  if("${arg_LIBRARIES}" MATCHES "_planted")
    espalier_precompile(${target} "${arg_SOURCES}" ${ESPALIER_TEST_HEADERS})
  elseif(arg_COMMANDS AND ESPALIER_SANITIZERS)
    target_precompile_headers(${target} REUSE_FROM espalier_commands_test_pch)
  else()
    target_precompile_headers(${target} REUSE_FROM espalier_test_pch)
  endif()
  set_property(GLOBAL APPEND PROPERTY ESPALIER_TEST_PROGRAMS ${target})
  espalier_is_quick(${target} quick)
  if(quick)
    set_property(GLOBAL APPEND PROPERTY ESPALIER_QUICK_PROGRAMS ${target})
    add_dependencies(espalier_quick ${target})
  endif()
endfunction()

# Once all programs are known: has ctest ask them for their suites when it starts.
function(espalier_discover_suites)
  get_property(programs GLOBAL PROPERTY ESPALIER_TEST_PROGRAMS)
  get_property(quick GLOBAL PROPERTY ESPALIER_QUICK_PROGRAMS)
  set(text "set(ESPALIER_SOURCE_DIR [==[${PROJECT_SOURCE_DIR}]==])
set(ESPALIER_BINARY_DIR [==[${PROJECT_BINARY_DIR}]==])
set(ESPALIER_PRESET [==[${ESPALIER_PRESET}]==])
set(ESPALIER_TEST_TIMEOUT_SECONDS ${ESPALIER_TEST_TIMEOUT_SECONDS})
set(ESPALIER_QUICK_PROGRAMS \"${quick}\")
include([==[${PROJECT_SOURCE_DIR}/cmake/suites.cmake]==])
")
  foreach(program IN LISTS programs)
    string(APPEND text "espalier_add_suites(${program} [==[$<TARGET_FILE:${program}>]==])\n")
  endforeach()
  file(GENERATE OUTPUT ${PROJECT_BINARY_DIR}/suites/programs.cmake CONTENT "${text}")
  set_property(DIRECTORY ${PROJECT_SOURCE_DIR} APPEND PROPERTY TEST_INCLUDE_FILES
               ${PROJECT_BINARY_DIR}/suites/programs.cmake)
endfunction()

# The library espalier_<name>_testing, of the folders testing/, and the one with the switches.
function(espalier_module_testing name sources depends planted)
  foreach(suffix "" _planted)
    if(suffix AND NOT (planted AND ESPALIER_BUILD_PLANTED))
      continue()
    endif()
    set(libraries espalier_${name}${suffix} GTest::gtest)
    foreach(depend IN LISTS depends)
      if(TARGET espalier_${depend}_testing${suffix})
        list(APPEND libraries espalier_${depend}_testing${suffix})
      else()
        list(APPEND libraries espalier_${depend}_testing)
      endif()
    endforeach()
    set(target espalier_${name}_testing${suffix})
    espalier_library(${target} "${sources}" ${libraries})
    if(sources)
      espalier_batches(${target} "${sources}")
      espalier_precompile(${target} "${sources}")
      espalier_hardly_optimised(${target})
    endif()
  endforeach()
endfunction()

# The tests, fuzzers and micro-benchmarks beside the sources of one module; COMMANDS as there.
function(espalier_module_tests name tests fuzzers benches)
  set(planted ${tests})
  list(FILTER tests EXCLUDE REGEX "_planted_test\\.cpp$")
  list(FILTER planted INCLUDE REGEX "_planted_test\\.cpp$")
  if(tests)
    espalier_test_program(${name}_test ${ARGN} SOURCES ${tests}
                          LIBRARIES espalier_${name}_testing)
  endif()
  if(planted AND ESPALIER_BUILD_PLANTED)
    espalier_test_program(${name}_planted_test SOURCES ${planted}
                          LIBRARIES espalier_${name}_testing_planted)
  endif()
  foreach(source IN LISTS fuzzers)
    espalier_fuzzer(${source} espalier_${name}_testing ${ARGN})
  endforeach()
  if(benchmark_FOUND)
    foreach(source IN LISTS benches)
      cmake_path(GET source STEM program)
      add_executable(${program} ${source})
      target_link_libraries(${program} PRIVATE espalier_${name} benchmark::benchmark)
    endforeach()
  endif()
endfunction()

# With libFuzzer a fuzzer, which scripts/run-fuzzers.sh runs in ./test; else the same function fed
# with its corpus. Either way a test with the label replay, which ./test all runs. With COMMANDS
# only that builds it: it is linked with all commands, a tenth of what clang compiles.
function(espalier_fuzzer source library)
  cmake_parse_arguments(arg "COMMANDS" "" "" ${ARGN})
  if(ESPALIER_SANITIZERS MATCHES "thread")
    return()
  endif()
  cmake_path(GET source STEM program)
  cmake_path(GET source PARENT_PATH folder)
  string(REGEX REPLACE "_fuzz$" "" subject ${program})
  if(ESPALIER_BUILD_FUZZERS)
    add_executable(${program} ${source})
    if(NOT arg_COMMANDS)
      add_dependencies(espalier_quick ${program})
    endif()
    target_compile_options(${program} PRIVATE -fsanitize=fuzzer-no-link)
    target_link_options(${program} PRIVATE -fsanitize=fuzzer)
    # What it finds that is new goes into the first folder, which must not be that of the sources.
    set(found ${PROJECT_BINARY_DIR}/fuzz/found/${subject})
    file(MAKE_DIRECTORY ${found})
    set(arguments -runs=2000 -max_total_time=30 -seed=1 -max_len=4096 -verbosity=0 ${found})
    if(EXISTS ${folder}/corpus/${subject})
      list(APPEND arguments ${folder}/corpus/${subject})
    endif()
  else()
    add_executable(${program} ${source} ${PROJECT_SOURCE_DIR}/cmake/replay_main.cpp)
    set(arguments ${folder}/corpus/${subject})
  endif()
  set_target_properties(${program} PROPERTIES
    RUNTIME_OUTPUT_DIRECTORY ${PROJECT_BINARY_DIR}/fuzz)
  target_link_libraries(${program} PRIVATE ${library} espalier_options)
  espalier_hardly_optimised(${program})
  add_test(NAME fuzz.${program} COMMAND ${program} ${arguments})
  set_tests_properties(fuzz.${program} PROPERTIES LABELS replay
    TIMEOUT ${ESPALIER_TEST_TIMEOUT_SECONDS})
endfunction()

# tests/: what spans modules, in one program linked with everything but the commands; what of that
# breaks rules by bytes (tests/hostile), which is for sanitizers to see; what needs planted bugs;
# and the checks of the sources themselves.
function(espalier_spanning_tests)
  file(GLOB support CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/support/*.cpp)
  set(support_tests ${support})
  list(FILTER support EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER support_tests INCLUDE REGEX "_test\\.cpp$")
  set(upper)
  foreach(module node device)
    if(TARGET espalier_${module})
      list(APPEND upper espalier_${module}_testing)
    endif()
  endforeach()
  set(common fmt::fmt GTest::gtest)
  espalier_library(espalier_test_support "${support}" espalier_client_testing ${upper} ${common})
  espalier_batches(espalier_test_support "${support}")
  espalier_hardly_optimised(espalier_test_support)
  if(ESPALIER_BUILD_PLANTED)
    # There is no node with switches: what needs one or other processes is left out.
    set(nodes "/(child|client_processes|forked_node|hostile|load_worker|node_fixture|node_program")
    string(APPEND nodes "|played_document|role_fixture|role_matrix|rolling_load")
    string(APPEND nodes "|terminal_program)\\.cpp$")
    list(FILTER support EXCLUDE REGEX "${nodes}")
    # Of a device all is there but the node that it runs in.
    espalier_sources_in(device "src/device;src/channel/device;src/kinds/map/device" "")
    set(kinds_at_device src/kinds/table/device src/kinds/hash/device src/kinds/at_device.cpp)
    espalier_sources_in(at_device "${kinds_at_device}" "")
    list(APPEND device ${at_device})
    list(FILTER device EXCLUDE REGEX "(_test|/device)\\.cpp$|/testing/")
    espalier_library(espalier_device_planted "${device}" espalier_client_planted
                     espalier_offload_planted)
    espalier_library(espalier_test_support_planted "${support}" espalier_client_testing_planted
                     espalier_device_planted espalier_peer_planted ${common})
  endif()

  # The checks of the sources themselves must run when nothing else builds.
  file(GLOB rules CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/source/*.cpp)
  espalier_library(espalier_source_rules "${rules}")

  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/*_test.cpp)
  list(APPEND tests ${support_tests})
  set(planted ${tests})
  set(source_tests ${tests})
  list(FILTER planted INCLUDE REGEX "_planted_test\\.cpp$")
  list(FILTER source_tests INCLUDE REGEX "/(layers|scripts|style)_test\\.cpp$")
  list(REMOVE_ITEM tests ${planted} ${source_tests})
  espalier_test_program(source_test SOURCES ${source_tests} LIBRARIES espalier_source_rules)
  espalier_test_program(system_test SOURCES ${tests} LIBRARIES espalier_test_support)
  file(GLOB hostile CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/hostile/*_test.cpp)
  espalier_test_program(hostile_test SOURCES ${hostile} LIBRARIES espalier_test_support)
  file(GLOB example_kind CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/example_kind/*.cpp)
  set(example_kind_tests ${example_kind})
  list(FILTER example_kind EXCLUDE REGEX "_test\\.cpp$")
  list(FILTER example_kind_tests INCLUDE REGEX "_test\\.cpp$")
  espalier_library(espalier_example_kind "${example_kind}" espalier_test_support)
  espalier_test_program(example_kind_test SOURCES ${example_kind_tests}
                        LIBRARIES espalier_example_kind espalier_node_api)
  file(GLOB hash_maps CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/hash_maps/*_test.cpp)
  espalier_test_program(hash_maps_test SOURCES ${hash_maps} LIBRARIES espalier_test_support)
  file(GLOB groups CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/groups/*_test.cpp)
  espalier_test_program(groups_test SOURCES ${groups} LIBRARIES espalier_test_support)
  file(GLOB datagrams CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/datagrams/*_test.cpp)
  espalier_test_program(datagrams_test SOURCES ${datagrams} LIBRARIES espalier_test_support)
  file(GLOB chains CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/chains/*_test.cpp)
  espalier_test_program(chains_test SOURCES ${chains} LIBRARIES espalier_test_support)
  file(GLOB durability CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/durability/*.cpp)
  set(durability_planted ${durability})
  list(FILTER durability EXCLUDE REGEX "_planted_test\\.cpp$")
  espalier_test_program(durability_test SOURCES ${durability}
                        LIBRARIES espalier_offload_testing espalier_log_testing
                                  espalier_test_support espalier_node_api)
  if(ESPALIER_BUILD_PLANTED)
    list(FILTER durability_planted INCLUDE
         REGEX "(_planted_test|/store_world|/sealed_world|/numbers_world|/names_world)\\.cpp$")
    espalier_test_program(durability_planted_test SOURCES ${durability_planted}
                          LIBRARIES espalier_offload_testing_planted espalier_log_testing_planted)
  endif()
  file(GLOB regions CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/regions/*.cpp)
  espalier_test_program(regions_test SOURCES ${regions} LIBRARIES espalier_test_support)
  file(GLOB embeddings CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/embedding_tables/*_test.cpp)
  espalier_test_program(embedding_tables_test SOURCES ${embeddings}
                        LIBRARIES espalier_test_support)
  # Its operator new can fail: no other program has that one.
  file(GLOB heap_tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/heap/*.cpp)
  if(TARGET espalier_node)
    espalier_test_program(heap_test SOURCES ${heap_tests}
                          LIBRARIES espalier_client_testing espalier_node_testing
                                    espalier_hash_testing espalier_embedding_testing
                                    espalier_device)
  endif()
  if(ESPALIER_BUILD_PLANTED)
    espalier_test_program(system_planted_test SOURCES ${planted}
                          LIBRARIES espalier_test_support_planted)
  endif()
endfunction()

# tests/commands/: what runs the programs that people call, or all of a command in this process.
function(espalier_command_tests)
  file(GLOB tests CONFIGURE_DEPENDS ${PROJECT_SOURCE_DIR}/tests/commands/*_test.cpp)
  if(NOT TARGET espalier_program)
    return()
  endif()
  find_package(SQLite3 REQUIRED)  # what queries are held against
  espalier_test_program(commands_test SOURCES ${tests} LIBRARIES
    espalier_test_support espalier_tools_testing espalier_lineitem SQLite::SQLite3)
  if(NOT TARGET commands_test)
    return()  # it has no threads
  endif()
  add_dependencies(commands_test espalier_program lineitem_program)
  target_compile_definitions(commands_test PRIVATE
    ESPALIER_PROGRAM="$<TARGET_FILE:espalier_program>"
    ESPALIER_LINEITEM="$<TARGET_FILE:lineitem_program>")
  if(ESPALIER_HARDEN AND NOT ESPALIER_SANITIZERS)
    target_compile_definitions(commands_test PRIVATE $<$<CONFIG:Release>:ESPALIER_HARDENED>)
  endif()
  if(TARGET espalier_bench_program)
    target_compile_definitions(commands_test PRIVATE
      ESPALIER_BENCH="$<TARGET_FILE:espalier_bench_program>")
  endif()
  # Tests of documents call it, and one reads it; where ./test leaves bench_test out,
  # tests/quick.txt leaves those out too.
  espalier_is_quick(bench_test bench_is_quick)
  if(TARGET espalier_bench_program AND bench_is_quick)
    add_dependencies(commands_test espalier_bench_program)
  endif()
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

# Whether a header's own source file, which is compiled alone and without a precompiled header,
# includes it first, and so compiles it alone. What is compiled in batches proves nothing.
function(espalier_is_proven_by_source folder header result)
  string(REGEX REPLACE "\\.hpp$" ".cpp" source ${PROJECT_SOURCE_DIR}/${folder}/${header})
  set(first "")
  if(NOT ESPALIER_PRECOMPILE AND EXISTS ${source} AND
     NOT header MATCHES "^(tests|bench|tools)/|/testing/")
    file(STRINGS ${source} first LIMIT_COUNT 1 REGEX "^#include")
  endif()
  if(first STREQUAL "#include \"${header}\"")
    set(${result} TRUE PARENT_SCOPE)
  else()
    set(${result} FALSE PARENT_SCOPE)
  endif()
endfunction()

# Compiles every header alone: one that needs what its includer happens to include is refused. That
# none is without #pragma once, the style test sees. g++ takes a unit for each header that is not
# proven by its source; clang takes one run for all, and this is what ./test builds.
function(espalier_header_checks)
  if(NOT ESPALIER_CHECK_HEADERS)
    return()
  endif()
  set(units)
  set(modules)
  foreach(root src include .)
    if(root STREQUAL ".")
      file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}
           ${PROJECT_SOURCE_DIR}/bench/*.hpp ${PROJECT_SOURCE_DIR}/tests/*.hpp)
    else()
      file(GLOB_RECURSE headers CONFIGURE_DEPENDS RELATIVE ${PROJECT_SOURCE_DIR}/${root}
           ${PROJECT_SOURCE_DIR}/${root}/*.hpp)
    endif()
    foreach(header IN LISTS headers)
      set(any ${header})
      espalier_module_line(modules ${header} ${PROJECT_SOURCE_DIR}/${root}/${header})
      espalier_is_proven_by_source(${root} ${header} proven)
      if(NOT proven)
        string(REPLACE "/" "_" unit ${header})
        set(unit ${PROJECT_BINARY_DIR}/generated/headers/${unit}.cpp)
        set(line "#include \"${header}\"\n")
        file(CONFIGURE OUTPUT ${unit} CONTENT "${line}${line}")
        list(APPEND units ${unit})
      endif()
    endforeach()
  endforeach()
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    set(units ${PROJECT_BINARY_DIR}/generated/headers.cpp)
    file(CONFIGURE OUTPUT ${units}
         CONTENT "#include \"${any}\"  // and so the whole module\n")
  endif()
  add_library(espalier_headers OBJECT ${units})
  target_compile_options(espalier_headers PRIVATE -O0 -g0)
  target_link_libraries(espalier_headers PRIVATE espalier_test_support GTest::gmock)
  if(CMAKE_CXX_COMPILER_ID MATCHES "Clang")
    espalier_header_modules(espalier_headers ${units} "${modules}")
  endif()
endfunction()

# Adds a header to a module of clang's, as a part of its own.
function(espalier_module_line lines name path)
  string(MAKE_C_IDENTIFIER ${name} part)
  set(${lines} "${${lines}}  module ${part}_ { header \"${path}\" export * }\n" PARENT_SCOPE)
endfunction()

# Makes all headers one module of clang's, each a part of it that sees what itself includes and
# nothing else; so each is read once. Those of the C++ library are another module, and a name whose
# header a part forgot is an error. What a module is warned of, the sources' own units are too.
function(espalier_header_modules target unit own)
  set(library)
  foreach(header algorithm array atomic bit charconv chrono compare concepts condition_variable
          coroutine cstddef cstdint cstdio cstdlib cstring deque exception expected filesystem
          fstream functional future initializer_list iosfwd iterator limits list map memory mutex
          new optional ostream queue set source_location span sstream stdexcept streambuf string
          string_view system_error thread tuple type_traits unordered_map unordered_set utility
          variant vector gtest/gtest.h gmock/gmock.h)
    find_file(path ${header} PATHS ${CMAKE_CXX_IMPLICIT_INCLUDE_DIRECTORIES}
              NO_DEFAULT_PATH NO_CACHE REQUIRED)
    espalier_module_line(library ${header} ${path})
    unset(path)
  endforeach()
  set(text "module library [system] {\n${library}}\nmodule espalier {\n${own}}\n")
  # Its macros begin and end in each of its headers, so that they cannot be parts of one module.
  foreach(header nlohmann/json_fwd.hpp nlohmann/json.hpp)
    find_file(path ${header} NO_CACHE REQUIRED)
    string(MAKE_C_IDENTIFIER ${header} name)
    string(APPEND text "module ${name} [system] { header \"${path}\" export * }\n")
    unset(path)
  endforeach()
  set(map ${PROJECT_BINARY_DIR}/generated/headers.modulemap)
  file(CONFIGURE OUTPUT ${map} CONTENT "${text}")
  set_source_files_properties(${unit} PROPERTIES OBJECT_DEPENDS ${map})
  target_compile_options(${target} PRIVATE -fno-sanitize=all -w -fmodules
    -fmodule-map-file=${map}
    -fmodules-cache-path=${PROJECT_BINARY_DIR}/generated/modules
    "SHELL:-Xclang -fmodules-local-submodule-visibility")
endfunction()

# Installs into the build folder, and builds and runs a small application against what lies there.
function(espalier_install_test)
  if(ESPALIER_SANITIZERS)
    return()  # what is installed is never built with sanitizers
  endif()
  # Files of Kubernetes objects against its schemas.
  add_test(NAME kubernetes.files
    COMMAND node ${PROJECT_SOURCE_DIR}/tests/kubernetes/check.mjs --planted
      ${PROJECT_SOURCE_DIR}/dist/kubernetes/chain.yaml)
  set_tests_properties(kubernetes.files PROPERTIES LABELS fast
    TIMEOUT ${ESPALIER_TEST_TIMEOUT_SECONDS})
  # The script of the installation against what the target builds from.
  add_test(NAME install.targets
    COMMAND ${PROJECT_SOURCE_DIR}/scripts/check-install.sh ${PROJECT_BINARY_DIR})
  set_tests_properties(install.targets PROPERTIES LABELS fast)
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
