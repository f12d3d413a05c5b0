// SPDX-License-Identifier: Apache-2.0
// What a walk is asked: a request, and what goes with it.
#pragma once

#include "espalier/condition.hpp"
#include "espalier/types.hpp"
#include "memory/held_version.hpp"
#include "wire/ref.hpp"

namespace espalier::memory {
class StagedBytes;
}

namespace espalier::tree {

/// What a put adds to the number that its key has, none being 0. It is added where the write is
/// decided, under the leaf's lock, so that no other write comes between and none is tried again. A
/// value of other than 8 bytes is refused as invalid_argument, with its bytes as the detail.
struct Addition {
  std::uint64_t amount = 0;
  std::uint64_t sum = 0;  // which is written: the bytes that the request's value points to
};

/// A request on its way to a lane.
struct WalkRequest {
  const Request* request = nullptr;
  Handler* handler = nullptr;
  const memory::HeldVersion* held = nullptr;  // read as of it; null: the newest released version
  wire::Ref hint{};                           // enter here first
  Condition condition{};                      // of a write: on the key's newest state
  bool past_cache = false;                    // not in place: what is remembered has misled it
  memory::StagedBytes* staged = nullptr;      // of a write, in place: its value; the walk takes it
  Addition* addition = nullptr;               // of a put, in place: what its value comes from

  /// Nothing but the request: no version to read, no place to enter, no condition, no value that is
  /// there already or comes from another.
  [[nodiscard]] bool plain() const {
    return held == nullptr && !hint && condition.kind == ConditionKind::none && staged == nullptr &&
           addition == nullptr;
  }
};

}  // namespace espalier::tree
