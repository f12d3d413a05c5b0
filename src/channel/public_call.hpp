// SPDX-License-Identifier: Apache-2.0
// Guards of public calls: forked processes get an error, and so do processes without memory.
#pragma once

#include "channel/interface.hpp"
#include "channel/no_memory.hpp"

namespace espalier::client {

/// Calls the implementation behind a handle; `work` returns a Result or a TableResult.
/// Errors: forked; where it throws std::bad_alloc, out_of_memory. Cost: a relaxed load.
template <class Work>
auto call(const Interface& behind, const Work& work) -> decltype(work()) {
  if (behind.is_copy()) [[unlikely]]
    return fail(Code::forked);
  return or_out_of_memory(work);
}

}  // namespace espalier::client
