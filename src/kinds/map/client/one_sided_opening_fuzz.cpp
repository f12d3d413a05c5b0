// SPDX-License-Identifier: Apache-2.0
// Arbitrary bytes as a node's answer to one_sided_open, feed_open and index_generation: nothing
// behind them is read, unknown fields change nothing, and a view or a feed that is made of them
// lies in the region.
//
// Input: the fields.
#include <cstdint>
#include <cstring>
#include <memory>
#include <string>

#include "base/bytes.hpp"
#include "base/testing/fuzz_input.hpp"
#include "kinds/map/client/one_sided_opening.hpp"
#include "kinds/map/remote/feed_cursor.hpp"

namespace espalier::client {
namespace {

using base::want;

bool alike(const OneSidedOpening& a, const OneSidedOpening& b) {
  return base::bytes_of(a.region) == base::bytes_of(b.region) &&
         base::bytes_of(a.map) == base::bytes_of(b.map) &&
         base::bytes_of(a.lease) == base::bytes_of(b.lease);
}

void look_at_feed(std::string_view payload, const tree::MapView& view) {
  const auto place = read_feed_place(payload);
  if (!place) return want(place.error().code == Code::corrupt, "refused as something else");
  const auto cursor = place::FeedCursor::create(*place, view);
  if (!cursor) return want(cursor.error().code == Code::corrupt, "refused as something else");
  const std::uint64_t begin = cursor->header_offset();
  want(begin <= view.region_bytes && view.region_bytes - begin >= wire::kFeedBytes,
       "a feed outside of the region");
  want(cursor->entries_offset() + cursor->entries_bytes() <= begin + wire::kFeedBytes,
       "entries outside of the feed");
}

void look_at_redirect(std::string_view payload) {
  const auto place = read_redirect_place(payload);
  if (!place) want(place.error().code == Code::corrupt, "refused as something else");
}

void run(const std::uint8_t* data, std::size_t size) {
  const std::unique_ptr<char[]> exact(new char[size]);  // so that a byte too far is seen
  if (size != 0) std::memcpy(exact.get(), data, size);
  const std::string_view payload(exact.get(), size);
  tree::MapView any;
  any.region_bytes = std::uint64_t{1} << 30;
  look_at_feed(payload, any);
  look_at_redirect(payload);
  const auto opening = OneSidedOpening::read(payload);
  wire::FieldHeader unknown{};
  unknown.kind = 0x7FFF;
  unknown.bytes = 3;
  std::string more(base::bytes_of(unknown));
  more += std::string("new") + std::string(5, 0);
  more += payload;
  const auto again = OneSidedOpening::read(more);
  want(again.has_value() == opening.has_value(), "an unknown field changed something");
  if (!opening) {
    want(opening.error().code == Code::corrupt, "refused as something else");
    return;
  }
  want(alike(*opening, *again), "an unknown field changed something");
  const auto view = opening->view_of(opening->map.header.map_id);
  if (!view) return;
  const std::uint64_t region = opening->region.bytes;
  want(view->directory_offset <= region && region - view->directory_offset >= wire::kDirectoryBytes,
       "a directory outside of the region");
  const std::uint64_t root = view->directory_entry_offset(view->root);
  want(root >= view->directory_offset && root - view->directory_offset < wire::kDirectoryBytes,
       "a root outside of the directory");
  want(view->clock_offset <= region && region - view->clock_offset >= sizeof(std::uint64_t),
       "a clock outside of the region");
  look_at_feed(payload, *view);
  want(!opening->view_of(view->id + 1), "the view of a map that was not asked for");
}

}  // namespace
}  // namespace espalier::client

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  espalier::client::run(data, size);
  return 0;
}
