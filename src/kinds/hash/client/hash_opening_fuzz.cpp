// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's answer to one_sided_hash: nothing behind them is read, and all that a
// reader of the hash map that they tell of would read lies in the region.
//
// Input: the fields.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string_view>

#include "base/testing/fuzz_input.hpp"
#include "kinds/hash/client/hash_opening.hpp"

namespace espalier::client {
namespace {

using base::want;

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const auto opening = HashOpening::read({exact.get(), size});
  if (!opening) return want(opening.error().code == Code::corrupt, "refused as something else");
  const std::uint32_t id = opening->map.header.map_id;
  const auto target = opening->target_of(id);
  if (!target) {
    const bool known =
        target.error().code == Code::corrupt || target.error().code == Code::unsupported;
    return want(known, "refused as something else");
  }
  const std::uint64_t region = opening->region.bytes;
  const std::uint32_t last = (1u << target->partition_bits) - 1;
  const std::uint64_t line = target->partition_line(last);
  want(line <= region && region - line >= sizeof(hash::PartitionLine),
       "a partition outside of the region");
  want(target->clock_offset <= region && region - target->clock_offset >= sizeof(std::uint64_t),
       "a clock outside of the region");
  want(!opening->target_of(id + 1), "a hash map that was not asked for");
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run(data, size);
  return 0;
}
