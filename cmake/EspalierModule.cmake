# SPDX-License-Identifier: Apache-2.0
# One call makes a library of the folder src/<name>, or of others, and what lies beside its
# sources:
#
#   *.cpp          the static library espalier_<name>; without any, an interface library; those of
#                  sub-folders too, as of everything below; but
#   testing/*.cpp  what only tests use: the library espalier_<name>_testing, which those of this
#                  module and of those that depend on it link
#   main.cpp       with EXECUTABLE: the program, of the target <program>_program, "-" made "_"
#   *_test.cpp     <name>_test, found by ctest one case at a time
#   *_fuzz.cpp     one program each: libFuzzer where it is on, else a replay of the corpus
#   *_bench.cpp    one program each, over Google Benchmark
#
#   espalier_module(<name> [FOLDERS <dir or source>...] [WITHOUT <dir>...] [DEPENDS <module>...]
#                   [TEST_DEPENDS <module>...] [LIBRARIES <target>...] [EXECUTABLE <program>]
#                   [PLANTED] [COMMANDS])
#
# FOLDERS may be several: which file may include which, layers.txt says, and not the libraries.
# WITHOUT names folders in these that belong to another library.
#
# TEST_DEPENDS names what only its tests, fuzzers and their support need besides.
#
# PLANTED builds a second library espalier_<name>_planted, with the switches that break the rules of
# the protocol (ESPALIER_PLANTED_BUGS) and inject faults (ESPALIER_FAULTS). Only tests named
# *_planted_test.cpp link it.
#
# COMMANDS is for what people call: most of it runs once for each call, and half a minute goes into
# optimising what CLI11 generates for one command under sanitizers. So there it is not optimised.

function(espalier_module name)
  cmake_parse_arguments(arg "PLANTED;COMMANDS" "EXECUTABLE"
                        "FOLDERS;WITHOUT;DEPENDS;TEST_DEPENDS;LIBRARIES" ${ARGN})
  if(NOT arg_FOLDERS)
    set(arg_FOLDERS src/${name})
  endif()
  espalier_sources_in(sources "${arg_FOLDERS}" "${arg_WITHOUT}")
  set(testing ${sources})
  list(FILTER testing INCLUDE REGEX "/testing/[^/]+\\.cpp$")
  list(FILTER testing EXCLUDE REGEX "(_test|_fuzz|_bench)\\.cpp$")
  set(tests ${sources})
  set(fuzzers ${sources})
  set(benches ${sources})
  list(FILTER sources EXCLUDE REGEX "(_test|_fuzz|_bench|/main)\\.cpp$|/testing/")
  list(FILTER tests INCLUDE REGEX "_test\\.cpp$")
  list(FILTER fuzzers INCLUDE REGEX "_fuzz\\.cpp$")
  list(FILTER benches INCLUDE REGEX "_bench\\.cpp$")

  set(depends ${arg_DEPENDS})
  list(TRANSFORM depends PREPEND espalier_)
  espalier_library(espalier_${name} "${sources}" ${depends} ${arg_LIBRARIES})
  if(arg_COMMANDS)
    espalier_not_optimised_under_sanitizers(espalier_${name})
    espalier_batches(espalier_${name} "${sources}")
    target_precompile_headers(espalier_${name} PRIVATE
      <CLI/CLI.hpp> <fmt/format.h> <nlohmann/json.hpp> <functional> <memory> <optional> <string>
      <vector>)
  else()
    espalier_batches(espalier_${name} "${sources}")
    espalier_precompile(espalier_${name} "${sources}")
  endif()
  if(arg_PLANTED)
    set(planted_depends)
    foreach(depend IN LISTS depends)
      if(TARGET ${depend}_planted)
        list(APPEND planted_depends ${depend}_planted)
      else()
        list(APPEND planted_depends ${depend})
      endif()
    endforeach()
    if(ESPALIER_BUILD_TESTS AND ESPALIER_BUILD_PLANTED)
      espalier_library(espalier_${name}_planted "${sources}" ${planted_depends} ${arg_LIBRARIES})
    endif()
  endif()

  list(GET arg_FOLDERS 0 folder)
  set(main ${PROJECT_SOURCE_DIR}/${folder}/main.cpp)
  if(arg_EXECUTABLE AND EXISTS ${main})
    string(REPLACE "-" "_" program ${arg_EXECUTABLE}_program)
    add_executable(${program} ${main})
    set_target_properties(${program} PROPERTIES OUTPUT_NAME ${arg_EXECUTABLE})
    target_link_libraries(${program} PRIVATE espalier_${name})
  endif()
  if(ESPALIER_BUILD_TESTS)
    set(test_depends ${arg_DEPENDS} ${arg_TEST_DEPENDS})
    espalier_module_testing(${name} "${testing}" "${test_depends}" ${arg_PLANTED})
    set(kind)
    if(arg_COMMANDS)
      set(kind COMMANDS)
    endif()
    espalier_module_tests(${name} "${tests}" "${fuzzers}" "${benches}" ${kind})
  endif()
endfunction()

# The sources in some folders, and those that are named themselves, but for those in other folders.
function(espalier_sources_in result folders without)
  set(found)
  foreach(folder IN LISTS folders)
    set(folder ${PROJECT_SOURCE_DIR}/${folder})
    if(folder MATCHES "\\.cpp$")
      list(APPEND found ${folder})
    else()
      file(GLOB sources CONFIGURE_DEPENDS
           ${folder}/*.cpp ${folder}/*/*.cpp ${folder}/*/*/*.cpp)
      list(APPEND found ${sources})
    endif()
  endforeach()
  list(FILTER found EXCLUDE REGEX "/corpus/")
  foreach(folder IN LISTS without)
    set(others ${found})
    list(FILTER others INCLUDE REGEX "/${folder}/")
    if(others)
      list(REMOVE_ITEM found ${others})
    endif()
  endforeach()
  set(${result} ${found} PARENT_SCOPE)
endfunction()

function(espalier_not_optimised_under_sanitizers target)
  if(ESPALIER_SANITIZERS)
    target_compile_options(${target} PRIVATE -O0)
  endif()
endfunction()

# Compiles the sources of a target in batches, CMake's unity builds: those of one folder, in their
# order, up to some 3000 lines. For most of what one takes goes into the headers that all of them
# include. Names that two of a folder declare for themselves would clash; a style test refuses them.
# The preset `plain` compiles the library that is installed source by source, so that each proves
# that its includes suffice.
function(espalier_batches target sources)
  if(NOT ESPALIER_BATCHES OR NOT sources)
    return()
  endif()
  set(folder)
  set(batches 0)
  foreach(source IN LISTS sources)
    cmake_path(GET source PARENT_PATH parent)
    file(SIZE ${source} size)
    if(NOT parent STREQUAL folder)
      set(folder ${parent})
      set(number 0)
      set(bytes 120001)
    endif()
    math(EXPR bytes "${bytes} + ${size}")
    if(bytes GREATER 120000)
      math(EXPR number "${number} + 1")
      math(EXPR batches "${batches} + 1")
      set(bytes ${size})
      cmake_path(RELATIVE_PATH parent BASE_DIRECTORY ${PROJECT_SOURCE_DIR})
      string(MAKE_C_IDENTIFIER ${parent}_${number} batch)
    endif()
    set_source_files_properties(${source} PROPERTIES UNITY_GROUP ${batch})
  endforeach()
  set_target_properties(${target} PROPERTIES
    ESPALIER_UNITS ${batches} UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    # It takes an included source for a header, whose types others would see.
    target_compile_options(${target} PRIVATE $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# Compiles these sources of a module as one, so that what they call in each other for each request
# can be in line. Their names must not clash.
function(espalier_together name)
  list(TRANSFORM ARGN PREPEND ${PROJECT_SOURCE_DIR}/src/ OUTPUT_VARIABLE sources)
  set_source_files_properties(${sources} PROPERTIES UNITY_GROUP together)
  set_target_properties(espalier_${name} PROPERTIES UNITY_BUILD ON UNITY_BUILD_MODE GROUP)
  if(CMAKE_CXX_COMPILER_ID STREQUAL "GNU")
    target_compile_options(espalier_${name} PRIVATE
                           $<$<COMPILE_LANGUAGE:CXX>:-Wno-subobject-linkage>)
  endif()
endfunction()

# A static library, or an interface library where there is nothing to compile. A name that ends in
# _planted gets the switches, and passes them on to what links it: headers read them too.
function(espalier_library target sources)
  if(sources)
    add_library(${target} STATIC ${sources})
    set(kind PUBLIC)
  else()
    add_library(${target} INTERFACE)
    set(kind INTERFACE)
  endif()
  target_link_libraries(${target} ${kind} espalier_options ${ARGN})
  # Fuzzers want to know which of our code ran, and nothing of what tests and benchmarks are made
  # of.
  set(others "_(bench|testing|test_support|source_rules)$")
  if(ESPALIER_BUILD_FUZZERS AND sources AND NOT target MATCHES "${others}")
    target_compile_options(${target} PRIVATE -fsanitize=fuzzer-no-link)
  endif()
  if(target MATCHES "_planted$")
    target_compile_definitions(${target} ${kind} ESPALIER_PLANTED_BUGS=1 ESPALIER_FAULTS=1)
    if(sources)
      espalier_batches(${target} "${sources}")
      espalier_precompile(${target} "${sources}")
      target_compile_options(${target} PRIVATE $<$<CONFIG:Release>:-O1>)  # only tests link it
    endif()
  endif()
endfunction()
