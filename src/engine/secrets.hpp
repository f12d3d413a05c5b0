// SPDX-License-Identifier: Apache-2.0
// Who may come to a node over a fabric: names, with what each may do and the secret that proves it.
//
// Thread: any. Loading again replaces all at once.
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

  /// Nobody, until load().
  Secrets() : pool_(crypto::SecretPool::make()) {}

  /// Takes the lines of a file in place of those before, if all are good; else nothing changes.
  /// Returns how many there are, or what is wrong, a line of text for each mistake and at most ten.
  std::expected<std::size_t, std::vector<std::string>> load(const std::string& path);

  /// Who a name is.
  struct Owner {
    Access access;
    /// Of what its line says: another if the role, the names or the secret are others.
    std::uint64_t line = 0;
  };
  /// Copies the secret of a name. Returns who that is; nothing: there is no such name, and
  /// `secret` is one that nobody knows, so that finding out takes as long.
  [[nodiscard]] std::optional<Owner> find(std::string_view name, crypto::SecretBytes& secret) const;
  /// Whether somebody who came by this may still: the name's line has said the same since then.
  [[nodiscard]] bool still(std::string_view name, std::uint64_t line) const;
  /// Rises with each load that took something.
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
  std::uint64_t lines_ = 0;  // that said something new, ever
  std::atomic<std::uint64_t> generation_{0};
};

}  // namespace espalier::offload
