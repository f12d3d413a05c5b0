// SPDX-License-Identifier: Apache-2.0
// Sessions of datagrams (wire/datagram.hpp), as a node knows them: each belongs to one response
// ring of a client's connection, and ends with it.
//
// What never happens
// - Nothing is sent to an address that the session has not proved but one challenge for each hello,
//   which is no longer than the hello.
// - A number below one that was seen kSeenNumbers ago is taken for none, and one is taken
//   kRepeatsMax times at most: so what a datagram costs, and what it has sent to the address that
//   was proved, is bounded however often it is replayed.
// - A session has more of the reader's time, or more challenges sent, than its rates say.
//
// Thread: any; of one session all but its end one thread at a time, the reader of datagrams.
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
#include "engine/node_parts.hpp"
#include "fabric/roce/port.hpp"
#include "wire/datagram.hpp"

namespace espalier::offload {

class Connection;

/// Where a datagram came from.
using DatagramSource = fabric::roce::PortAddress;

/// How often each of the newest numbers of a session was taken.
class TakenNumbers {
 public:
  static constexpr std::uint64_t kSeenNumbers = 64;
  static constexpr std::uint8_t kRepeatsMax = 8;

  /// Returns whether it may be taken once more.
  [[nodiscard]] bool take(std::uint64_t number);
  /// Only one that is greater than all before it, as of what changes the session.
  [[nodiscard]] bool take_new(std::uint64_t number) { return number > newest_ && take(number); }

 private:
  std::uint64_t newest_ = 0;
  std::array<std::uint8_t, kSeenNumbers> times_{};  // by number
};

/// How often something may be done in the long run, and how often at once.
class DatagramRate {
 public:
  constexpr DatagramRate(std::uint64_t interval_ns, std::uint64_t at_once)
      : interval_ns_(interval_ns), most_ns_(interval_ns * at_once) {}
  /// Returns whether it may be done now; then it counts.
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

struct DatagramSession {
  /// Of gets: more than one client asks for that has few in flight.
  static constexpr std::uint64_t kGetIntervalNs = 5'000;
  static constexpr std::uint64_t kGetsAtOnce = 256;
  /// Of hellos and proofs: so what is sent to addresses that are not proved is little.
  static constexpr std::uint64_t kHelloIntervalNs = 50'000'000;
  static constexpr std::uint64_t kHellosAtOnce = 16;

  std::uint64_t number = 0;
  crypto::SecretPool::Slot key;
  Access access;
  TakenNumbers taken;
  bool has_proved = false;
  DatagramSource source;
  DatagramRate gets{kGetIntervalNs, kGetsAtOnce};
  DatagramRate hellos{kHelloIntervalNs, kHellosAtOnce};
  std::atomic<bool> over{false};
};

/// Numbers about all of them. Thread: any.
struct DatagramCounts {
  std::atomic<std::uint64_t> answered{0};    ///< gets, with what was found or that nothing was
  std::atomic<std::uint64_t> by_ring{0};     ///< gets that were sent to the rings
  std::atomic<std::uint64_t> challenged{0};  ///< hellos
  std::atomic<std::uint64_t> dropped{0};     ///< that were answered nothing
  std::atomic<std::uint64_t> limited{0};     ///< of those, for their session had sent too many
};

/// What a node that takes datagrams keeps.
class DatagramSessions final : public NodePart {
 public:
  /// Of the port at which they are taken.
  DatagramSessions(const DatagramSource& port, const crypto::SecretBytes& own)
      : port_(port), own_(own) {}

  /// Begins one, in place of that which the ring had before. `proven`: the key that both ends of
  /// the connection have drawn out of what they have proven; null: nothing was.
  /// Errors: unsupported (no libcrypto), system (no random bytes, or no memory for secrets), busy
  /// (a number was drawn twice).
  Result<wire::DatagramOffer> open(Connection& connection, std::uint32_t ring,
                                   const crypto::SecretBytes* proven);
  void close(std::uint64_t number);
  /// Null: there is none, or no longer.
  [[nodiscard]] std::shared_ptr<DatagramSession> find(std::uint64_t number) const;
  /// How many there are.
  [[nodiscard]] std::size_t size() const;

  /// What a source must say again: nobody else can work it out, and nothing need be kept for it.
  /// Errors: unsupported.
  [[nodiscard]] Result<std::array<std::byte, wire::kChallengeBytes>> challenge(
      const DatagramSession& session, const DatagramSource& source) const;

  [[nodiscard]] const DatagramSource& port() const { return port_; }

  DatagramCounts counts;

 private:
  const DatagramSource port_;
  const crypto::SecretBytes own_;  // makes challenges; good for nothing else
  mutable std::mutex mutex_;       // guards what is below
  std::unordered_map<std::uint64_t, std::shared_ptr<DatagramSession>> sessions_;
  std::shared_ptr<crypto::SecretPool> secrets_ = crypto::SecretPool::make();
};

}  // namespace espalier::offload
