// SPDX-License-Identifier: Apache-2.0
// A chain in a file of one machine: PATH has the view, PATH.lock is locked by who changes it, and
// a view is written beside as PATH.new, flushed, and renamed.
//
// Thread: as Membership.
#pragma once

#include <cstdint>
#include <string>

#include "chain/membership.hpp"

namespace espalier::chain {

class FileMembership final : public Membership {
 public:
  /// Waits for the lock for so long: whoever holds it may have been stopped.
  static constexpr std::uint64_t kLockNs = 500'000'000;

  explicit FileMembership(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::expected<std::optional<View>, std::string> read() override;
  [[nodiscard]] std::expected<bool, std::string> replace(const View& next) override;

 private:
  const std::string path_;
};

}  // namespace espalier::chain
