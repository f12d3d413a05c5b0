// SPDX-License-Identifier: Apache-2.0
// Fills a target before it is measured.
#pragma once

#include <cstdint>
#include <functional>

#include "bench/answers.hpp"
#include "bench/key_set.hpp"
#include "bench/target.hpp"

namespace espalier::bench {

/// Inserts all keys, in load order, on a pinned thread of its own. Calls `say` from time to time
/// with the percentage that is done. Returns inserts per second: the clock runs in the windows
/// only, since requests are made between them. Errors: throws std::runtime_error if an insert
/// failed.
double load_keys(Target& target, TargetKind kind, const KeySet& keys, ValueLength values,
                 const std::function<void(std::uint64_t percent)>& say);

/// Errors: throws std::runtime_error, with the message of the first, if operations failed.
void require_no_errors(TargetKind kind, const Answers& answers);

}  // namespace espalier::bench
