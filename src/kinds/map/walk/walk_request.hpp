// SPDX-License-Identifier: Apache-2.0
// The input of a walk: a request with its context.
#pragma once

#include "espalier/condition.hpp"
#include "espalier/types.hpp"
#include "memory/held_version.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
class StagedBytes;
}

namespace espalier::tree {

/// The number that a put adds to the key's value, which is 0 if there is none. The sum is computed
/// where the write is decided, under the leaf's lock, so that no other write intervenes and no
/// retry is needed. A value that has not 8 bytes fails with invalid_argument, with its bytes as the
/// detail.
struct Addition {
  std::uint64_t amount = 0;
  std::uint64_t sum = 0;  // the result, to which the request's value points
};

/// A request queued for a lane.
struct WalkRequest {
  const Request* request = nullptr;
  Handler* handler = nullptr;
  const memory::HeldVersion* held = nullptr;  // version to read at; null: the newest released one
  wire::Ref hint{};                           // where to enter first
  Condition condition{};                      // of a write: on the key's newest state
  bool past_cache = false;                    // remote: the cache misled it
  memory::StagedBytes* staged = nullptr;      // in place, of a write: its value, taken over
  Addition* addition = nullptr;               // in place, of a put: computes its value

  /// Whether it is nothing but the request: no version, hint, condition, staged value or addition.
  [[nodiscard]] bool plain() const {
    return held == nullptr && !hint && condition.kind == ConditionKind::none && staged == nullptr &&
           addition == nullptr;
  }
};

}  // namespace espalier::tree
