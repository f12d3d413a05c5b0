// SPDX-License-Identifier: Apache-2.0
// The queue pair by which one worker of a device reads its host's memory. All kinds that read there
// share it, and its session's key.
//
// Thread: that of the worker.
#pragma once

#include <memory>
#include <optional>
#include <utility>

#include "channel/rings/side_link.hpp"
#include "reach/read_port.hpp"

namespace espalier::device {

class HostReads {
 public:
  explicit HostReads(std::unique_ptr<client::SideLink> link) : link_(std::move(link)) {}
  HostReads(const HostReads&) = delete;
  HostReads& operator=(const HostReads&) = delete;

  /// The port to this region, which is the same for all objects of a session. Null: the host now
  /// names another region, so all that was read is void.
  [[nodiscard]] place::ReadPort* port(const fabric::RemoteRegion& region);
  /// Ends all reads: from here on nothing can be read, and no READ in flight writes to this memory.
  void fail();
  [[nodiscard]] bool failed() const;
  /// Whether a READ has completed when post returns.
  [[nodiscard]] bool reads_end_in_post() const {
    return link_->endpoint().properties().reads_end_in_post;
  }
  /// The traffic of its reads.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  // Keeps the memory that READs of destroyed readers still write to, so it outlives their link's
  // pair.
  std::optional<place::ReadPort> port_;
  std::unique_ptr<client::SideLink> link_;
  bool failed_ = false;
};

}  // namespace espalier::device
