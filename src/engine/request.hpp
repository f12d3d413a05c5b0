// SPDX-License-Identifier: Apache-2.0
// The state of one request in flight.
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

/// Where a request counts as in flight.
enum class Counted : std::uint8_t {
  by_both,        ///< at its scheduler, and its connection
  by_connection,  ///< it waits for its turn in an executor, or is with helpers
  by_none,        ///< it waits for its client, for a time, or for a peer
};

/// The fields of an answer come first, in two cache lines that an executor prefetches: with many
/// requests in flight, little stays cached between steps. A request of one slot whose offload has
/// no state touches four lines in all.
///
///    0  the executor's state: for maps, the walk
///   64  its connection, header, and flags
///  128  rarely used fields; owners of a long message and of the offload's state
///  192  the message's first slots
struct alignas(64) Request {
  ExecutorState executor_state;
  Connection* connection = nullptr;
  const Offload* offload = nullptr;  // null until it has begun
  WorkedOn* works_on = nullptr;      // null: the executor keeps nothing alive for it
  /// The request's header: a private copy.
  wire::RequestHeader header{};
  std::uint32_t index = 0;
  bool no_memory = false;  // the heap had no memory for its step: its answer will say so
  Counted counted = Counted::by_both;
  bool streamed = false;  // a part of its answer was sent
  bool refused = false;   // its message found no memory
  Request* next_stalled = nullptr;
  std::uint64_t wanted_bytes = 0;    // of its answer that found no memory; 0: none
  std::uint64_t timed_since_ns = 0;  // 0: not sampled
  HandlerState state;
  rings::MessageBuffer message;

  [[nodiscard]] std::uint32_t ring() const { return header.ring & wire::kRingBits; }
  /// How many nodes it has come over: at most kHopsMax.
  [[nodiscard]] std::uint8_t hops() const {
    const auto said = static_cast<std::uint8_t>((header.ring & wire::kHopBits) >> wire::kHopShift);
    return std::min(said, wire::kHopsMax);
  }
  [[nodiscard]] std::string_view key() const {
    return {text() + wire::kRequestKeyOffset, header.key_bytes};
  }
  /// Whether a device relays it. Its message then ends with the principal, which `header.bytes`
  /// leaves out once it was read.
  [[nodiscard]] bool on_behalf() const { return (header.ring & wire::kOnBehalf) != 0; }
  [[nodiscard]] std::string_view whole_message() const {
    return {text(), base::load_plain<wire::RequestHeader>(message.data()).bytes};
  }
  /// Overwrites a secret key, once it was read.
  void wipe_key() { message.wipe(wire::kRequestKeyOffset, header.key_bytes); }
  /// The bytes behind the key.
  [[nodiscard]] std::string_view payload() const {
    const std::uint32_t begin = wire::kRequestKeyOffset + header.key_bytes;
    return {text() + begin, header.bytes - begin};
  }
  /// Whether it reads at a snapshot; the snapshot's number then begins its payload.
  [[nodiscard]] bool at_snapshot() const { return (header.ring & wire::kAtSnapshot) != 0; }
  [[nodiscard]] std::string_view payload_behind_snapshot() const {
    const std::string_view all = payload();
    return at_snapshot() ? all.substr(std::min(all.size(), sizeof(std::uint64_t))) : all;
  }
  /// None: it names none, or is too short.
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
