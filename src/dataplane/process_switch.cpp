// SPDX-License-Identifier: Apache-2.0
#include "dataplane/process_switch.hpp"

#include <algorithm>

#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::dataplane {

void ProcessSwitch::process(const fabric::roce::PortAddress& from,
                            const fabric::roce::PortAddress& to, std::span<std::byte> ib) {
  ++counters_.packets;
  if (ib.empty() || ib.size() > fabric::roce::kIbBytesMax) return;
  fabric::roce::FrameHeader header;
  header.flow = {from.ip, to.ip, from.udp_port, to.udp_port, true};
  const std::size_t before = fabric::roce::frame_header_bytes(header);
  frame_.resize(before + ib.size());
  fabric::roce::write_frame_header(frame_.data(), header, ib.size());
  std::ranges::copy(ib, frame_.begin() + static_cast<std::ptrdiff_t>(before));
  Processed done;
  reader_.with([&](const PacketFunction& function) { done = function.process(frame_); });
  count(done);
  if (done.outcome != Outcome::redirected) return;
  std::ranges::copy(std::span(frame_).subspan(before), ib.begin());
}

void ProcessSwitch::process(std::uint32_t& key, std::uint64_t& address) {
  ++counters_.packets;
  reader_.with([&](const PacketFunction& function) { count(function.redirect(key, address)); });
}

void ProcessSwitch::count(const Processed& done) {
  counters_.redirected += done.outcome == Outcome::redirected ? 1 : 0;
  counters_.reads_passed += done.outcome == Outcome::read_passed ? 1 : 0;
}

}  // namespace espalier::dataplane
