// SPDX-License-Identifier: Apache-2.0
// The membership of a chain, on which all possible members agree: one view, which changes only by
// compare-and-set of its epoch (docs/design/chains.md).
//
// Thread: one at a time; blocks, so never a thread that serves.
#pragma once

#include <cstdint>
#include <expected>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "chain/view.hpp"

namespace espalier::chain {

class Membership {
 public:
  virtual ~Membership() = default;
  Membership(const Membership&) = delete;
  Membership& operator=(const Membership&) = delete;

  /// The present view; nothing: no chain was created. Errors: a sentence for people.
  [[nodiscard]] virtual std::expected<std::optional<View>, std::string> read() = 0;
  /// Replaces the view of the previous epoch by `next`, durably; for epoch 1, requires that there
  /// is none. Returns whether the previous view was there.
  /// Errors: a sentence for people; the change may have been made.
  [[nodiscard]] virtual std::expected<bool, std::string> replace(const View& next) = 0;

 protected:
  Membership() = default;
};

/// The membership at a location: the path of a file, or etcd://HOST:PORT,HOST:PORT/KEY, with the
/// credentials in the file that ESPALIER_ETCD_FILE names (chain/etcd_access.hpp). Sends nothing
/// yet.
/// Errors: a sentence for people.
[[nodiscard]] std::expected<std::unique_ptr<Membership>, std::string> open_membership(
    const std::string& place);

}  // namespace espalier::chain
