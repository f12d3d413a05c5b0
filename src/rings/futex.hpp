// SPDX-License-Identifier: Apache-2.0
// Sleeping on a word of memory that processes share.
#pragma once

#include <cstddef>
#include <cstdint>

namespace espalier::rings {

/// Sleeps while the word at `at` is `value`, at most so long. May return early, for any reason.
void futex_wait(const std::byte* at, std::uint32_t value, std::uint64_t timeout_ns);
/// Wakes all threads that sleep on the word. Cost: a system call.
void futex_wake(const std::byte* at);

}  // namespace espalier::rings
