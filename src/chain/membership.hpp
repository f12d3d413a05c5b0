// SPDX-License-Identifier: Apache-2.0
// Where a chain is kept, so that all who could be in it agree: one view, which changes by
// compare-and-set of its epoch only (docs/design/chains.md).
//
// Thread: one at a time; may wait, so none that serves.
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

  /// The view that is there now; nothing: no chain was made. Errors: a sentence for people.
  [[nodiscard]] virtual std::expected<std::optional<View>, std::string> read() = 0;
  /// Puts `next` in place of the view of the epoch before it, durably; of epoch 1, where none is.
  /// Returns whether that was there. Errors: a sentence for people; it may be done then, or not.
  [[nodiscard]] virtual std::expected<bool, std::string> replace(const View& next) = 0;

 protected:
  Membership() = default;
};

/// The membership at a place: the path of a file, or etcd://HOST:PORT,HOST:PORT/KEY, asked as the
/// file says that ESPALIER_ETCD_FILE names (chain/etcd_access.hpp). Nothing is asked yet. Errors: a
/// sentence for people.
[[nodiscard]] std::expected<std::unique_ptr<Membership>, std::string> open_membership(
    const std::string& place);

}  // namespace espalier::chain
