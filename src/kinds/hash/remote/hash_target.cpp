// SPDX-License-Identifier: Apache-2.0
#include "kinds/hash/remote/hash_target.hpp"

#include <bit>

#include "wire/group_clock.hpp"

namespace espalier::place {

Result<HashTarget> HashTarget::read(const hash::HashHeader& header, std::uint64_t header_offset,
                                    std::uint64_t region_bytes) {
  if (header.magic != hash::kHashMagic || header.format != hash::kHashFormat) {
    return fail(Code::corrupt, 1);
  }
  if (header.superseded != wire::kLive) return fail(Code::corrupt, 2);
  const bool shape = std::has_single_bit(header.partitions) &&
                     header.partitions <= hash::kPartitionsMax && header.versions <= 1;
  if (!shape) return fail(Code::corrupt, 3);
  HashTarget target;
  target.region_bytes = region_bytes;
  target.header_offset = header_offset;
  target.clock_offset = header.clock_offset;
  target.id = header.map_id;
  target.generation = header.generation;
  target.partition_bits = static_cast<std::uint32_t>(std::countr_zero(header.partitions));
  target.seed = {header.seed[0], header.seed[1]};
  const std::uint64_t bytes =
      sizeof(hash::HashHeader) + std::uint64_t{header.partitions} * hash::kLineBytes;
  if (header_offset % wire::kBlockBytes != 0 || !target.holds(header_offset, bytes)) {
    return fail(Code::corrupt, 4);
  }
  if (!wire::is_clock_place(header.clock_offset, region_bytes)) return fail(Code::corrupt, 5);
  if (header.versions == 0) return fail(Code::unsupported);
  return target;
}

}  // namespace espalier::place
