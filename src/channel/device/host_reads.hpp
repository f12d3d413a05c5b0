// SPDX-License-Identifier: Apache-2.0
// The queue pair by which one worker of a device reads its host's memory: all kinds that read there
// share it, and its session's key.
//
// Thread: one: that of the worker.
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

  /// The port to this region, which is the same for all objects of a session. Null: the host names
  /// another one now, so what was read is void.
  [[nodiscard]] place::ReadPort* port(const fabric::RemoteRegion& region);
  /// Nothing more can be read, and nothing that was asked for is written here any more.
  void fail();
  [[nodiscard]] bool failed() const;
  /// Whether a READ is done when it has been posted.
  [[nodiscard]] bool reads_end_in_post() const {
    return link_->endpoint().properties().reads_end_in_post;
  }
  /// What was read by it.
  [[nodiscard]] tree::WalkTraffic traffic() const;

 private:
  // It keeps what READs of readers that have ended still write to, so it goes after the link.
  std::optional<place::ReadPort> port_;
  std::unique_ptr<client::SideLink> link_;
  bool failed_ = false;
};

}  // namespace espalier::device
