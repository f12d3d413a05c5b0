// SPDX-License-Identifier: Apache-2.0
// The client's side of a session of datagrams (wire/datagram.hpp): it proves the address that it
// asks from, and asks for one item at a time.
//
// What never happens
// - An answer is believed that has no right tag, or another number than what was asked last: so
//   none that was repeated, kept back, or is another session's.
// - A number is given to two requests, or a get is sent more often than the node takes it.
//
// Thread: one at a time.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "crypto/credential.hpp"
#include "crypto/secret_memory.hpp"
#include "kinds/map/client/datagram_wire.hpp"
#include "wire/datagram.hpp"

namespace espalier::client {

class DatagramGets {
 public:
  /// How long an answer is waited for before it is asked again (RTO): it follows what answers take,
  /// and is twice as long each time that none came, until a request is answered that was sent once.
  static constexpr std::uint64_t kTimeoutNsMin = 1'000'000;
  static constexpr std::uint64_t kTimeoutNsMax = 50'000'000;
  /// How often a request is sent. The node takes one 8 times.
  static constexpr int kSends = 4;

  /// What of it was sent and came. Thread: as the rest.
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t repeated = 0;  // of those
    std::uint64_t unasked = 0;   // that came and were no answer
    std::uint64_t bytes = 0;     // of answers
  };

  /// `wire` outlives it. `key`: of the session.
  DatagramGets(DatagramWire& wire, std::uint64_t session, crypto::Secret<crypto::SecretBytes> key);

  /// Has the node take the address that the wire sends from for the session's. Cost: two round
  /// trips. Returns false if it says nothing.
  [[nodiscard]] bool prove();
  /// What the node says of a key; what the payload points to stays until the next call. Nothing: no
  /// answer has come, and nothing is known. Requires: a key of 1 to kDatagramKeyBytesMax bytes.
  /// Cost: one round trip.
  [[nodiscard]] std::optional<wire::TakenReply> get(std::uint32_t map, std::string_view key,
                                                    std::uint64_t hint = 0);
  [[nodiscard]] const Counts& counts() const { return counts_; }

 private:
  [[nodiscard]] std::optional<wire::TakenReply> ask(wire::DatagramKind kind, std::string_view text,
                                                    wire::DatagramKind answer, std::uint32_t map,
                                                    std::uint64_t hint);
  [[nodiscard]] std::optional<wire::TakenReply> await(wire::DatagramKind answer,
                                                      std::uint64_t until_ns);
  [[nodiscard]] bool is_believed(const wire::TakenReply& reply,
                                 std::span<const std::byte> bytes) const;
  void learn(std::uint64_t took_ns);
  void back_off();

  DatagramWire& wire_;
  const std::uint64_t session_;
  const crypto::Secret<crypto::SecretBytes> key_;
  std::uint64_t number_ = 0;
  std::uint64_t mean_ns_ = 0;  // that answers take, smoothed; 0: none has come
  std::uint64_t timeout_ns_;   // of what is sent next
  Counts counts_;
  std::array<std::byte, wire::kDatagramBytesMax> request_;
  std::array<std::byte, wire::kDatagramBytesMax + 1> answer_;
};

}  // namespace espalier::client
