// SPDX-License-Identifier: Apache-2.0
// For tests: one queue pair that plays a client of a node, correctly or not, as its caller
// requests. It sends any hello, slots and notes, and records the results.
//
// Thread: one at a time. Its endpoint outlives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <cstring>
#include <deque>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "fabric/endpoint.hpp"
#include "wire/ring.hpp"
#include "wire/ring_link.hpp"

namespace espalier::client {

/// A valid hello.
inline wire::LinkHello link_hello(wire::LinkWay way, const wire::ConnectionLayout& layout,
                                  const wire::LinkToken& token = {}) {
  wire::LinkHello hello{};
  hello.magic = wire::kLinkMagic;
  hello.protocol = wire::kLinkProtocol;
  hello.way = static_cast<std::uint8_t>(way);
  hello.request_slots_log2 = wire::slots_log2(layout.request_slots);
  hello.response_slots_log2 = wire::slots_log2(layout.response_slots);
  hello.response_rings = static_cast<std::uint8_t>(layout.response_rings);
  hello.token = token;
  return hello;
}

/// The slots of a message, from slot number `first` on.
inline std::string to_slots(std::string_view message, std::uint64_t first) {
  std::string slots;
  message.remove_prefix(std::min<std::size_t>(message.size(), sizeof(std::uint32_t)));
  do {
    const std::uint32_t sequence = wire::sequence_of(first++);
    slots += base::bytes_of(sequence);
    std::string part(message.substr(0, wire::kRingSlotPayload));
    message.remove_prefix(part.size());
    slots += (part.resize(wire::kRingSlotPayload), part);
  } while (!message.empty());
  return slots;
}

class HostileLink {
 public:
  using Status = fabric::Status;
  using State = fabric::QueuePair::State;

  /// Its receives, which may be none.
  struct Room {
    std::uint32_t receives = 16;
    std::size_t bytes_each = 4096;
  };
  /// Memory that a node may write, of a client with LinkWay::write.
  static constexpr std::uint64_t kMemoryBytes = std::uint64_t{64} << 10;

  HostileLink(fabric::Endpoint& endpoint, std::uint64_t timeout_ns, const Room& room)
      : endpoint_(endpoint),
        completions_(endpoint, 1024),
        slots_(kMemoryBytes / sizeof(Line)),
        region_(*endpoint.regions().offer({slots_.data()->bytes, kMemoryBytes},
                                          fabric::RemoteRights::write)),
        buffers_(room.receives * room.bytes_each) {
    options_.sends = &completions_;
    options_.timeout_ns = timeout_ns;
    options_.send_depth = kPostsMax;
    options_.receive_depth = std::max(room.receives, 1u);
    room_ = room;
  }
  ~HostileLink() {
    if (pair_) pair_->close();
    pair_.reset();
  }
  HostileLink(const HostileLink&) = delete;
  HostileLink& operator=(const HostileLink&) = delete;

  /// Puts that memory into a hello.
  void name_memory(wire::LinkHello& hello) const {
    hello.base = region_.remote().base;
    hello.key = region_.remote().key;
  }
  /// Begins to connect. Returns false if the endpoint refuses.
  bool dial(std::string_view target, std::string_view hello) {
    wire::LinkHello said{};
    std::memcpy(&said, hello.data(), std::min(hello.size(), sizeof said));
    way_ = static_cast<wire::LinkWay>(said.way);
    auto pair =
        endpoint_.connect(target, options_, std::as_bytes(std::span(hello.data(), hello.size())));
    if (!pair) return false;
    pair_ = std::move(*pair);
    for (std::uint32_t i = 0; i < room_.receives; ++i) post_receive(i);
    return true;
  }
  bool dial(std::string_view target, const wire::LinkHello& hello) {
    return dial(target, base::bytes_of(hello));
  }

  [[nodiscard]] bool ended() const { return !pair_ || pair_->state() == State::error; }
  [[nodiscard]] Status ended_by() const { return pair_->ended_by(); }
  /// The node's welcome; null while it has sent none of full length.
  [[nodiscard]] const wire::LinkWelcome* welcome() {
    if (!pair_ || pair_->peer_data().size() < sizeof welcome_) return nullptr;
    std::memcpy(&welcome_, pair_->peer_data().data(), sizeof welcome_);
    return &welcome_;
  }
  /// The rings of the welcome.
  [[nodiscard]] wire::ConnectionLayout layout() {
    const wire::LinkWelcome* const said = welcome();
    if (said == nullptr || said->code != 0) return {};
    return {1u << said->request_slots_log2, 1u << said->response_slots_log2, said->response_rings};
  }
  /// Whether the pair is accepted for a proof.
  [[nodiscard]] bool accepted_pending() {
    const wire::LinkWelcome* const said = welcome();
    return said != nullptr && said->code == 0 &&
           said->way == static_cast<std::uint8_t>(wire::LinkWay::prove);
  }
  /// Whether the pair is accepted for a session.
  [[nodiscard]] bool accepted() { return layout().valid(); }

  // --- what it says -----------------------------------------------------------------------------

  void send(std::string bytes, std::optional<std::uint32_t> immediate) {
    const auto kept = keep(std::move(bytes));
    using fabric::WorkRequest;
    post(immediate ? WorkRequest::send_immediate(0, kept, *immediate) : WorkRequest::send(0, kept));
  }
  /// To this offset of the memory that the node has for it.
  void write(std::uint64_t offset, std::string bytes, std::optional<std::uint32_t> immediate = {}) {
    if (welcome() != nullptr)
      write(welcome_.key, welcome_.base + offset, std::move(bytes), immediate);
  }
  void write(fabric::RegionKey key, std::uint64_t remote, std::string bytes,
             std::optional<std::uint32_t> immediate = {}) {
    const auto kept = keep(std::move(bytes));
    using fabric::WorkRequest;
    post(immediate ? WorkRequest::write_immediate(0, kept, key, remote, *immediate)
                   : WorkRequest::write(0, kept, key, remote));
  }
  void post(const fabric::WorkRequest& request) {
    if (pair_ && posted_ < kPostsMax)
      posted_ += static_cast<std::uint32_t>(pair_->post(request).taken);
  }
  /// Slots of the request ring, at their places and with their notes.
  void carry(std::string_view slots) {
    const wire::ConnectionLayout rings = layout();
    if (!rings.valid()) return;
    while (!slots.empty()) {
      const std::uint64_t index = tail_ & (rings.request_slots - 1);
      const std::uint64_t most = std::min<std::uint64_t>(rings.request_slots - index, 64);
      const std::string part(slots.substr(0, most * wire::kRingSlotBytes));
      slots.remove_prefix(part.size());
      tail_ += part.size() / wire::kRingSlotBytes;
      const std::uint32_t note =
          wire::to_immediate({wire::LinkNoteKind::slots, 0, static_cast<std::uint32_t>(tail_)});
      if (way_ == wire::LinkWay::write) {
        write(rings.requests() + index * wire::kRingSlotBytes, part, note);
      } else {
        send(part, note);
      }
    }
  }
  void request(std::string_view message) { carry(to_slots(message, tail_)); }
  void credit(std::uint32_t ring, std::uint64_t value) {
    const std::string bytes(base::bytes_of(value));
    if (way_ == wire::LinkWay::write) {
      write(wire::kLinkPageOffset + offsetof(wire::LinkPage, response_credits) + 8u * ring, bytes);
    } else {
      send(bytes, wire::to_immediate({wire::LinkNoteKind::credit, ring, 0}));
    }
  }
  /// Sends the credits that are due.
  void acknowledge() {
    for (std::uint32_t ring = 0; ring < layout().response_rings; ++ring) credit(ring, came_[ring]);
  }
  void close() { send({}, wire::to_immediate({wire::LinkNoteKind::close, 0, 0})); }

  // --- what came of it --------------------------------------------------------------------------

  /// Takes completions. Posts receives again if requested.
  void poll(bool receive_again = true) {
    fabric::Completion some[16];
    while (const std::size_t count = completions_.poll(some)) {
      for (std::size_t i = 0; i < count; ++i) take(some[i], receive_again);
    }
  }
  /// The status of the last completed request.
  [[nodiscard]] std::optional<Status> last() const { return last_; }
  /// Messages without an immediate value that have arrived, oldest first.
  [[nodiscard]] std::deque<std::string>& messages() { return messages_; }
  [[nodiscard]] std::uint32_t number() const { return pair_ ? pair_->number() : 0; }
  /// Requests that have not completed yet.
  [[nodiscard]] std::uint32_t posted() const { return posted_; }
  /// The slot after those of its request ring that it has sent.
  [[nodiscard]] std::uint64_t tail() const { return tail_; }
  /// Slots of a response ring that have arrived.
  [[nodiscard]] std::uint64_t came(std::uint32_t ring) const { return came_[ring]; }
  [[nodiscard]] wire::LinkWay way() const { return way_; }

 private:
  struct alignas(64) Line {
    std::byte bytes[64] = {};
  };
  static constexpr std::uint32_t kPostsMax = 256;

  std::span<const std::byte> keep(std::string bytes) {
    // The fabric may read them again to retransmit.
    if (posted_ == 0) kept_.clear();
    const std::string& kept = kept_.emplace_back(std::move(bytes));
    return std::as_bytes(std::span(kept.data(), kept.size()));
  }
  void post_receive(std::uint64_t number) {
    const auto into = std::span(buffers_).subspan(number * room_.bytes_each, room_.bytes_each);
    const fabric::Receive receive{number, into};
    pair_->post_receives({&receive, 1});
  }
  void take(const fabric::Completion& completion, bool receive_again) {
    const bool came = completion.opcode == fabric::Opcode::receive ||
                      completion.opcode == fabric::Opcode::receive_write;
    if (!came) {
      --posted_;
      last_ = completion.status;
      return;
    }
    if (completion.status != Status::success) return;
    if (!completion.with_immediate && completion.opcode == fabric::Opcode::receive) {
      const auto* const text = reinterpret_cast<const char*>(buffers_.data());
      messages_.emplace_back(text + completion.work_id * room_.bytes_each,
                             std::min<std::size_t>(completion.bytes, room_.bytes_each));
    }
    const wire::LinkNote note = wire::to_note(completion.immediate);
    if (completion.with_immediate && note.kind == wire::LinkNoteKind::slots) {
      std::uint64_t& known = came_[note.ring];
      known += (note.slot - static_cast<std::uint32_t>(known)) & wire::kLinkSlotMask;
    }
    if (receive_again && !ended()) post_receive(completion.work_id);
  }

  fabric::Endpoint& endpoint_;
  fabric::CompletionQueue completions_;
  std::vector<Line> slots_;
  fabric::Registration region_;
  Room room_;
  std::vector<std::byte> buffers_;
  fabric::QueuePairOptions options_;
  std::deque<std::string> kept_;
  std::unique_ptr<fabric::QueuePair> pair_;
  wire::LinkWay way_ = wire::LinkWay::invalid;
  wire::LinkWelcome welcome_{};
  std::uint64_t tail_ = 0;
  std::uint64_t came_[wire::kResponseRingsMax] = {};
  std::uint32_t posted_ = 0;
  std::optional<Status> last_;
  std::deque<std::string> messages_;
};

}  // namespace espalier::client
