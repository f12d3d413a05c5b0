// SPDX-License-Identifier: Apache-2.0
// A reference to an account, for code that only holds it (principal_accounts.hpp).
#pragma once

#include <memory>

namespace espalier::offload {

struct PrincipalAccount;

/// Not null for a connection that is served.
using PrincipalRef = std::shared_ptr<PrincipalAccount>;

}  // namespace espalier::offload
