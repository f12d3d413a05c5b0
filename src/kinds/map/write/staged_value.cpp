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

// Writes what is to be read of a value but its header's first 24 bytes, as far as it lies where
// nodes have their heads. A walk with an old hint may look at a node's head here, and at its second
// line if the node was one when it came.
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

Result<StagedValue> StagedValue::begin(ThreadContext& context, MapCore& map,
                                       std::string_view value) {
  auto offset = context.cache.allocate(class_of(value));
  if (!offset) {
    make_room(context);
    offset = context.cache.allocate(class_of(value));
  }
  if (!offset) return std::unexpected(offset.error());
  return StagedValue(map, *offset, value);
}

StagedValue::~StagedValue() {
  if (map_ != nullptr) map_->store.pool.release(offset_, class_of(value_));
}

bool StagedValue::copy(std::size_t bytes) {
  std::byte* const at = map_->at(offset_);
  if (copied_ == 0) {
    write_head(at, map_->id, value_);
    copied_ = std::min(value_.size(), kInHead);
  }
  const std::size_t piece = std::min(bytes, value_.size() - copied_);
  if (piece != 0) {
    std::memcpy(at + sizeof(wire::ValueHeader) + copied_, value_.data() + copied_, piece);
  }
  copied_ += piece;
  return is_whole();
}

wire::ValueRef StagedValue::take() {
  MapCore& map = *std::exchange(map_, nullptr);
  std::byte* const at = map.at(offset_);
  go_live(at, wire::kNoNode);
  map.value_bytes.fetch_add(memory::BufferPool::class_bytes(class_of(value_)),
                            std::memory_order_relaxed);
  const auto generation =
      base::load_shared<std::uint32_t>(at + offsetof(wire::ValueHeader, generation));
  return {wire::Ref::make(offset_, generation).bits, value_.size()};
}

}  // namespace espalier::tree
