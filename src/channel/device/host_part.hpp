// SPDX-License-Identifier: Apache-2.0
// What a kind keeps with one link to a device's host, for what it reads of the host's memory by
// itself. The link says by what there is to ask and to read, and gives it its turns; which kinds
// have a part is registered in kinds/at_device.cpp.
//
// Thread: that of the link's worker.
#pragma once

#include <cstdint>
#include <memory>

namespace espalier::device {

class HostAsker;
class HostReads;

class HostPart {
 public:
  virtual ~HostPart() = default;
  HostPart(const HostPart&) = delete;
  HostPart& operator=(const HostPart&) = delete;

  /// By what the host is asked from here on, which outlives the next call; null: it is gone.
  virtual void ask_by(HostAsker* asker) = 0;
  /// By what is read from here on. Objects that are open by something else stay as they are.
  virtual void read_by(std::shared_ptr<HostReads> reads) = 0;
  /// What is read ends.
  virtual void stop_reading() = 0;
  /// Lets go of reads that failed, and keeps leases.
  virtual void turn(std::uint64_t now_ns) = 0;
  /// Whether there may be leases to keep.
  [[nodiscard]] virtual bool has_leases() const = 0;
  /// Tells what was read since it last did.
  virtual void count() = 0;

 protected:
  HostPart() = default;
};

}  // namespace espalier::device
