// SPDX-License-Identifier: Apache-2.0
// A switch inside one process: what stands between two packet ports that know no frames, such as
// those of a PacketNetwork. It puts a frame around each packet, has the packet function process it,
// and takes the packet out again. Where there are no packets either, as in the simulated fabric
// (fabric/sim), it looks READs up as they are.
//
// Thread: one; the function is installed by any (installed_function.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/installed_function.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::dataplane {

class ProcessSwitch {
 public:
  /// `function` outlives it.
  explicit ProcessSwitch(InstalledFunction& function) : reader_(function.make_reader()) {}

  /// A packet passes, from its BTH to its ICRC. Cost: a copy of it, and the packet function's.
  void process(const fabric::roce::PortAddress& from, const fabric::roce::PortAddress& to,
               std::span<std::byte> ib);
  /// A READ passes, by this key and of this address. Cost: a lookup.
  void process(std::uint32_t& key, std::uint64_t& address);

  struct Counters {
    std::uint64_t packets = 0;  // or READs that were no packets
    std::uint64_t reads_passed = 0;
    std::uint64_t redirected = 0;  // READs that met a table
  };
  [[nodiscard]] const Counters& counters() const { return counters_; }

 private:
  void count(const Processed& done);

  InstalledFunction::Reader reader_;
  std::vector<std::byte> frame_;
  Counters counters_;
};

}  // namespace espalier::dataplane
