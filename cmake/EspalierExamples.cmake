# SPDX-License-Identifier: Apache-2.0
# The examples, which need nothing but the library; with the tests, they are run as such.

# What is in C is C11 and nothing else, whatever the build is told of warnings.
function(espalier_strict_c target)
  set_target_properties(${target} PROPERTIES
    C_STANDARD 11 C_STANDARD_REQUIRED ON C_EXTENSIONS OFF)
  target_compile_options(${target} PRIVATE
    "$<$<COMPILE_LANGUAGE:C>:-Wall;-Wextra;-Wpedantic;-Wconversion;-Wstrict-prototypes;-Werror>")
endfunction()

# example/: programs as applications write them, against the library that applications link.
function(espalier_examples)
  file(GLOB sources CONFIGURE_DEPENDS
       ${PROJECT_SOURCE_DIR}/example/*.cpp ${PROJECT_SOURCE_DIR}/example/*.c)
  foreach(source IN LISTS sources)
    cmake_path(GET source STEM program)
    add_executable(${program} ${source})
    # What keeps a store in a folder is of the library with the node.
    set(library espalier::client)
    set(arguments)
    if(program STREQUAL "durable_store")
      set(library espalier::node)
      set(arguments ${PROJECT_BINARY_DIR}/example_durable_store)
    endif()
    target_link_libraries(${program} PRIVATE ${library} espalier_options)
    espalier_strict_c(${program})
    if(NOT ESPALIER_BUILD_TESTS)
      continue()
    endif()
    add_test(NAME example.${program} COMMAND ${program} ${arguments})
    set_tests_properties(example.${program} PROPERTIES LABELS fast
      TIMEOUT ${ESPALIER_TEST_TIMEOUT_SECONDS})
    add_dependencies(espalier_quick ${program})
    if(TARGET commands_test)
      add_dependencies(commands_test ${program})
    endif()
  endforeach()
endfunction()
