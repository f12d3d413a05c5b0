// SPDX-License-Identifier: Apache-2.0
// Conversion of std::bad_alloc into an error, for public calls.
#pragma once

#include <new>

#include "espalier/error.hpp"

namespace espalier::client {

/// Returns the Result of `work`, or out_of_memory if it throws std::bad_alloc.
template <class Work>
auto or_out_of_memory(const Work& work) -> decltype(work()) {
  try {
    return work();
  } catch (const std::bad_alloc&) {
    return fail(Code::out_of_memory);
  }
}

}  // namespace espalier::client
