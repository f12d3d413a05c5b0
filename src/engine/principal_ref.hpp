// SPDX-License-Identifier: Apache-2.0
// How an account is named by those that only keep it (principal_accounts.hpp).
#pragma once

#include <memory>

namespace espalier::offload {

struct PrincipalAccount;

/// Never null where a connection is served.
using PrincipalRef = std::shared_ptr<PrincipalAccount>;

}  // namespace espalier::offload
