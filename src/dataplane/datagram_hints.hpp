// SPDX-License-Identifier: Apache-2.0
// Hints in gets of one datagram (wire/datagram.hpp): a switch writes which node of the map's tree
// its tables know best for the key, and the node begins there. The hint is not under the
// datagram's tag, and is a guess as all that switches say.
//
// Tables have addresses, and no generations: a hint of a switch has generation 0, which stands for
// whatever node begins there.
//
// Thread: pure functions.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "dataplane/frame_parts.hpp"
#include "wire/datagram.hpp"

namespace espalier::dataplane {

/// By what tables of a map lead its gets.
struct HintTerms {
  std::uint32_t map = 0;   // the map's number at its node; 0: no hints are written
  std::uint64_t base = 0;  // the addresses of the tables are this and an offset in the region
  std::string prefix;      // what the numbers of keys leave out
  friend bool operator==(const HintTerms&, const HintTerms&) = default;
};

/// A get, whose key lies in a frame.
struct AskedGet {
  std::uint32_t map = 0;
  std::string_view key;
};

/// Whether the frame goes where nodes take datagrams, whatever it is.
inline bool is_for_datagrams(const Datagram& datagram) {
  return datagram.udp != nullptr && load16(datagram.udp + 2) == wire::kDatagramPort;
}
/// Nothing: it is none, or lengths disagree. Tags and checksums are not looked at.
[[nodiscard]] std::optional<AskedGet> find_get(const Datagram& datagram);
/// The same of what lies behind a shim, whatever UDP's header says of it.
[[nodiscard]] std::optional<AskedGet> get_in(const Datagram& datagram);

/// Has the get behind this header begin at the node of this address, and mends UDP's checksum,
/// which is that of `udp`. Returns false, and does nothing, where no node can begin there.
bool write_hint(std::byte* udp, std::byte* get, const HintTerms& terms, std::uint64_t address);

}  // namespace espalier::dataplane
