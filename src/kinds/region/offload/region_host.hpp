// SPDX-License-Identifier: Apache-2.0
// The regions that one session may READ, WRITE and change by itself, each by a key of its own.
//
// A key is good until its session ends, asks for another, or the region is dropped. By another key
// a session is sure that nothing which left by the one before can take effect any more.
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

/// Keys of regions that a principal's sessions have. Thread: any.
struct RegionShare final : AccountPart {
  std::atomic<std::uint32_t> keys{0};
};

class RegionHost final : public SessionPart {
 public:
  /// The session's, made when first asked for; null: by its connection nothing can be written.
  [[nodiscard]] static RegionHost* of(Connection& connection);
  /// Regions of one session at a time, those that were dropped not counted.
  static constexpr std::uint32_t kRegionsMax = 64;
  /// The same of all sessions of one principal, so that it does not take the places of others.
  static constexpr std::uint32_t kPrincipalMax = 1024;
  /// The same of all sessions of the process: each key takes a descriptor, and a place of its
  /// endpoint's, which other things need.
  static constexpr std::uint32_t kProcessMax = 4096;

  /// `regions`, `domain`: of the endpoint and the queue pairs of the session; they outlive this.
  /// `atomics`: those of the fabric are of one unit with the processor's. `maps_memory`: its peers
  /// do, which a file's is not for. `account`: of the
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

  /// The session's key of a region. `another`: the one before, if there is one, is revoked.
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
