// SPDX-License-Identifier: Apache-2.0
#include "dataplane/datagram_hints.hpp"

#include <cstring>
#include <span>

#include "dataplane/checksum_change.hpp"
#include "wire/ref.hpp"

namespace espalier::dataplane {

std::optional<AskedGet> find_get(const Datagram& datagram) {
  if (!is_for_datagrams(datagram) || datagram.bytes < wire::kUdpBytes) return std::nullopt;
  if (load16(datagram.udp + 4) != datagram.bytes) return std::nullopt;
  return get_in(datagram);
}

std::optional<AskedGet> get_in(const Datagram& datagram) {
  const auto asked = wire::read_datagram_request(
      std::span<const std::byte>(datagram.udp, datagram.bytes).subspan(wire::kUdpBytes));
  if (!asked || asked->header.kind != static_cast<std::uint8_t>(wire::DatagramKind::get)) {
    return std::nullopt;
  }
  return AskedGet{asked->header.map, asked->key};
}

bool write_hint(std::byte* udp, std::byte* get, const HintTerms& terms, std::uint64_t address) {
  const std::uint64_t offset = address - terms.base;
  const auto hint = wire::Ref::make(offset, 0);
  if (!hint || hint.offset() != offset) return false;
  std::byte* const at = get + offsetof(wire::DatagramRequest, hint);
  const auto before = base::load_be<std::uint64_t>(at);
  std::memcpy(at, &hint.bits, sizeof hint.bits);
  if (load16(udp + wire::kUdpChecksumOffset) != 0) {
    mend_checksum(udp, halves(~before) + halves(base::load_be<std::uint64_t>(at)));
  }
  return true;
}

}  // namespace espalier::dataplane
