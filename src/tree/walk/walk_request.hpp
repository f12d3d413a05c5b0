// SPDX-License-Identifier: Apache-2.0
// What a walk is asked: a request, and what goes with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "espalier/condition.hpp"
#include "espalier/types.hpp"
#include "tree/node/planted_tree_bugs.hpp"
#include "wire/ref.hpp"

namespace espalier::tree {

class StagedValue;

/// A version that somebody holds on to.
struct HeldVersion {
  std::uint64_t version = 0;
  std::atomic<bool> expired{false};
  std::uint64_t number = 0;  // those of a store, in the order in which they were held
  std::string owner;  // for operators: "process 12", "session 3"

  [[nodiscard]] bool has_expired() const {
    return expired.load(std::memory_order_seq_cst) && !planted(Bug::snapshot_expiry_ignored);
  }
};

/// A request on its way to a lane.
struct WalkRequest {
  const Request* request = nullptr;
  Handler* handler = nullptr;
  const HeldVersion* held = nullptr;  // read as of this version; null: the newest released one
  wire::Ref hint{};                   // enter here first
  Condition condition{};              // of a write: on the key's newest state
  bool past_cache = false;            // not in place: what is remembered has misled it
  StagedValue* staged = nullptr;      // of a write, in place: its value, which the walk takes

  /// Nothing but the request: no version to read, no place to enter, no condition, no value that is
  /// there already.
  [[nodiscard]] bool plain() const {
    return held == nullptr && !hint && condition.kind == ConditionKind::none && staged == nullptr;
  }
};

}  // namespace espalier::tree
