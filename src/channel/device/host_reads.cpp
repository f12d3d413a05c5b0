// SPDX-License-Identifier: Apache-2.0
#include "channel/device/host_reads.hpp"

namespace espalier::device {

place::ReadPort* HostReads::port(const fabric::RemoteRegion& region) {
  if (failed()) return nullptr;
  if (!port_) {
    port_.emplace(link_->pair(), link_->completions(), region, link_->endpoint().properties());
  }
  return port_->region() == region ? &*port_ : nullptr;
}

// Waiting walks end, and destroying a reader frees memory that its READs write to while others keep
// the pair. So the pair is closed first: no READ arrives after that.
void HostReads::fail() {
  if (!std::exchange(failed_, true)) link_->pair().close();
  if (port_) port_->fail();
}

bool HostReads::failed() const {
  return failed_ || (port_ && port_->failed()) ||
         link_->pair().state() == fabric::QueuePair::State::error;
}

tree::WalkTraffic HostReads::traffic() const {
  return port_ ? port_->traffic() : tree::WalkTraffic{};
}

}  // namespace espalier::device
