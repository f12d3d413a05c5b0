// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/client/hash_opening.hpp"

namespace espalier::client {

Result<HashOpening> HashOpening::read(std::string_view payload) {
  return read_opening_of(wire::FieldKind::hash, &HashOpening::map, payload);
}

Result<place::HashTarget> HashOpening::target_of(std::uint32_t map_id) const {
  auto target = place::HashTarget::read(map.header, map.header_offset, region.bytes);
  if (!target) return target;
  if (target->id != map_id || lease.lease == 0) return fail(Code::corrupt, kOpeningNotAsked);
  return target;
}

}  // namespace espalier::client
