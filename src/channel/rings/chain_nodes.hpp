// SPDX-License-Identifier: Apache-2.0
// The nodes of a chain: those that an address names, or those that etcd names, which is asked when
// none is known and when none of the others serves (docs/design/chains.md#clients).
//
// Thread: any.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <optional>
#include <vector>

#include "chain/membership/etcd_membership.hpp"
#include "channel/rings/node_address.hpp"
#include "channel/rings/node_connection.hpp"

namespace espalier::client {

/// Why etcd names no nodes: the detail of an error with Code::no_chain. The first ones are
/// chain::EtcdFault's.
enum class ChainFault : std::uint32_t {
  unavailable = 1,
  refused = 2,
  strange = 3,
  no_library = 4,
  no_chain = 5,      ///< there is no such key
  no_addresses = 6,  ///< no member has an address for clients, of a form that this version knows
  access_file = 7,   ///< the file that ESPALIER_ETCD_FILE names is of no use
};

class ChainNodes {
 public:
  /// Between two requests to etcd.
  static constexpr std::uint64_t kAskPauseNs = 250'000'000;

  /// Requires: some.
  explicit ChainNodes(std::vector<OneAddress> nodes);
  explicit ChainNodes(chain::EtcdPlace place);

  using Known = std::shared_ptr<const std::vector<OneAddress>>;
  /// Those to try, one after the other, and then again those at the beginning.
  struct Turn {
    Known nodes;            ///< never null
    std::size_t first = 0;  ///< of these
    std::size_t count = 0;
  };
  /// All nodes: while a connection that one of them accepted lasts that one first, and last once
  /// it is lost. `is_first`, of a search: where etcd may know others, that one is left out then,
  /// for it may accept clients although it is the head no more.
  [[nodiscard]] Turn turn(bool is_first) const;
  /// One of a turn's nodes has accepted a client.
  void accepted(const Turn& turn, std::size_t place,
                const std::shared_ptr<NodeConnection>& connection);

  /// Whether there is an etcd to ask.
  [[nodiscard]] bool is_in_etcd() const { return place_.has_value(); }
  /// Whether the last request to it is long enough ago.
  [[nodiscard]] bool may_ask() const;
  /// Asks etcd, and knows its answer from then on; after a failure what was known before. One of
  /// several threads asks; where that failed, the others, and those that come within kAskPauseNs,
  /// get its error. Cost: blocks, at most until `until_ns` of base::monotonic_ns(), or that
  /// of the thread that asks. Errors: no_chain (detail: a ChainFault). Requires: is_in_etcd().
  Result<void> ask(std::uint64_t until_ns);

  /// As is_far(), of the farthest one; nodes that etcd will name count as far.
  [[nodiscard]] bool is_far() const;

 private:
  [[nodiscard]] Known known() const;
  Result<std::vector<OneAddress>> ask_etcd(std::uint64_t until_ns);

  const std::optional<chain::EtcdPlace> place_;
  std::mutex asking_;                            // held while etcd is asked; taken before mutex_
  std::unique_ptr<chain::EtcdMembership> etcd_;  // guarded by asking_; null: not asked yet
  std::optional<Error> failed_;                  // guarded by asking_: why it failed last
  std::atomic<std::uint64_t> may_ask_ns_{0};
  mutable std::mutex mutex_;  // guards all below
  Known known_;
  std::optional<std::size_t> last_;                // that accepted a client; none: none of these
  std::weak_ptr<NodeConnection> last_connection_;  // which that was
};

}  // namespace espalier::client
