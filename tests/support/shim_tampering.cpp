// SPDX-License-Identifier: Apache-2.0
#include "tests/support/shim_tampering.hpp"

#include "base/bytes.hpp"
#include "dataplane/packet_function.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::test {

void ShimTampering::operator()(std::vector<std::byte>& frame) {
  const dataplane::Datagram datagram = dataplane::find_datagram(frame);
  auto shim = dataplane::find_shim(datagram);
  if (!shim) return;
  seen_.push_back(frame);
  if (seen_.size() > 50) seen_.erase(seen_.begin());
  if (!random_.chance(share_)) return;
  ++count;
  constexpr std::size_t kDestination = 16;  // its place in the header of IPv4
  std::byte* const at = datagram.udp + wire::kUdpBytes;
  const auto redirect = redirects_.at(base::load_be<std::uint32_t>(datagram.ip + kDestination));
  switch (random_.below(8)) {
    case 0: frame.clear(); return;
    case 1: frame = seen_[random_.below(seen_.size())]; return;  // a late one, or twice
    case 2: at[random_.below(dataplane::kShimBytes)] ^= std::byte{0x10}; return;
    case 3:
      dataplane::remove_shim(frame, datagram);
      frame.resize(frame.size() - dataplane::kShimBytes);
      fabric::roce::redirect_read(dataplane::find_read_request(frame).ib, random_(), redirect);
      return;
    case 4: shim->generation = static_cast<std::uint32_t>(random_.below(20)); break;
    case 5: shim->hops = static_cast<std::uint8_t>(random_()); break;
    case 6:
      shim->server = static_cast<std::uint16_t>(random_.below(redirects_.size() + 1));
      ++other_servers;
      break;
    default: break;
  }
  shim->cursor = static_cast<std::uint32_t>(random_.below(random_.chance(0.5) ? 40 : 4000));
  dataplane::write_shim(at, *shim);
}

}  // namespace espalier::test
