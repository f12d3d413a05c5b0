// SPDX-License-Identifier: Apache-2.0
// Reads whole messages out of a ring's slots.
//
// Most messages are one slot and are copied once, to where they are used. Longer ones are gathered
// as their slots arrive. Their memory is charged to a share of a budget, and grows only with the
// bytes that have arrived, for the length is the sender's claim. A message whose memory is refused
// is read to its end and dropped; the caller learns of it, and can answer with an error. The
// messages behind it are not lost.
//
// Thread: one at a time.
#pragma once

#include <cstddef>
#include <cstdint>

#include "rings/message_budget.hpp"
#include "rings/message_buffer.hpp"
#include "rings/ring.hpp"
#include "wire/message.hpp"

namespace espalier::rings {

/// What take() found.
enum class Taken : std::uint8_t {
  nothing,  ///< no message has come, or not all of it
  message,  ///< the buffer has one
  refused,  ///< one has come for which there was no memory: the buffer has its first slot
  broken,   ///< the next slot can begin no message: the ring cannot be read any further
};

/// Reads messages whose length is at the same offset of the header: requests and responses.
class MessageReader {
 public:
  MessageReader() = default;
  /// `header_bytes`: a message is at least so long.
  MessageReader(SlotReader slots, std::uint32_t header_bytes, MessageShare& share)
      : slots_(slots), header_bytes_(header_bytes), share_(&share) {}

  /// Whether take() may find something.
  [[nodiscard]] bool ready() const { return slots_.ready(); }

  /// A byte of the first slot of the message that take() would take next, as its sender has it just
  /// now: a hint. Requires: ready(), and it lies in the header.
  [[nodiscard]] std::uint8_t peek(std::size_t offset) const {
    if (left_ != 0) return std::to_integer<std::uint8_t>(gathered_.data()[offset]);
    return base::load_shared<std::uint8_t>(slots_.next() + offset);
  }

  /// Takes the next message into `into`. Cost: a slot, and one cold slot for every 60 bytes more.
  [[nodiscard]] Taken take(MessageBuffer& into) {
    return slots_.ready() ? take_ready(into) : Taken::nothing;
  }
  /// The same. Requires: ready().
  [[nodiscard]] Taken take_ready(MessageBuffer& into) {
    if (left_ == 0) [[likely]] {
      std::byte* const slot = into.clear_in_place();
      slots_.take(slot);
      const std::uint32_t bytes = length(slot);
      if (bytes - header_bytes_ <= wire::kRingSlotBytes - header_bytes_) [[likely]] {
        return Taken::message;
      }
      if (!begin_long(into, bytes)) return Taken::broken;
    }
    return gather(into);
  }

  /// Whether a message of several slots has begun to come.
  [[nodiscard]] bool gathering() const { return left_ != 0; }
  [[nodiscard]] SlotReader& slots() { return slots_; }
  [[nodiscard]] const SlotReader& slots() const { return slots_; }

 private:
  static std::uint32_t length(const std::byte* slot) {
    return base::load_plain<std::uint32_t>(slot + offsetof(wire::RequestHeader, bytes));
  }
  bool begin_long(const MessageBuffer& first, std::uint32_t bytes);
  void keep(const std::byte* bytes, std::uint32_t count);
  Taken gather(MessageBuffer& into);

  SlotReader slots_;
  std::uint32_t header_bytes_ = 0;
  MessageShare* share_ = nullptr;
  // Of a message of several slots: what has come of it.
  MessageBuffer gathered_;
  std::uint32_t left_ = 0;  // bytes that have not come
  std::uint32_t have_ = 0;
  bool refused_ = false;
};
static_assert(offsetof(wire::RequestHeader, bytes) == offsetof(wire::ResponseHeader, bytes));

}  // namespace espalier::rings
