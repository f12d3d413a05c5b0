// SPDX-License-Identifier: Apache-2.0
// The node's end of a response ring: responses are written straight into slots while there is room,
// and queue in a backlog when there is none. The backlog's memory is charged to the connection's
// share. The scheduler reserves it before it builds a long response, and starts no request while
// there is a backlog, so that only short responses to requests in flight come without reservation.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <deque>
#include <initializer_list>
#include <span>
#include <string_view>
#include <utility>
#include <vector>

#include "base/atomic_bytes.hpp"
#include "rings/message_budget.hpp"
#include "rings/ring.hpp"
#include "wire/message.hpp"

namespace espalier::rings {

class alignas(64) ResponseRing {
 public:
  ResponseRing() = default;
  /// `side`: the client's wire::ResponseSide for this ring.
  ResponseRing(std::byte* slots, std::uint32_t count, std::byte* side, MessageShare& share)
      : space_(slots, count, side + offsetof(wire::ResponseSide, credit)),
        side_(side),
        share_(&share) {}

  /// Sends one message: the header, but for its length, kind and tag, and the parts of the payload.
  /// Cost: a slot, and another for every 60 bytes more; a copy where there is no room.
  void send(wire::ResponseKind kind, std::uint32_t tag, const wire::ResponseHeader& fields,
            std::initializer_list<std::string_view> parts) {
    std::size_t payload = 0;
    for (const std::string_view part : parts) payload += part.size();
    // Never by reference to one header: it would be stored by bytes and loaded by words, for which
    // each answer would wait.
    if (!has_room(wire::kResponseHeaderBytes + payload)) [[unlikely]]
      return defer(header_of(kind, tag, fields, payload), parts);
    MessageWriter writer(space_, tail_);
    writer.header(wire::words_of(header_of(kind, tag, fields, payload)));
    for (const std::string_view part : parts) writer.put(part.data(), part.size());
    tail_ = writer.finish();
  }
  /// Reserves so many bytes for a message that is built elsewhere: they count as a backlog.
  void promise(std::uint64_t bytes) {
    backlog_bytes_ += bytes;
    share_->take_anyway(bytes);
  }
  /// Releases the reservation: the message will not be sent.
  void take_back(std::uint64_t bytes) {
    backlog_bytes_ -= bytes;
    share_->give(bytes);
  }
  /// Sends a reserved message: room for the header, then the payload.
  void send_promised(wire::ResponseKind kind, std::uint32_t tag, const wire::ResponseHeader& fields,
                     std::vector<std::byte> message) {
    base::store_plain(message.data(),
                      header_of(kind, tag, fields, message.size() - wire::kResponseHeaderBytes));
    queue(std::move(message));
  }
  /// Whether a message of so many bytes would go straight into slots. Long ones never do: from the
  /// backlog they go in pieces.
  [[nodiscard]] bool has_room(std::uint64_t bytes) {
    if (backlog_bytes_ != 0 || bytes > kFlushSlots * wire::kRingSlotPayload) return false;
    const std::uint32_t slots = wire::slots_of(static_cast<std::uint32_t>(bytes));
    return space_.room(tail_) >= slots || space_.ask_room(tail_) >= slots;
  }
  /// Writes what the backlog holds, as far as there is room and up to kFlushSlots. Returns whether
  /// anything was written.
  bool flush_pending();
  /// 256 KiB: as much as takes some dozen microseconds.
  static constexpr std::uint64_t kFlushSlots = 4096;
  [[nodiscard]] std::uint64_t backlog_bytes() const { return backlog_bytes_; }
  /// Drops the backlog: no client will read it.
  void clear();

  /// Marks the ring as written since its reader was last checked; returns whether it was already.
  bool touch() { return std::exchange(touched_, true); }
  void looked_after() { touched_ = false; }
  /// Whether the reader sleeps. Requires: a barrier since the last message.
  [[nodiscard]] bool reader_sleeps() const {
    return base::load_shared<std::uint32_t>(sleeping_word()) != 0;
  }
  /// Wakes the reader. Cost: a system call.
  void wake_reader();

 private:
  [[nodiscard]] std::byte* sleeping_word() const {
    return side_ + offsetof(wire::ResponseSide, sleeping);
  }
  [[nodiscard]] static wire::ResponseHeader header_of(wire::ResponseKind kind, std::uint32_t tag,
                                                      const wire::ResponseHeader& fields,
                                                      std::size_t payload) {
    return {
        .sequence = 0,
        .bytes = static_cast<std::uint32_t>(sizeof fields + payload),
        .tag = tag,
        .kind = static_cast<std::uint8_t>(kind),
        .flags = fields.flags,
        .code = fields.code,
        .version = fields.version,
        .read_version = fields.read_version,
    };
  }
  void defer(const wire::ResponseHeader& header, std::initializer_list<std::string_view> parts);
  void queue(std::vector<std::byte> message);
  void begin_sending();

  // What a message needs that finds room: one line.
  SlotSpace space_;
  std::uint64_t tail_ = 0;
  std::uint64_t backlog_bytes_ = 0;  // with what is promised; 0: there is no backlog
  bool touched_ = false;
  std::byte* side_ = nullptr;
  MessageShare* share_ = nullptr;
  std::deque<std::vector<std::byte>> backlog_;
  MessageStream sending_;  // the first of the backlog
};

}  // namespace espalier::rings
