// SPDX-License-Identifier: Apache-2.0
// The clients that may authenticate at a node over a fabric: names, each with its rights and the
// secret that proves it.
//
// Thread: any. load() replaces all entries atomically.
#pragma once

#include <atomic>
#include <cstdint>
#include <expected>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "crypto/secret_pool.hpp"
#include "engine/access.hpp"

namespace espalier::offload {

class Secrets {
 public:
  /// Most names of a node.
  static constexpr std::size_t kNamesMax = 100'000;

  /// Empty until load().
  Secrets() : pool_(crypto::SecretPool::make()) {}

  /// Replaces the entries by those of a file, if all are valid; else nothing changes. Returns the
  /// number of entries, or the mistakes: a line of text for each, at most ten.
  std::expected<std::size_t, std::vector<std::string>> load(const std::string& path);

  /// The owner of a name.
  struct Owner {
    Access access;
    /// The version of its entry: changes with the role, the prefix or the secret.
    std::uint64_t line = 0;
  };
  /// Copies the secret of a name and returns its owner. Nothing: there is no such name, and
  /// `secret` is random, so that a check takes as long.
  [[nodiscard]] std::optional<Owner> find(std::string_view name, crypto::SecretBytes& secret) const;
  /// Whether the name still has that version of its entry: its sessions may stay.
  [[nodiscard]] bool still(std::string_view name, std::uint64_t line) const;
  /// Rises with each successful load.
  [[nodiscard]] std::uint64_t generation() const {
    return generation_.load(std::memory_order_acquire);
  }
  [[nodiscard]] const std::shared_ptr<crypto::SecretPool>& pool() const { return pool_; }

 private:
  struct Entry {
    Right role = Right::none;
    std::string prefix;
    crypto::SecretPool::Slot secret;
    std::uint64_t line = 0;
  };
  using Entries = std::map<std::string, Entry, std::less<>>;

  void number_lines(Entries& read);

  const std::shared_ptr<crypto::SecretPool> pool_;
  mutable std::mutex mutex_;  // guards the next two
  Entries entries_;
  std::uint64_t lines_ = 0;  // versions of entries so far
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace espalier::offload
