// SPDX-License-Identifier: Apache-2.0
// The client side of a datagram session (wire/datagram.hpp): validates the client's address, then
// gets one item at a time.
//
// Invariants
// - It accepts an answer only with a valid tag and the number of the last request: so none that was
//   replayed, delayed, or belongs to another session.
// - No number is used for two requests, and no get is sent more often than the node accepts it.
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
  /// Retransmission timeout (RTO): follows round-trip times, and doubles after each timeout until a
  /// request that was sent only once is answered.
  static constexpr std::uint64_t kTimeoutNsMin = 1'000'000;
  static constexpr std::uint64_t kTimeoutNsMax = 50'000'000;
  /// Transmissions of a request. The node accepts up to 8.
  static constexpr int kSends = 4;

  /// Counts of requests and answers. Thread: as the rest.
  struct Counts {
    std::uint64_t sent = 0;
    std::uint64_t repeated = 0;  // of these, retransmissions
    std::uint64_t unasked = 0;   // received datagrams that are no valid answer
    std::uint64_t bytes = 0;     // of valid answers
  };

  /// `wire` outlives it. `key`: the session's key.
  DatagramGets(DatagramWire& wire, std::uint64_t session, crypto::Secret<crypto::SecretBytes> key);

  /// Validates the address that the wire sends from. Cost: two round trips. Returns false if the
  /// node does not answer.
  [[nodiscard]] bool prove();
  /// The node's reply for a key; its payload is valid until the next call. Nothing: no answer
  /// arrived. Requires: a key of 1 to kDatagramKeyBytesMax bytes.
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
  std::uint64_t mean_ns_ = 0;  // smoothed round-trip time; 0: no sample yet
  std::uint64_t timeout_ns_;   // RTO of the next transmission
  Counts counts_;
  std::array<std::byte, wire::kDatagramBytesMax> request_;
  std::array<std::byte, wire::kDatagramBytesMax + 1> answer_;
};

}  // namespace espalier::client
