// SPDX-License-Identifier: Apache-2.0
// Prepared pipelines at a connection's node, by query, and those whose query is gone: they are
// dropped when the next one is loaded on the same connection.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <mutex>
#include <optional>
#include <unordered_map>
#include <utility>
#include <vector>

#include "channel/rings/node_connection.hpp"

namespace espalier::client {

class LoadedNumbers final : public ConnectionPart {
 public:
  [[nodiscard]] std::optional<std::uint64_t> find(const void* query) const {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(query);
    if (found == numbers_.end()) return std::nullopt;
    return found->second;
  }
  /// Requires: the query lives until forget().
  void keep(const void* query, std::uint64_t number) {
    const std::lock_guard lock(mutex_);
    // Another thread has loaded it concurrently: either one will do.
    if (!numbers_.emplace(query, number).second) dropped_.push_back(number);
  }
  void forget(const void* query) {
    const std::lock_guard lock(mutex_);
    const auto found = numbers_.find(query);
    if (found == numbers_.end()) return;
    dropped_.push_back(found->second);
    numbers_.erase(found);
  }
  /// The caller asks the node to drop them.
  [[nodiscard]] std::vector<std::uint64_t> take_dropped() {
    const std::lock_guard lock(mutex_);
    return std::exchange(dropped_, {});
  }

 private:
  mutable std::mutex mutex_;  // guards all below
  std::unordered_map<const void*, std::uint64_t> numbers_;
  std::vector<std::uint64_t> dropped_;
};

}  // namespace espalier::client
