// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as the results of READs of a mapping feed, with or without a writer: the reader
// reads only within the ring, and accepts no entry with a wrong number or checksum.
//
// Input, repeated: 2 bytes of position, 1 byte of length, and the bytes to put there; the reader
// then reads the ring.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <memory>
#include <vector>

#include "base/testing/fuzz_input.hpp"
#include "kinds/map/remote/feed_cursor.hpp"

namespace espalier::place {
namespace {

using base::want;

constexpr std::uint64_t kOffset = 64 * wire::kBlockBytes;

wire::FeedHeader good_header() {
  wire::FeedHeader header{};
  header.map_id = 3;
  header.generation = 9;
  header.superseded = wire::kLive;
  header.magic = wire::kFeedMagic;
  header.format = wire::kFeedFormat;
  header.entries = wire::kFeedEntries;
  return header;
}

void run(const std::uint8_t* data, std::size_t size) {
  tree::MapView view;
  view.region_bytes = std::uint64_t{1} << 20;
  view.id = 3;
  auto cursor = FeedCursor::create({kOffset, 9, wire::kFeedEntries}, view);
  want(cursor.has_value(), "a good place was refused");
  const auto ring = std::make_unique<std::byte[]>(wire::kFeedBytes);
  const wire::FeedHeader header = good_header();
  std::memcpy(ring.get(), &header, sizeof header);
  FeedCursor::Landing landing;
  while (size >= 3) {
    const std::size_t at = (data[0] | data[1] << 8) % wire::kFeedBytes;
    const std::size_t bytes =
        std::min({std::size_t{data[2]}, size - 3, std::size_t{wire::kFeedBytes} - at});
    std::memcpy(ring.get() + at, data + 3, bytes);
    data += 3 + bytes;
    size -= 3 + bytes;
    const std::uint64_t from = cursor->entries_offset() - kOffset;
    want(from >= sizeof header && from + cursor->entries_bytes() <= wire::kFeedBytes,
         "entries outside of the ring");
    std::memcpy(landing.header.data(), ring.get(), sizeof header);
    std::memcpy(landing.entries.data(), ring.get() + from, cursor->entries_bytes());
    std::vector<MappingChange> changes;
    const auto came = cursor->take(landing, changes);
    want(came == FeedCursor::Came::entries || changes.empty(), "changes of a feed that is none");
    want(changes.size() <= FeedCursor::kAtOnce, "more than was read");
    for (std::size_t i = 0; i < changes.size(); ++i) {
      wire::FeedEntry entry;
      std::memcpy(&entry, ring.get() + from + i * sizeof entry, sizeof entry);
      want(entry.check == wire::feed_check(entry) && entry.lid == changes[i].lid, "a wrong entry");
    }
  }
}

}  // namespace
}  // namespace espalier::place

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::place::run(data, size);
  return 0;
}
