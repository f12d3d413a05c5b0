// SPDX-License-Identifier: Apache-2.0
// Among whom a node's resources are shared: principals, each with one account for the whole node.
//
// A principal is a secret, by its name; else a user of this machine; else an address. So a client
// gets no more of a node by connecting more often, by other ways, or to other workers:
//
//   secret alice          whoever has proven this secret, from wherever
//   user 1000             whoever comes by unix:, shm: or memif, as the system says who that is
//   address 192.0.2.1     who comes by a network and proves nothing: its place (peer_sources.hpp)
//
// For what a device relays on behalf of its client (wire/principal.hpp) it is that client; of those
// that have no name at the device, all together are the device itself.
//
// A connection keeps its account from its beginning to its end, so that nothing is looked up for a
// request. An account that nobody keeps any more is forgotten, but not at once: a client that
// comes again a moment later has it still, with what it owes.
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

/// Its jobs of helpers. Guarded by the pool's lock.
struct HelperShare {
  FairQueue::Group group;
  std::uint32_t jobs = 0;
};

/// What a node keeps of one principal. What kinds share among principals lies in parts of theirs.
struct PrincipalAccount {
  PrincipalAccount(std::string name_in, std::uint64_t number_in)
      : name(std::move(name_in)), number(number_in) {}
  PrincipalAccount(const PrincipalAccount&) = delete;
  PrincipalAccount& operator=(const PrincipalAccount&) = delete;

  const std::string name;      ///< as above; for operators, too
  const std::uint64_t number;  ///< given to no other account of the node
  HelperShare helpers;
  AccountParts parts;

  /// Connections of it, by whatever way. Under the lock of ConnectionLimits.
  struct Connections {
    std::uint32_t count = 0;
    std::uint64_t ring_bytes = 0;
  } connections;
  /// Requests of it that wait for other nodes. Any thread.
  std::atomic<std::uint32_t> peer_waits{0};
};

[[nodiscard]] std::string principal_of_secret(std::string_view name);
[[nodiscard]] std::string principal_of_user(std::uint32_t user);
/// Of who comes through a fabric and proves nothing: `peer` is what the transport calls it, with
/// its user where it knows one ("process 12 of user 1000").
[[nodiscard]] std::string principal_of_peer(std::string_view peer);
/// Of a name that a device tells; empty: it has none of its own.
[[nodiscard]] std::string principal_on_behalf(std::string_view name);

class PrincipalAccounts {
 public:
  /// Accounts that nobody keeps are forgotten when there are so many, or twice as many as were left
  /// the last time.
  static constexpr std::size_t kKept = 1024;
  /// Beyond this all who come have one account together.
  static constexpr std::size_t kMost = 65536;

  PrincipalAccounts() = default;
  PrincipalAccounts(const PrincipalAccounts&) = delete;
  PrincipalAccounts& operator=(const PrincipalAccounts&) = delete;

  /// The account of this principal, made when first asked for. Cost: a lock and a look-up.
  /// Errors: std::bad_alloc.
  [[nodiscard]] PrincipalRef of(std::string_view name);
  /// All that there are, forgotten soon or not. For operators.
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
