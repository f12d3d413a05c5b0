// SPDX-License-Identifier: Apache-2.0
// What a walk is asked: a request, and what goes with it.
#pragma once

#include <atomic>
#include <cstdint>
#include <string>
#include <string_view>

#include "espalier/types.hpp"
#include "wire/ref.hpp"

namespace espalier::tree {

/// A version that somebody holds on to.
struct HeldVersion {
  std::uint64_t version = 0;
  std::atomic<bool> expired{false};
  std::string owner;  // for operators: "process 12", "session 3"
};

/// What must hold of a key's newest state for a write to happen.
struct WriteCondition {
  enum class Kind : std::uint8_t { none, absent, present, value, version };
  Kind kind = Kind::none;
  std::uint64_t version = 0;
  std::string_view value;
};

/// A request on its way to a lane.
struct WalkRequest {
  const Request* request = nullptr;
  Handler* handler = nullptr;
  const HeldVersion* held = nullptr;  // read as of this version; null: the newest released one
  wire::Ref hint{};                   // enter here first
  WriteCondition condition{};         // of a write

  /// Nothing but the request: no version to read, no place to enter, no condition.
  [[nodiscard]] bool plain() const {
    return held == nullptr && !hint && condition.kind == WriteCondition::Kind::none;
  }
};

}  // namespace espalier::tree
