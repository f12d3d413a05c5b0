// SPDX-License-Identifier: Apache-2.0
// How many connections a node has, and what their rings take: in all, and of each principal.
//
// Served first come first served, all would be that principal's who connects most. So one has half
// of the places and of the memory of rings at most, and of both some is kept for those who run the
// node: its own user and root, and secrets of the role admin. These have no part of their own, for
// they may do all anyway.
//
// A ring's memory counts as it is laid out, not as it is touched: a client that maps it may touch
// all of it at any time, and nothing can be refused then. So the more is taken, the smaller are the
// rings of who comes, where those can be had smaller than was asked: one connection has a sixteenth
// of what is left at most.
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
  std::uint32_t principal_max = 0;  ///< connections of one; 0: half of all
  std::uint64_t ring_bytes_max = std::uint64_t{1} << 40;
};

class ConnectionLimits {
 public:
  /// Of the places and of the memory of rings, one in so many is kept for those who run the node.
  static constexpr std::uint32_t kReserve = 16;
  static constexpr std::uint32_t kReserveMax = 64;  ///< places
  static constexpr std::uint64_t kRingBytesLeast = std::uint64_t{32} << 20;
  /// One connection has one in so many parts of what is left of the memory of rings.
  static constexpr std::uint32_t kRingPart = 16;

  /// Of so many places, those that are kept.
  [[nodiscard]] static std::uint32_t kept_of(std::uint32_t places) {
    return std::min(kReserveMax, places / kReserve);
  }

  /// What rings may take of a node whose store may take `memory_bytes`, where nothing else is said:
  /// a quarter of that, but enough for a hundred clients with small rings where that is little.
  [[nodiscard]] static std::uint64_t default_ring_bytes(std::uint64_t memory_bytes) {
    return std::max(kRingBytesLeast, memory_bytes / 4);
  }

  explicit ConnectionLimits(const ConnectionLimitsOptions& options = {}) : options_(options) {}
  ConnectionLimits(const ConnectionLimits&) = delete;
  ConnectionLimits& operator=(const ConnectionLimits&) = delete;

  /// Before anybody comes.
  void set(const ConnectionLimitsOptions& options) { options_ = options; }

  /// Takes a place for a connection with these rings. `runs_node`: it is one of those for whom some
  /// are kept. Errors: too_many_participants (detail: how many there may be), out_of_memory
  /// (detail: MiB that rings may take).
  Result<ConnectionPlace> take(const PrincipalRef& account, bool runs_node,
                               const wire::ConnectionLayout& layout);
  /// The same with smaller rings where there is too little memory for these, or where they would be
  /// more than one connection's part.
  Result<ConnectionPlace> take_smaller(const PrincipalRef& account, bool runs_node,
                                       wire::ConnectionLayout& layout);

  struct Numbers {
    std::uint64_t connections = 0;
    std::uint64_t connections_max = 0;
    std::uint64_t principal_max = 0;
    std::uint64_t ring_bytes = 0;
    std::uint64_t ring_bytes_max = 0;
    std::uint64_t principal_ring_bytes_max = 0;
    std::uint64_t kept = 0;     ///< places, for those who run the node
    std::uint64_t refused = 0;  ///< for the part of their principal, or what is kept for others
  };
  [[nodiscard]] Numbers numbers() const;
  /// What this one has.
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
