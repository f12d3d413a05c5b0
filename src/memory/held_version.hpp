// SPDX-License-Identifier: Apache-2.0
// A held version: the version at which a snapshot reads (reclaimer.hpp).
#pragma once

#include <atomic>
#include <cstdint>
#include <string>

#include "memory/planted_memory_bugs.hpp"

namespace espalier::memory {

struct HeldVersion {
  std::uint64_t version = 0;
  std::atomic<bool> expired{false};
  std::uint64_t number = 0;  // unique in a store, ascending in the order of hold()
  std::string owner;         // for operators: "process 12", "session 3"

  [[nodiscard]] bool has_expired() const {
    return expired.load(std::memory_order_seq_cst) && !planted(Bug::snapshot_expiry_ignored);
  }
};

}  // namespace espalier::memory
