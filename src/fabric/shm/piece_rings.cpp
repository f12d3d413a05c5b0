// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/piece_rings.hpp"

#include <algorithm>
#include <array>
#include <bit>
#include <cstring>
#include <utility>

#include "fabric/shared_copy.hpp"

namespace espalier::fabric::shm {
namespace {

using Words = std::array<std::uint64_t, sizeof(wire::FabricPieceHead) / sizeof(std::uint64_t)>;

// Where the payload of a piece lies: in one part, or in two where it goes over the ring's end.
struct Parts {
  std::uint64_t begin;
  std::uint64_t first_bytes;
};

Parts parts_of(std::uint64_t slot, std::uint32_t count, std::uint64_t offset, std::uint64_t bytes) {
  const std::uint64_t ring_bytes = std::uint64_t{count} * wire::kFabricSlotBytes;
  const std::uint64_t begin =
      (slot * wire::kFabricSlotBytes + sizeof(wire::FabricPieceHead) + offset) & (ring_bytes - 1);
  return {begin, std::min(bytes, ring_bytes - begin)};
}

}  // namespace

// What the reader cannot have read, it has not: a credit beyond the tail, or one that was taken
// back, changes nothing.
void PieceWriter::ask_credit() {
  const auto credit = base::load_shared<std::uint64_t>(credit_, std::memory_order_acquire);
  if (credit <= tail_ && credit > seen_) seen_ = credit;
}

void PieceWriter::write(wire::FabricPieceHead head, const std::byte* payload) {
  head.sequence = wire::fabric_sequence(tail_);
  const auto words = std::bit_cast<Words>(head);
  std::byte* const at = slot(tail_);
  for (std::size_t i = 1; i < words.size(); ++i) base::store_shared(at + 8 * i, words[i]);
  const Parts parts = parts_of(tail_, count_, 0, head.bytes);
  copy_to_shared(slots_ + parts.begin, payload, parts.first_bytes);
  if (parts.first_bytes != head.bytes) {
    copy_to_shared(slots_, payload + parts.first_bytes, head.bytes - parts.first_bytes);
  }
  tail_ += wire::fabric_slots(head.bytes);
  base::store_shared(slot(tail_), std::uint64_t{0});
  base::store_shared(at, words[0], std::memory_order_release);
}

bool PieceReader::look(wire::FabricPieceHead& head) const {
  Words words;
  const std::byte* const at = slot(head_);
  for (std::size_t i = 0; i < words.size(); ++i) {
    words[i] = base::load_shared<std::uint64_t>(at + 8 * i);
  }
  head = std::bit_cast<wire::FabricPieceHead>(words);
  return head.sequence == wire::fabric_sequence(head_) &&
         head.bytes <= wire::fabric_piece_bytes_max(count_);
}

void PieceReader::copy(std::byte* to, std::uint32_t offset, std::uint32_t bytes) const {
  const Parts parts = parts_of(head_, count_, offset, bytes);
  copy_from_shared(to, slots_ + parts.begin, parts.first_bytes);
  if (parts.first_bytes != bytes) {
    copy_from_shared(to + parts.first_bytes, slots_, bytes - parts.first_bytes);
  }
}

// The credit is published once for each quarter of the ring, or by publish_head().
void PieceReader::next(const wire::FabricPieceHead& head) {
  head_ += wire::fabric_slots(head.bytes);
  if (head_ - published_head_ >= count_ / 4) publish_head();
}

void PieceReader::publish_head() {
  if (published_head_ == head_) return;
  published_head_ = head_;
  base::store_shared(credit_, head_, std::memory_order_release);
}

Result<PieceRings> PieceRings::create(std::uint32_t ring_slots) {
  auto memory =
      memory::SharedMemory::create("espalier-channel", wire::fabric_channel_bytes(ring_slots));
  if (!memory) return std::unexpected(memory.error());
  PieceRings made;
  made.memory_ = std::move(*memory);
  made.slots_ = ring_slots;
  made.side_ = 1;
  std::byte* const page = made.memory_.at(0);
  base::store_plain(page + offsetof(wire::FabricPage, magic), wire::kFabricMagic);
  base::store_plain(page + offsetof(wire::FabricPage, format), wire::kFabricFormat);
  base::store_plain(page + offsetof(wire::FabricPage, ring_slots), ring_slots);
  return made;
}

Result<PieceRings> PieceRings::attach(memory::Descriptor descriptor, std::uint32_t ring_slots) {
  if (!wire::fabric_slots_valid(ring_slots)) return fail(Code::corrupt);
  auto memory = memory::SharedMemory::attach(
      std::move(descriptor), wire::fabric_channel_bytes(ring_slots), memory::Rights::write);
  if (!memory) return std::unexpected(memory.error());
  PieceRings made;
  made.memory_ = std::move(*memory);
  made.slots_ = ring_slots;
  const auto magic = base::load_shared<std::uint64_t>(made.memory_.at(0));
  if (magic != wire::kFabricMagic) return fail(Code::corrupt);
  made.close_descriptor();
  return made;
}

}  // namespace espalier::fabric::shm
