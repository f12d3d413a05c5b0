// SPDX-License-Identifier: Apache-2.0
// A cache of the accounts on whose behalf a connection asks (principal_accounts.hpp).
#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <unordered_map>

#include "engine/principal_ref.hpp"

namespace espalier::offload {

class PrincipalAccounts;

/// The accounts of the clients for which one connection relays: few, so most lookups avoid the
/// node's lock. Thread: the connection's.
class RelayedAccounts {
 public:
  static constexpr std::size_t kMost = 256;  ///< remembered

  /// The account for a name that a device reports; `own`: the device's. Errors: std::bad_alloc.
  [[nodiscard]] PrincipalRef of(std::string_view name, const PrincipalRef& own,
                                PrincipalAccounts& accounts);

 private:
  std::unordered_map<std::string, PrincipalRef> known_;  // by name, as the device reports it
};

}  // namespace espalier::offload
