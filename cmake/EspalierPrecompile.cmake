# SPDX-License-Identifier: Apache-2.0
# Headers that nearly every source includes, be it by way of others: half of what compiling a source
# takes goes into headers, for each class with a container is an instantiation of it. Whoever
# changes one of the project's compiles everything, which it would have anyway.
set(ESPALIER_COMMON_HEADERS
  <algorithm> <array> <atomic> <bit> <concepts> <cstddef> <cstdint> <cstring> <deque> <expected>
  <functional> <limits> <map> <memory> <mutex> <optional> <source_location> <span> <string>
  <string_view> <type_traits> <unordered_map> <utility> <vector>
  [["base/assert.hpp"]] [["base/barrier.hpp"]] [["base/bytes.hpp"]] [["base/clock.hpp"]]
  [["espalier/error.hpp"]])

# Has the compiler read them, and headers that it is given, once for the target. One of fewer than
# six compiler runs would gain nothing.
function(espalier_precompile target sources)
  get_target_property(units ${target} ESPALIER_UNITS)  # in batches
  if(NOT units)
    list(LENGTH sources units)
  endif()
  if(ESPALIER_PRECOMPILE AND units GREATER_EQUAL 6)
    target_precompile_headers(${target} PRIVATE ${ESPALIER_COMMON_HEADERS} ${ARGN})
  endif()
endfunction()
