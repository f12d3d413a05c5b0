# SPDX-License-Identifier: Apache-2.0
# What regular expressions beside memory are searched with: RE2, which says what they mean, and
# Hyperscan, which is faster where both mean the same. The node and the command link them.
option(ESPALIER_HYPERSCAN "Search regular expressions with Hyperscan too, where it is there" ON)

find_path(ESPALIER_RE2_INCLUDE_DIR re2/re2.h)
find_library(ESPALIER_RE2_LIBRARY re2)
find_path(ESPALIER_HYPERSCAN_INCLUDE_DIR hs/hs.h)
find_library(ESPALIER_HYPERSCAN_LIBRARY hs)
mark_as_advanced(ESPALIER_RE2_INCLUDE_DIR ESPALIER_RE2_LIBRARY
                 ESPALIER_HYPERSCAN_INCLUDE_DIR ESPALIER_HYPERSCAN_LIBRARY)
if(NOT ESPALIER_RE2_INCLUDE_DIR OR NOT ESPALIER_RE2_LIBRARY)
  message(FATAL_ERROR "RE2 is missing (re2/re2.h). Debian's package libre2-dev has it.")
endif()
add_library(espalier_re2 INTERFACE)
target_include_directories(espalier_re2 SYSTEM INTERFACE ${ESPALIER_RE2_INCLUDE_DIR})
target_link_libraries(espalier_re2 INTERFACE ${ESPALIER_RE2_LIBRARY})

add_library(espalier_hyperscan INTERFACE)
if(ESPALIER_HYPERSCAN AND ESPALIER_HYPERSCAN_INCLUDE_DIR AND ESPALIER_HYPERSCAN_LIBRARY)
  target_include_directories(espalier_hyperscan SYSTEM INTERFACE ${ESPALIER_HYPERSCAN_INCLUDE_DIR})
  target_link_libraries(espalier_hyperscan INTERFACE ${ESPALIER_HYPERSCAN_LIBRARY})
  target_compile_definitions(espalier_hyperscan INTERFACE ESPALIER_HYPERSCAN=1)
elseif(ESPALIER_HYPERSCAN)
  message(STATUS "Without Hyperscan (Debian's package libhyperscan-dev): RE2 searches alone")
endif()
