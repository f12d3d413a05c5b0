// SPDX-License-Identifier: Apache-2.0
// Where the process itself has no memory: what public calls make of that.
#pragma once

#include <new>

#include "espalier/error.hpp"

namespace espalier::client {

/// Does a call, which returns a Result, and returns out_of_memory where it throws std::bad_alloc.
template <class Work>
auto or_out_of_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace espalier::client
