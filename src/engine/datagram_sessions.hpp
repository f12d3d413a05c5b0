// SPDX-License-Identifier: Apache-2.0
// A node's datagram sessions (wire/datagram.hpp): each belongs to one response ring of a client's
// connection, and ends with it.
//
// Invariants
// - An address that the session has not proved receives nothing but one challenge for each hello,
//   no longer than the hello.
// - Replay protection: a number kSeenNumbers or more below the newest is refused, and each number
//   is accepted at most kRepeatsMax times. So replays have a bounded cost, and cause bounded
//   traffic to the proved address.
// - A principal gets no more of the receiving thread's time than its rates permit, however many
//   sessions it has, and a session causes no more challenges than its own.
//
// Thread: any; all but the end of one session one thread at a time, the receiver of datagrams.
#pragma once

#include <algorithm>
#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <mutex>
#include <unordered_map>

#include "crypto/secret_pool.hpp"
#include "engine/access.hpp"
#include "engine/account_parts.hpp"
#include "engine/node_parts.hpp"
#include "engine/principal_ref.hpp"
#include "fabric/roce/port.hpp"
#include "wire/datagram.hpp"

namespace espalier::offload {

class Connection;

/// The source address of a datagram.
using DatagramSource = fabric::roce::PortAddress;

/// How often each of the newest numbers of a session was accepted.
class TakenNumbers {
 public:
  static constexpr std::uint64_t kSeenNumbers = 64;
  static constexpr std::uint8_t kRepeatsMax = 8;

  /// Returns whether it is accepted once more.
  [[nodiscard]] bool take(std::uint64_t number);
  /// Accepts only a number greater than all before: for messages that change the session.
  [[nodiscard]] bool take_new(std::uint64_t number) { return number > newest_ && take(number); }

 private:
  std::uint64_t newest_ = 0;
  std::array<std::uint8_t, kSeenNumbers> times_{};  // by number
};

/// A rate limit: a long-run rate and a burst.
class DatagramRate {
 public:
  constexpr DatagramRate(std::uint64_t interval_ns, std::uint64_t at_once)
      : interval_ns_(interval_ns), most_ns_(interval_ns * at_once) {}
  /// Returns whether it may be done now, and then counts it.
  [[nodiscard]] bool take(std::uint64_t now_ns) {
    const std::uint64_t next_ns = std::max(taken_until_ns_, now_ns) + interval_ns_;
    if (next_ns > now_ns + most_ns_) return false;
    taken_until_ns_ = next_ns;
    return true;
  }

 private:
  std::uint64_t interval_ns_;
  std::uint64_t most_ns_;
  std::uint64_t taken_until_ns_ = 0;
};

/// What all sessions of one principal share. Thread: the receiver of datagrams.
struct DatagramShare final : AccountPart {
  /// For gets: more than some clients with few in flight send.
  static constexpr std::uint64_t kGetIntervalNs = 5'000;
  static constexpr std::uint64_t kGetsAtOnce = 256;
  /// For hellos and proofs: a client that opens session after session has each one's rate.
  static constexpr std::uint64_t kHelloIntervalNs = 1'000'000;
  static constexpr std::uint64_t kHellosAtOnce = 256;

  DatagramRate gets{kGetIntervalNs, kGetsAtOnce};
  DatagramRate hellos{kHelloIntervalNs, kHellosAtOnce};
};

struct DatagramSession {
  /// For hellos and proofs: bounds the traffic to unproved addresses.
  static constexpr std::uint64_t kHelloIntervalNs = 50'000'000;
  static constexpr std::uint64_t kHellosAtOnce = 16;

  std::uint64_t number = 0;
  crypto::SecretPool::Slot key;
  Access access;
  PrincipalRef account;            // never null
  DatagramShare* share = nullptr;  // of the account
  TakenNumbers taken;
  bool has_proved = false;
  DatagramSource source;
  DatagramRate hellos{kHelloIntervalNs, kHellosAtOnce};
  std::atomic<bool> over{false};
};

/// Counters of all sessions. Thread: any.
struct DatagramCounts {
  std::atomic<std::uint64_t> answered{0};    ///< gets, found or not found
  std::atomic<std::uint64_t> by_ring{0};     ///< gets referred to the rings
  std::atomic<std::uint64_t> challenged{0};  ///< hellos
  std::atomic<std::uint64_t> dropped{0};     ///< got no answer
  std::atomic<std::uint64_t> limited{0};     ///< of the dropped: over the rates
};

/// All datagram sessions of a node.
class DatagramSessions final : public NodePart {
 public:
  /// `port`: the port that receives the datagrams.
  DatagramSessions(const DatagramSource& port, const crypto::SecretBytes& own)
      : port_(port), own_(own) {}

  /// Begins a session, in place of the ring's previous one. `proven`: the key that both ends
  /// derived from their proofs; null: there was no proof. Errors: unsupported (no libcrypto),
  /// system (no random bytes, or no memory for secrets), busy (a session number was drawn twice);
  /// std::bad_alloc. Requires: the connection has an account.
  Result<wire::DatagramOffer> open(Connection& connection, std::uint32_t ring,
                                   const crypto::SecretBytes* proven);
  void close(std::uint64_t number);
  /// Null: there is none, or it has ended.
  [[nodiscard]] std::shared_ptr<DatagramSession> find(std::uint64_t number) const;
  [[nodiscard]] std::size_t size() const;

  /// What a source must echo: unpredictable to others, and the node stores nothing for it. Errors:
  /// unsupported.
  [[nodiscard]] Result<std::array<std::byte, wire::kChallengeBytes>> challenge(
      const DatagramSession& session, const DatagramSource& source) const;

  [[nodiscard]] const DatagramSource& port() const { return port_; }

  DatagramCounts counts;

 private:
  const DatagramSource port_;
  const crypto::SecretBytes own_;  // makes challenges, nothing else
  mutable std::mutex mutex_;       // guards what is below
  std::unordered_map<std::uint64_t, std::shared_ptr<DatagramSession>> sessions_;
  std::shared_ptr<crypto::SecretPool> secrets_ = crypto::SecretPool::make();
};

}  // namespace espalier::offload
