// SPDX-License-Identifier: Apache-2.0
// Implementation of Region: one object, reached by a channel. A region of this process is accessed
// directly; on a node the thread accesses it itself if its connection supports that, else by
// requests (region_link.hpp).
//
// Thread: any.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "channel/interface.hpp"
#include "channel/reached_object.hpp"
#include "espalier/region.hpp"

namespace espalier::region {
class RegionObject;
}

namespace espalier::client {

class RemoteSessions;

/// One region. Errors as in Region.
class RegionImpl final : public Interface {
 public:
  using Object = channel::Reached<region::RegionObject>;

  RegionImpl(std::shared_ptr<channel::Channel> channel, Object object, std::uint64_t bytes);
  static Region handle(std::shared_ptr<RegionImpl> impl) { return Region(std::move(impl)); }

  [[nodiscard]] const std::string& name() const { return object_.name(); }
  [[nodiscard]] std::uint64_t bytes() const { return bytes_; }

  Result<void> read(std::uint64_t offset, std::span<std::byte> into) const;
  Result<void> write(std::uint64_t offset, std::span<const std::byte> from) const;
  Result<std::uint64_t> fetch_add(std::uint64_t offset, std::uint64_t amount) const;
  Result<std::uint64_t> compare_swap(std::uint64_t offset, std::uint64_t compare,
                                     std::uint64_t swap) const;

 private:
  /// The result of `use` on the link of this thread's session; an error that makes the caller send
  /// a request instead if there is no link.
  template <class Use>
  auto by_link(const Use& use) const;
  [[nodiscard]] Result<void> read_by_asking(std::uint64_t offset, std::span<std::byte> into) const;
  [[nodiscard]] Result<void> write_by_asking(std::uint64_t offset,
                                             std::span<const std::byte> from) const;

  const std::shared_ptr<channel::Channel> channel_;  // before the object, whose memory it keeps
  const std::shared_ptr<RemoteSessions> sessions_;   // null: a region of this process
  const Object object_;
  const std::uint64_t bytes_;
};

// The regions of a store. Returned ones are never null. Errors: see Store.
Result<std::shared_ptr<RegionImpl>> create_region(const std::shared_ptr<channel::Channel>& channel,
                                                  std::string_view name, std::uint64_t bytes);
Result<std::shared_ptr<RegionImpl>> open_region(const std::shared_ptr<channel::Channel>& channel,
                                                std::string_view name);
Result<std::vector<RegionDescription>> list_regions(channel::Channel& channel);

}  // namespace espalier::client
