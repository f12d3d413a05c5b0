// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/write/staged_value.hpp"

#include <algorithm>
#include <cstring>

#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {
namespace {

constexpr std::size_t kHeadBytes = sizeof(wire::NodeHeader);
constexpr std::size_t kInHead = kHeadBytes - sizeof(wire::ValueHeader);

// Writes a value's header, except its first 24 bytes, and those bytes of the value that lie where
// nodes have their headers. A walk with a stale hint may read a node's header here, and its second
// line if the buffer held a node when the walk arrived.
void write_head(std::byte* at, std::uint32_t map_id, std::string_view value) {
  std::byte head[kHeadBytes] = {};
  base::store_plain<std::uint64_t>(head + offsetof(wire::ValueHeader, bytes), value.size());
  const std::size_t in_head = std::min(value.size(), kInHead);
  if (in_head != 0) std::memcpy(head + sizeof(wire::ValueHeader), value.data(), in_head);
  write_shared_head(at, map_id, head);
}

memory::SizeClass class_of(std::string_view value) {
  return memory::BufferPool::class_of(sizeof(wire::ValueHeader) + value.size());
}

}  // namespace

Result<memory::StagedBytes> stage_value(ThreadContext& context, MapCore& map,
                                        std::string_view value) {
  auto offset = context.cache.allocate(class_of(value));
  if (!offset) {
    make_room(context);
    offset = context.cache.allocate(class_of(value));
  }
  if (!offset) return std::unexpected(offset.error());
  write_head(map.at(*offset), map.id, value);
  return memory::StagedBytes(map.store.pool, class_of(value), *offset, sizeof(wire::ValueHeader),
                             value, std::min(value.size(), kInHead));
}

wire::ValueRef take_staged(MapCore& map, memory::StagedBytes& staged) {
  std::byte* const at = staged.at();
  const wire::ValueRef value{
      wire::Ref::make(staged.offset(), base::load_shared<std::uint32_t>(
                                           at + offsetof(wire::ValueHeader, generation)))
          .bits,
      staged.size()};
  staged.take();
  go_live(at, wire::kNoNode);
  map.value_bytes.fetch_add(memory::BufferPool::class_bytes(staged.size_class()),
                            std::memory_order_relaxed);
  return value;
}

}  // namespace espalier::tree
