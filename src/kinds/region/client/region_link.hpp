// SPDX-License-Identifier: Apache-2.0
// Direct access of one thread to regions: READs, WRITEs and atomics on a queue pair of its own, by
// keys that the node gave the thread's session.
//
// A failure breaks the pair. Requests in flight may still take effect, so before a region is used
// again the client requests another key for it, and the node revokes the previous one.
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

  // For all of these: `id` is the region's. Errors: not_found (it was dropped); unsupported (the
  // connection has no such pair, or its transport no such atomics) and too_many_participants, after
  // which nothing was done and the caller can send a request to the node instead; connection_lost
  // (a write or an atomic may have been done). Cost: the first time a handshake, and a request for
  // each region. Requires: the range is within the region, and a word is aligned.

  // In pieces; after an error, `offset` and the span describe the rest.

  Result<void> read(RemoteSession& session, std::uint32_t id, std::uint64_t& offset,
                    std::span<std::byte>& into);
  Result<void> write(RemoteSession& session, std::uint32_t id, std::uint64_t& offset,
                     std::span<const std::byte>& from);

  // In a single operation.

  Result<std::uint64_t> fetch_add(RemoteSession& session, std::uint32_t id, std::uint64_t offset,
                                  std::uint64_t amount);
  Result<std::uint64_t> compare_swap(RemoteSession& session, std::uint32_t id, std::uint64_t offset,
                                     const region::RegionSwap& how);

 private:
  struct Known {
    region::RegionGrant grant{};
    bool doubtful = false;  // requests under its key may still take effect
  };
  struct Ended {
    fabric::Status status = fabric::Status::flushed;
    std::uint64_t old_value = 0;
  };

  [[nodiscard]] Result<void> open_link(RemoteSession& session);
  [[nodiscard]] Result<region::RegionGrant> grant_of(RemoteSession& session, std::uint32_t id);
  /// Posts the work request that `made` makes of a key and an address, and waits for its
  /// completion.
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
