// SPDX-License-Identifier: Apache-2.0
// The answer of a node to one_sided_hash, as its client parses it.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

#include "channel/one_sided/opening_fields.hpp"
#include "espalier/error.hpp"
#include "kinds/hash/remote/hash_target.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {

struct HashOpening {
  /// Parses the fields; skips those of unknown kinds. Errors: corrupt (detail 1: a field is cut or
  /// missing).
  static Result<HashOpening> read(std::string_view payload);
  /// The location of this hash map. Errors: corrupt (2: another map, or there is no lease; else as
  /// HashTarget::read), unsupported.
  [[nodiscard]] Result<place::HashTarget> target_of(std::uint32_t map_id) const;

  wire::OfferedRegion region{};
  hash::HashPlace map{};
  wire::LeaseGrant lease{};
};

}  // namespace espalier::client
