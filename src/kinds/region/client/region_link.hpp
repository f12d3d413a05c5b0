// SPDX-License-Identifier: Apache-2.0
// Regions that one thread reads and writes by itself: READs, WRITEs and atomics through a pair of
// its own, by keys that the node gave the thread's session.
//
// A failure ends the pair. What left by it may yet take effect, so before a region is used again
// the node is asked for another key of it, and revokes the one before.
//
// Thread: one at a time: that of the rings.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <unordered_map>

#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/side_link.hpp"
#include "kinds/region/format.hpp"

namespace espalier::client {

struct RemoteSession;

class RegionLink final : public LanePart {
 public:
  RegionLink() = default;
  RegionLink(const RegionLink&) = delete;
  RegionLink& operator=(const RegionLink&) = delete;

  // Of all these: `id`, the region's. Errors: not_found (it was dropped); unsupported (the
  // connection has no such pair, or its transport no such atomics) and too_many_participants, with
  // which nothing more was done, and the node can be asked in place; connection_lost (a write or an
  // atomic may have been done). Cost: the first time a handshake, and a request for each region.
  // Requires: the place is within the region, and a word's is aligned.

  // By pieces; whatever becomes of it, `offset` and the span are then those of what is left.

  Result<void> read(RemoteSession& session, std::uint32_t id, std::uint64_t& offset,
                    std::span<std::byte>& into);
  Result<void> write(RemoteSession& session, std::uint32_t id, std::uint64_t& offset,
                     std::span<const std::byte>& from);

  // At once.

  Result<std::uint64_t> fetch_add(RemoteSession& session, std::uint32_t id, std::uint64_t offset,
                                  std::uint64_t amount);
  Result<std::uint64_t> compare_swap(RemoteSession& session, std::uint32_t id, std::uint64_t offset,
                                     const region::RegionSwap& how);

 private:
  struct Known {
    region::RegionGrant grant{};
    bool doubtful = false;  // what left by its key may take effect yet
  };
  struct Ended {
    fabric::Status status = fabric::Status::flushed;
    std::uint64_t old_value = 0;
  };

  [[nodiscard]] Result<void> open_link(RemoteSession& session);
  [[nodiscard]] Result<region::RegionGrant> grant_of(RemoteSession& session, std::uint32_t id);
  /// Posts what `made` makes of a key and an address, until its end is known.
  template <class Make>
  [[nodiscard]] Result<std::uint64_t> run(RemoteSession& session, std::uint32_t id,
                                          std::uint64_t offset, const Make& made);
  [[nodiscard]] Ended post(const fabric::WorkRequest& request);
  void give_up_link();

  std::unique_ptr<SideLink> link_;
  bool has_none_ = false;                           // the connection has no such pair
  std::unordered_map<std::uint32_t, Known> known_;  // by the region's id
  std::uint64_t posted_ = 0;
};

}  // namespace espalier::client
