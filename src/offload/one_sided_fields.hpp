// SPDX-License-Identifier: Apache-2.0
// The answer to a client that is to read something by READs alone.
#pragma once

#include <string_view>

#include "offload/call.hpp"
#include "offload/one_sided_host.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {

/// Offers the store's memory to the session, grants it a lease, and tells these and where the
/// object lies: a field of this kind.
Next answer_one_sided(Call& call, OneSidedHost& host, wire::FieldKind kind, std::string_view place);

}  // namespace espalier::offload
