// SPDX-License-Identifier: Apache-2.0
// The regions that one session may READ, WRITE and modify directly, each by a key of its own.
//
// A key is valid until its session ends or requests another one, or the region is dropped.
// Requesting another key guarantees that no request under the previous one can take effect any
// more.
//
// Thread: that of the scheduler.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <unordered_map>
#include <utility>

#include "engine/account_parts.hpp"
#include "engine/principal_ref.hpp"
#include "engine/session_parts.hpp"
#include "fabric/region_table.hpp"
#include "kinds/region/region_object.hpp"

namespace espalier::offload {

class Connection;

/// Number of keys of regions that a principal's sessions have. Thread: any.
struct RegionShare final : AccountPart {
  std::atomic<std::uint32_t> keys{0};
};

class RegionHost final : public SessionPart {
 public:
  /// The session's host, created on first use; null: its connection cannot write.
  [[nodiscard]] static RegionHost* of(Connection& connection);
  /// Limit on the regions of one session, without dropped ones.
  static constexpr std::uint32_t kRegionsMax = 64;
  /// Limit on those of all sessions of one principal, so that it leaves room for others.
  static constexpr std::uint32_t kPrincipalMax = 1024;
  /// Limit on those of all sessions of the process: each key takes a descriptor, and a slot of its
  /// endpoint, which other uses need.
  static constexpr std::uint32_t kProcessMax = 4096;
  /// How many there are.
  [[nodiscard]] static std::atomic<std::uint32_t>& keys_of_process();

  /// `regions`, `domain`: of the endpoint and the queue pairs of the session; they outlive this.
  /// `atomics`: the fabric's atomics are coherent with the processor's. `maps_memory`: peers map
  /// what they access, which is refused for the file of a persistent region. `account`: of the
  /// session's principal.
  RegionHost(fabric::RegionTable& regions, fabric::Domain domain, bool atomics, bool maps_memory,
             PrincipalRef account)
      : regions_(regions),
        domain_(domain),
        atomics_(atomics),
        maps_memory_(maps_memory),
        account_(std::move(account)) {}
  RegionHost(const RegionHost&) = delete;
  RegionHost& operator=(const RegionHost&) = delete;

  /// The session's key of a region. `another`: revokes the previous one, if any.
  /// Cost: a registration, if there is none. Errors: those of RegionObject::offer;
  /// too_many_participants; unsupported (it keeps its bytes, and the session maps memory).
  Result<region::RegionGrant> open(region::RegionObject& of, bool another);
  void end() override { keys_.clear(); }

 private:
  [[nodiscard]] region::RegionGrant grant_of(const region::RegionKey& key,
                                             const region::RegionObject& of) const;
  /// Atomics of a fabric are stores through the cache.
  [[nodiscard]] bool lets_add(const region::RegionObject& of) const {
    return atomics_ && !of.is_persistent();
  }

  fabric::RegionTable& regions_;
  const fabric::Domain domain_;
  const bool atomics_;
  const bool maps_memory_;
  const PrincipalRef account_;
  std::unordered_map<std::uint32_t, region::RegionKey> keys_;  // by the region's id
};

}  // namespace espalier::offload
