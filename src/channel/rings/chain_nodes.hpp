// SPDX-License-Identifier: Apache-2.0
// The nodes of a chain: those that an address names, or those that etcd names, which is asked when
// none is known and when none of the known ones serves (docs/design/chains.md#clients).
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
  /// Requires: some.
  explicit ChainNodes(std::vector<OneAddress> nodes);
  explicit ChainNodes(chain::EtcdPlace place);

  /// Those known at one moment. They do not change.
  struct Known {
    std::vector<OneAddress> nodes;
    /// With which the next search for the head begins, if it is less than their number.
    std::atomic<std::size_t> next{0};
  };
  /// Never null; without nodes before etcd was first asked.
  [[nodiscard]] std::shared_ptr<Known> known() const;
  /// Whether there is an etcd to ask.
  [[nodiscard]] bool is_in_etcd() const { return place_.has_value(); }
  /// As is_far(), of the farthest one; nodes that etcd will name count as far.
  [[nodiscard]] bool is_far() const;

  /// Asks etcd, and knows its answer from then on; after a failure what was known before. Of several
  /// threads one asks. Cost: blocks, at most until `until_ns` of base::monotonic_ns(), or that of
  /// the thread that asks. Errors: no_chain (detail: a ChainFault). Requires: is_in_etcd().
  Result<void> ask(std::uint64_t until_ns);

 private:
  Result<std::vector<OneAddress>> ask_etcd(std::uint64_t until_ns);

  const std::optional<chain::EtcdPlace> place_;
  std::mutex asking_;                            // held while etcd is asked; taken before mutex_
  std::unique_ptr<chain::EtcdMembership> etcd_;  // guarded by asking_; null: not asked yet
  mutable std::mutex mutex_;
  std::shared_ptr<Known> known_;  // guarded by mutex_
};

}  // namespace espalier::client
