// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's answer to map_open: nothing behind them is read, and a shard map that
// is believed gives every key one shard, and is told again by the same bytes.
//
// Input: the payload.
#include <cstdint>
#include <string>

#include "base/testing/fuzz_input.hpp"
#include "kinds/map/client/opened_map.hpp"

namespace espalier::client {
namespace {

using base::want;

void run(const std::uint8_t* data, std::size_t size) {
  Reply reply;
  reply.payload.assign(reinterpret_cast<const char*>(data), size);
  const auto opened = OpenedMap::read(reply);
  if (!opened) {
    want(opened.error().code == Code::corrupt, "refused as something else");
    return;
  }
  if (!opened->shard) {
    want(size == sizeof(wire::MapShape) + opened->group.size(), "bytes that nobody looked at");
    want(reply.payload.ends_with(opened->group), "told by another name");
    want(opened->group.empty() || opened->options().versions, "a group without versions");
    return;
  }
  want(opened->group.empty(), "a shard in a group");
  const wire::ShardMap& map = *opened->shard;
  want(wire::bytes_of(map) == reply.payload.substr(sizeof(wire::MapShape)), "told otherwise");
  want(map.size() <= wire::kShardsMax && map.own < map.size(), "impossible numbers");
  for (std::size_t i = 0; i < map.size(); ++i) {
    const std::string& low = map.shards[i].low;
    want(map.shard_of(low) == i && map.bounds(i).has(low),
         "a border is not the first key of its shard");
    want(i == 0 || map.last_below(low) == i - 1, "a border is not the end of the shard before");
    want(map.bounds(i).has_range(low, map.high(i)), "a shard does not have its own range");
    want(map.shard_of(low + '\xFF') >= i, "keys go down");
  }
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run(data, size);
  return 0;
}
