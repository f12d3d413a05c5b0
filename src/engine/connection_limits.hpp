// SPDX-License-Identifier: Apache-2.0
// Limits on a node's connections and on the memory of their rings: in total, and per principal.
//
// Without a limit per principal, the one that connects most would take everything. So one principal
// has at most half of the places and of the ring memory. Of both, a reserve is kept for the clients
// that run the node: its own user, root, and secrets of the role admin. These have no limit per
// principal, since they may do everything anyway.
//
// A ring's memory counts in full when it is laid out: a client that maps it may touch all of it at
// any time, and nothing can be refused then. As memory fills up, a new connection gets smaller
// rings where the request permits that: one connection has at most a sixteenth of what is left.
//
// Thread: any.
#pragma once

#include <algorithm>
#include <cstdint>
#include <mutex>

#include "engine/connection_place.hpp"
#include "engine/principal_accounts.hpp"
#include "espalier/error.hpp"
#include "wire/ring.hpp"

namespace espalier::offload {

struct ConnectionLimitsOptions {
  std::uint32_t connections_max = 10'000;
  std::uint32_t principal_max = 0;  ///< connections of one principal; 0: half of all
  std::uint64_t ring_bytes_max = std::uint64_t{1} << 40;
};

class ConnectionLimits {
 public:
  /// One in so many places, and of the ring memory, is reserved for clients that run the node.
  static constexpr std::uint32_t kReserve = 16;
  static constexpr std::uint32_t kReserveMax = 64;  ///< places
  static constexpr std::uint64_t kRingBytesLeast = std::uint64_t{32} << 20;
  /// One connection gets at most this fraction of the ring memory that is left.
  static constexpr std::uint32_t kRingPart = 16;

  /// How many of so many places are reserved.
  [[nodiscard]] static std::uint32_t kept_of(std::uint32_t places) {
    return std::min(kReserveMax, places / kReserve);
  }

  /// The default limit on ring memory of a node whose store may take `memory_bytes`: a quarter of
  /// that, but at least enough for a hundred clients with small rings.
  [[nodiscard]] static std::uint64_t default_ring_bytes(std::uint64_t memory_bytes) {
    return std::max(kRingBytesLeast, memory_bytes / 4);
  }

  explicit ConnectionLimits(const ConnectionLimitsOptions& options = {}) : options_(options) {}
  ConnectionLimits(const ConnectionLimits&) = delete;
  ConnectionLimits& operator=(const ConnectionLimits&) = delete;

  /// Requires: no connection has been taken yet.
  void set(const ConnectionLimitsOptions& options) { options_ = options; }

  /// Takes a place for a connection with these rings. `runs_node`: it may use the reserve. Errors:
  /// too_many_participants (detail: the limit), out_of_memory (detail: the limit on ring memory in
  /// MiB).
  Result<ConnectionPlace> take(const PrincipalRef& account, bool runs_node,
                               const wire::ConnectionLayout& layout);
  /// The same with smaller rings where there is too little memory for these, or where they would
  /// exceed one connection's fraction.
  Result<ConnectionPlace> take_smaller(const PrincipalRef& account, bool runs_node,
                                       wire::ConnectionLayout& layout);

  struct Numbers {
    std::uint64_t connections = 0;
    std::uint64_t connections_max = 0;
    std::uint64_t principal_max = 0;
    std::uint64_t ring_bytes = 0;
    std::uint64_t ring_bytes_max = 0;
    std::uint64_t principal_ring_bytes_max = 0;
    std::uint64_t kept = 0;     ///< reserved places
    std::uint64_t refused = 0;  ///< by the principal's limit, or by the reserve
  };
  [[nodiscard]] Numbers numbers() const;
  /// What this principal has taken.
  [[nodiscard]] PrincipalAccount::Connections taken_by(const PrincipalAccount& account) const;

 private:
  friend class ConnectionPlace;
  [[nodiscard]] std::uint32_t principal_max() const;
  [[nodiscard]] std::uint64_t ring_bytes_left(const PrincipalAccount& account,
                                              bool runs_node) const;
  void give(PrincipalAccount& account, std::uint64_t ring_bytes);

  ConnectionLimitsOptions options_;
  mutable std::mutex mutex_;  // guards all below, and ConnectionsOfOne of all accounts
  std::uint32_t connections_ = 0;
  std::uint64_t ring_bytes_ = 0;
  std::uint64_t refused_ = 0;
};

}  // namespace espalier::offload
