// SPDX-License-Identifier: Apache-2.0
// Accounts among which a node's resources are shared: one for each principal, for the whole node.
//
// A principal is a secret, by its name; else a user of this machine; else an address. So a client
// gets no more of a node by connecting more often, by other ways, or to other workers:
//
//   secret alice          a client that has proven this secret, from any address
//   user 1000             a client by unix:, shm: or memif, as identified by the system
//   address 192.0.2.1     a client over a network without a proof: its source (peer_sources.hpp)
//
// A request that a device relays on behalf of its client (wire/principal.hpp) is charged to that
// client; clients without a name at the device are charged to the device itself.
//
// A connection keeps its account from its beginning to its end, so no request needs a lookup. An
// unreferenced account is removed, but only later: a client that reconnects shortly after still has
// it, with its debt.
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/account_parts.hpp"
#include "engine/fair_queue.hpp"
#include "engine/principal_ref.hpp"

namespace espalier::offload {

/// The principal's helper jobs. Guarded by the pool's lock.
struct HelperShare {
  FairQueue::Group group;
  std::uint32_t jobs = 0;
};

/// A node's account of one principal. `parts` has what kinds share among principals.
struct PrincipalAccount {
  PrincipalAccount(std::string name_in, std::uint64_t number_in)
      : name(std::move(name_in)), number(number_in) {}
  PrincipalAccount(const PrincipalAccount&) = delete;
  PrincipalAccount& operator=(const PrincipalAccount&) = delete;

  const std::string name;      ///< as above; also for operators
  const std::uint64_t number;  ///< unique within the node
  HelperShare helpers;
  AccountParts parts;

  /// Its connections of all transports. Guarded by the lock of ConnectionLimits.
  struct Connections {
    std::uint32_t count = 0;
    std::uint64_t ring_bytes = 0;
  } connections;
  /// Its requests that wait for other nodes. Thread: any.
  std::atomic<std::uint32_t> peer_waits{0};
};

[[nodiscard]] std::string principal_of_secret(std::string_view name);
[[nodiscard]] std::string principal_of_user(std::uint32_t user);
/// For a client over a fabric without a proof: `peer` is the transport's name of it, with its user
/// if known ("process 12 of user 1000").
[[nodiscard]] std::string principal_of_peer(std::string_view peer);
/// For a name that a device reports; empty: it has none of its own.
[[nodiscard]] std::string principal_on_behalf(std::string_view name);

class PrincipalAccounts {
 public:
  /// Unreferenced accounts are removed when there are so many, or twice as many as were left the
  /// last time.
  static constexpr std::size_t kKept = 1024;
  /// Beyond so many, all further principals share one account.
  static constexpr std::size_t kMost = 65536;

  PrincipalAccounts() = default;
  PrincipalAccounts(const PrincipalAccounts&) = delete;
  PrincipalAccounts& operator=(const PrincipalAccounts&) = delete;

  /// The account of this principal, created on first use. Cost: a lock and a lookup. Errors:
  /// std::bad_alloc.
  [[nodiscard]] PrincipalRef of(std::string_view name);
  /// All accounts, unreferenced ones included. For operators.
  [[nodiscard]] std::vector<PrincipalRef> all() const;
  [[nodiscard]] std::size_t size() const;

 private:
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view name) const {
      return std::hash<std::string_view>()(name);
    }
  };
  void forget_unused();

  mutable std::mutex mutex_;
  std::unordered_map<std::string, PrincipalRef, Hash, std::equal_to<>> accounts_;
  PrincipalRef others_;
  std::size_t forget_at_ = kKept;
  std::uint64_t last_number_ = 0;
};

}  // namespace espalier::offload
