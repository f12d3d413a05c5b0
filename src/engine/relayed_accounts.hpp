// SPDX-License-Identifier: Apache-2.0
// The accounts of those on whose behalf a connection asks (principal_accounts.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/principal_ref.hpp"

namespace espalier::offload {

class PrincipalAccounts;

/// The accounts of those on whose behalf one connection relays: few, so that most are found here
/// without the node's lock. Thread: that of the connection.
class RelayedAccounts {
 public:
  static constexpr std::size_t kMost = 256;  ///< remembered

  /// The account for a name that a device tells; `own`: the device's. Errors: std::bad_alloc.
  [[nodiscard]] PrincipalRef of(std::string_view name, const PrincipalRef& own,
                                PrincipalAccounts& accounts);

 private:
  std::unordered_map<std::string, PrincipalRef> known_;  // by name, as the device says it
};

}  // namespace espalier::offload
