// SPDX-License-Identifier: Apache-2.0
// How a public call reaches what stands behind its handle: not in a process that was forked since,
// and with an error where the process has no memory.
#pragma once

#include "channel/interface.hpp"
#include "channel/no_memory.hpp"

namespace espalier::client {

/// Does a call of what stands behind a handle, which returns a Result or a TableResult.
/// Errors: forked; where it throws std::bad_alloc, out_of_memory. Cost: a relaxed load.
template <class Work>
auto call(const Interface& behind, const Work& work) -> decltype(work()) {
  if (behind.is_copy()) [[unlikely]]
    return fail(Code::forked);
  return or_out_of_memory(work);
}

}  // namespace espalier::client
