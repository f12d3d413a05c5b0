// SPDX-License-Identifier: Apache-2.0
// The snapshots that a session holds, by the numbers that its client knows.
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

/// How many a principal holds, at whatever connection, its own or a device's. Thread: any.
struct SnapshotShare final : AccountPart {
  std::atomic<std::uint32_t> held{0};
};

class HeldSnapshots final : public SessionPart {
 public:
  /// Most that one client may hold.
  static constexpr std::size_t kMost = 64;
  /// Most that one principal may hold, by all its connections, those to devices included.
  static constexpr std::size_t kPrincipalMost = 1024;

  /// The session's, made when first asked for.
  [[nodiscard]] static HeldSnapshots& of(Connection& connection);
  HeldSnapshots() = default;
  HeldSnapshots(const HeldSnapshots&) = delete;
  HeldSnapshots& operator=(const HeldSnapshots&) = delete;
  ~HeldSnapshots() override;

  /// Returns its number. `whose`: on whose account. Of those that a device holds for its clients,
  /// of which it lets each have kMost, only the principal's are limited here.
  /// Errors: too_many_participants.
  Result<std::uint64_t> hold(std::shared_ptr<HeldSnapshot> snapshot, const PrincipalRef& whose,
                             bool on_behalf = false);
  bool drop(std::uint64_t number);
  /// Null: it holds none of this number.
  [[nodiscard]] std::shared_ptr<HeldSnapshot> find(std::uint64_t number) const;

 private:
  struct Entry {
    std::shared_ptr<HeldSnapshot> snapshot;
    PrincipalRef account;  // null: it was never counted
    bool on_behalf = false;
  };
  void uncount(const Entry& kept);

  std::unordered_map<std::uint64_t, Entry> snapshots_;
  std::size_t own_ = 0;  // those that it holds for itself
  std::uint64_t next_ = 1;
};

}  // namespace espalier::offload
