// SPDX-License-Identifier: Apache-2.0
// A chain's membership in a file of one machine: PATH has the view, the process that changes it
// locks PATH.lock, and the new view is written to PATH.new, flushed, and renamed.
//
// Thread: as Membership.
#pragma once

#include <cstdint>
#include <string>

#include "chain/membership.hpp"

namespace espalier::chain {

class FileMembership final : public Membership {
 public:
  /// Lock timeout: the process that holds the lock may have been stopped.
  static constexpr std::uint64_t kLockNs = 500'000'000;

  explicit FileMembership(std::string path) : path_(std::move(path)) {}

  [[nodiscard]] std::expected<std::optional<View>, std::string> read() override;
  [[nodiscard]] std::expected<bool, std::string> replace(const View& next) override;

 private:
  const std::string path_;
};

}  // namespace espalier::chain
