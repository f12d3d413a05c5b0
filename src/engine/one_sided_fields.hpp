// SPDX-License-Identifier: Apache-2.0
// The answer to a client that wants to read an object one-sided.
#pragma once

#include <string>
#include <string_view>

#include "engine/call.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {

class OneSidedHost;

/// Appends a field, zero-padded to a multiple of 8.
void add_field(std::string& to, wire::FieldKind kind, std::string_view field);

/// Offers the store's memory to the session, grants it a lease, and answers with both and the
/// object's location: a field of this kind. `more`: fields to append.
Next answer_one_sided(Call& call, OneSidedHost& host, wire::FieldKind kind, std::string_view place,
                      std::string_view more = {});

}  // namespace espalier::offload
