// SPDX-License-Identifier: Apache-2.0
// The snapshots that a session holds, by the numbers known to its client.
//
// Thread: that of the session's scheduler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <unordered_map>

#include "engine/principal_accounts.hpp"
#include "engine/session_parts.hpp"
#include "espalier/error.hpp"
#include "kinds/map/offload/snapshot.hpp"

namespace espalier::offload {

class Connection;

/// Number of snapshots that a principal holds over all connections, its own and devices'. Thread:
/// any.
struct SnapshotShare final : AccountPart {
  std::atomic<std::uint32_t> held{0};
};

class HeldSnapshots final : public SessionPart {
 public:
  /// Limit per client.
  static constexpr std::size_t kMost = 64;
  /// Limit per principal, over all its connections, including those to devices.
  static constexpr std::size_t kPrincipalMost = 1024;

  /// The session's snapshots, created on first use.
  [[nodiscard]] static HeldSnapshots& of(Connection& connection);
  HeldSnapshots() = default;
  HeldSnapshots(const HeldSnapshots&) = delete;
  HeldSnapshots& operator=(const HeldSnapshots&) = delete;
  ~HeldSnapshots() override;

  /// Returns the snapshot's number. `whose`: the account charged. For snapshots that a device holds
  /// for its clients only the principal's limit applies, since the device enforces kMost per
  /// client.
  /// Errors: too_many_participants.
  Result<std::uint64_t> hold(std::shared_ptr<HeldSnapshot> snapshot, const PrincipalRef& whose,
                             bool on_behalf = false);
  bool drop(std::uint64_t number);
  /// Null: no snapshot of this number.
  [[nodiscard]] std::shared_ptr<HeldSnapshot> find(std::uint64_t number) const;

 private:
  struct Entry {
    std::shared_ptr<HeldSnapshot> snapshot;
    PrincipalRef account;  // null: never counted
    bool on_behalf = false;
  };
  void uncount(const Entry& kept);

  std::unordered_map<std::uint64_t, Entry> snapshots_;
  std::size_t own_ = 0;  // number of snapshots held for the client itself
  std::uint64_t next_ = 1;
};

}  // namespace espalier::offload
