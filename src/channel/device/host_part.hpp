// SPDX-License-Identifier: Apache-2.0
// A kind's state for one link to a device's host, with which the kind reads the host's memory. The
// link provides the means to call and to read, and calls turn(); kinds/at_device.cpp registers the
// kinds that have a part.
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

  /// Sets the means to call the host, which stays valid until the next call of this; null: the host
  /// is gone.
  virtual void ask_by(HostAsker* asker) = 0;
  /// Sets the means to read from here on. Objects opened through an earlier one stay open.
  virtual void read_by(std::shared_ptr<HostReads> reads) = 0;
  /// Ends all reads.
  virtual void stop_reading() = 0;
  /// Discards failed reads, and renews leases.
  virtual void turn(std::uint64_t now_ns) = 0;
  /// Whether there may be leases to renew.
  [[nodiscard]] virtual bool has_leases() const = 0;
  /// Adds what was read since the last call to the statistics.
  virtual void count() = 0;

 protected:
  HostPart() = default;
};

}  // namespace espalier::device
