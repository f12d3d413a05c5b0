// SPDX-License-Identifier: Apache-2.0
// One request in flight, as the scheduler keeps it.
#pragma once

#include <algorithm>
#include <cstdint>
#include <optional>
#include <string_view>

#include "base/atomic_bytes.hpp"
#include "base/chain.hpp"
#include "engine/executor.hpp"
#include "engine/handler_state.hpp"
#include "rings/message_buffer.hpp"
#include "wire/message.hpp"

namespace espalier::offload {

class Connection;
struct Offload;

/// Who counts a request among those in flight.
enum class Counted : std::uint8_t {
  by_both,        ///< its scheduler, and its connection
  by_connection,  ///< it waits for its turn somewhere, or is with helpers
  by_none,        ///< it waits for its client, for a time, or for a peer
};

/// What an answer is made of comes first, in two lines that an executor asks for in time: of all
/// that many requests in flight touch, little is still near when it is needed again. A request
/// whose message is one slot, and whose offload keeps nothing, touches four lines in all.
///
///    0  what its executor keeps: of maps, the walk
///   64  where it belongs, what it says, flags
///  128  what few requests need; whether the message and the state have memory of their own
///  192  the message's first slots
struct alignas(64) Request {
  ExecutorState executor_state;
  Connection* connection = nullptr;
  const Offload* offload = nullptr;  // null until it has begun
  WorkedOn* works_on = nullptr;      // null: nothing that its executor must keep for it
  /// What the request says: a copy that nobody else can change.
  wire::RequestHeader header{};
  std::uint32_t index = 0;
  bool no_memory = false;  // the heap had none for what it is after: that is to be its answer
  Counted counted = Counted::by_both;
  bool streamed = false;  // a part of its answer was sent
  bool refused = false;   // there was no memory for its message
  Request* next_stalled = nullptr;
  std::uint64_t wanted_bytes = 0;    // of its answer, for which there was no memory; 0: there was
  std::uint64_t timed_since_ns = 0;  // 0: it is not timed
  HandlerState state;
  rings::MessageBuffer message;

  [[nodiscard]] std::uint32_t ring() const { return header.ring & wire::kRingBits; }
  /// Over how many nodes it has come: kHopsMax at most.
  [[nodiscard]] std::uint8_t hops() const {
    const auto said = static_cast<std::uint8_t>((header.ring & wire::kHopBits) >> wire::kHopShift);
    return std::min(said, wire::kHopsMax);
  }
  [[nodiscard]] std::string_view key() const {
    return {text() + wire::kRequestKeyOffset, header.key_bytes};
  }
  /// Whether a device relays it; then its message ends with the principal, which `header.bytes`
  /// leaves out once it was read.
  [[nodiscard]] bool on_behalf() const { return (header.ring & wire::kOnBehalf) != 0; }
  [[nodiscard]] std::string_view whole_message() const {
    return {text(), base::load_plain<wire::RequestHeader>(message.data()).bytes};
  }
  /// Overwrites the key, which is secret, once it was read.
  void wipe_key() { message.wipe(wire::kRequestKeyOffset, header.key_bytes); }
  /// What follows the key.
  [[nodiscard]] std::string_view payload() const {
    const std::uint32_t begin = wire::kRequestKeyOffset + header.key_bytes;
    return {text() + begin, header.bytes - begin};
  }
  /// Whether it reads at a snapshot, whose number then begins its payload.
  [[nodiscard]] bool at_snapshot() const { return (header.ring & wire::kAtSnapshot) != 0; }
  [[nodiscard]] std::string_view payload_behind_snapshot() const {
    const std::string_view all = payload();
    return at_snapshot() ? all.substr(std::min(all.size(), sizeof(std::uint64_t))) : all;
  }
  /// None: it names none, or is too short for that.
  [[nodiscard]] std::optional<std::uint64_t> snapshot_number() const {
    const std::string_view all = payload();
    if (!at_snapshot() || all.size() < sizeof(std::uint64_t)) return std::nullopt;
    return base::load_plain<std::uint64_t>(reinterpret_cast<const std::byte*>(all.data()));
  }

 private:
  [[nodiscard]] const char* text() const { return reinterpret_cast<const char*>(message.data()); }
};

static_assert(sizeof(Request) == 192 + rings::MessageBuffer::kInPlace);

/// Requests that wait until their client has read.
using StalledRequests = base::Chain<Request, &Request::next_stalled>;

}  // namespace espalier::offload
