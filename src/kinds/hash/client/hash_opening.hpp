// SPDX-License-Identifier: Apache-2.0
// What a node answers to one_sided_hash, as a client reads it.
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
  /// Reads the fields; those of kinds that are not known are skipped. Errors: corrupt (detail 1: a
  /// field is cut or missing).
  static Result<HashOpening> read(std::string_view payload);
  /// Where this hash map lies. Errors: corrupt (2: another map, or there is no lease; else as
  /// HashTarget::read), unsupported.
  [[nodiscard]] Result<place::HashTarget> target_of(std::uint32_t map_id) const;

  wire::OfferedRegion region{};
  hash::HashPlace map{};
  wire::LeaseGrant lease{};
};

}  // namespace espalier::client
