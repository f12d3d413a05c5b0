// SPDX-License-Identifier: Apache-2.0
// The answer to a client that is to read something by READs alone.
#pragma once

#include <string>
#include <string_view>

#include "engine/call.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {

class OneSidedHost;

/// Adds a field, with zeros behind it up to a multiple of 8.
void add_field(std::string& to, wire::FieldKind kind, std::string_view field);

/// Offers the store's memory to the session, grants it a lease, and tells these and where the
/// object lies: a field of this kind. `more`: fields behind these.
Next answer_one_sided(Call& call, OneSidedHost& host, wire::FieldKind kind, std::string_view place,
                      std::string_view more = {});

}  // namespace espalier::offload
