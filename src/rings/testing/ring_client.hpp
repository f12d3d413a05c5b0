// SPDX-License-Identifier: Apache-2.0
// A client for tests: as small as a client can be, and able to say anything. It plays on the memory
// of a connection, wherever that comes from: the scheduler's own, or what a socket handed out.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <cstring>
#include <deque>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/bytes.hpp"
#include "espalier/error.hpp"
#include "rings/message_reader.hpp"
#include "rings/ring.hpp"
#include "wire/message.hpp"

namespace espalier::rings {

template <class T>
std::string bytes_of(const T& value) {
  return std::string(base::bytes_of(value));
}

/// One response, copied.
struct Response {
  wire::ResponseHeader header{};
  std::string payload;

  [[nodiscard]] bool answers() const {
    return header.kind == static_cast<std::uint8_t>(wire::ResponseKind::answer);
  }
  [[nodiscard]] bool found() const { return (header.flags & wire::kFound) != 0; }
  [[nodiscard]] bool applied() const { return (header.flags & wire::kApplied) != 0; }
  [[nodiscard]] Code code() const { return static_cast<Code>(header.code); }
  /// Of an answer with a code.
  [[nodiscard]] std::uint32_t detail() const {
    std::uint32_t detail = 0;
    if (payload.size() == sizeof detail) std::memcpy(&detail, payload.data(), sizeof detail);
    return detail;
  }
};

/// The first fields of a request; the others are zero.
inline wire::RequestHeader request_of(wire::OffloadId offload, std::uint32_t map = 0,
                                      std::uint32_t tag = 0, std::uint32_t argument = 0) {
  wire::RequestHeader header{};
  header.offload = static_cast<std::uint8_t>(offload);
  header.map = map;
  header.tag = tag;
  header.argument = argument;
  return header;
}

/// A whole request: its lengths are filled in.
inline std::string message_of(wire::RequestHeader header, std::string_view key = {},
                              std::string_view payload = {}) {
  header.bytes = static_cast<std::uint32_t>(sizeof header + key.size() + payload.size());
  header.key_bytes = static_cast<std::uint16_t>(key.size());
  return bytes_of(header).append(key).append(payload);
}

class RingClient {
 public:
  /// `memory`: a connection's, mapped; `doorbell`: its word.
  RingClient(std::byte* memory, const wire::ConnectionLayout& layout, std::byte* doorbell)
      : memory_(memory),
        layout_(layout),
        doorbell_(doorbell),
        space_(memory + layout.requests(), layout.request_slots,
               memory + offsetof(wire::ConnectionPage, request_credit)) {
    for (std::uint32_t i = 0; i < layout.response_rings; ++i) {
      std::byte* const credit =
          memory + layout.response_side(i) + offsetof(wire::ResponseSide, credit);
      rings_.emplace_back(SlotReader(memory + layout.responses(i), layout.response_slots, credit),
                          wire::kResponseHeaderBytes, share_);
    }
  }
  RingClient(const RingClient&) = delete;
  RingClient& operator=(const RingClient&) = delete;

  /// Sends these bytes as one message, as far as there is room; flush() goes on.
  void post(std::string message) {
    outgoing_.push_back(std::move(message));
    flush();
  }
  /// Returns whether all is written.
  bool flush() {
    for (; !outgoing_.empty(); outgoing_.pop_front(), sending_ = false) {
      const std::string& message = outgoing_.front();
      if (!sending_) {
        stream_ = MessageStream(reinterpret_cast<const std::byte*>(message.data()),
                                static_cast<std::uint32_t>(message.size()), tail_);
      }
      sending_ = true;
      stream_.write(space_, space_.ask_room(tail_));
      tail_ = stream_.slot();
      if (!stream_.done()) return false;
    }
    return true;
  }
  void ring() { base::store_shared(doorbell_, static_cast<std::uint32_t>(tail_)); }

  /// The next response that has come whole.
  std::optional<Response> receive(std::uint32_t ring = 0) {
    MessageBuffer message;
    if (rings_[ring].take(message) != Taken::message) return std::nullopt;
    Response response;
    response.header = base::load_plain<wire::ResponseHeader>(message.data());
    response.payload.assign(reinterpret_cast<const char*>(message.data()) + sizeof response.header,
                            response.header.bytes - sizeof response.header);
    return response;
  }

  [[nodiscard]] std::byte* memory() const { return memory_; }
  [[nodiscard]] const wire::ConnectionLayout& layout() const { return layout_; }
  [[nodiscard]] SlotSpace& space() { return space_; }
  [[nodiscard]] std::uint64_t tail() const { return tail_; }
  [[nodiscard]] MessageReader& responses(std::uint32_t ring) { return rings_[ring]; }

  /// Writes one slot of the request ring, whatever is in it, and publishes it.
  void write_slot(std::string_view bytes) {
    std::memcpy(space_.slot(tail_) + sizeof(std::uint32_t), bytes.data(),
                std::min<std::size_t>(bytes.size(), wire::kRingSlotPayload));
    space_.publish(tail_++);
  }

 private:
  std::byte* memory_;
  wire::ConnectionLayout layout_;
  std::byte* doorbell_;
  SlotSpace space_;
  MessageShare share_;
  std::deque<MessageReader> rings_;
  std::deque<std::string> outgoing_;
  MessageStream stream_;
  bool sending_ = false;
  std::uint64_t tail_ = 0;
};

}  // namespace espalier::rings
