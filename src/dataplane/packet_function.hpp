// SPDX-License-Identifier: Apache-2.0
// What a switch does with one frame: a READ request whose key is a map's keyed one carries a number
// where its address would be; it gets the address that the tables have for this number, and the
// map's redirect key. Everything else passes untouched, damaged or malformed frames included.
//
//   Ethernet | up to two VLAN tags | IPv4 or IPv6 | UDP, port 4791 | BTH | RETH | ICRC
//                                                        checksum          |  |       |
//                                                            ^-- mended    |  key     mended
//                                                                          address
//
// The ICRC is mended by the difference (icrc.hpp), so that a frame that was damaged on its way here
// is still refused where it arrives. Where UDP has a checksum, it is mended for both changes.
//
// Thread: any while it is not changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "dataplane/index_lookup.hpp"

namespace espalier::dataplane {

/// By which keys READs of a map go.
struct MapKeys {
  std::uint32_t keyed = 0;     // what clients send
  std::uint32_t redirect = 0;  // what the switch puts in its place
  friend bool operator==(const MapKeys&, const MapKeys&) = default;
};

enum class Outcome : std::uint8_t {
  passed,       // no READ request
  read_passed,  // one by a key that no map has: a client's own, or a keyed one without tables
  redirected,
};

struct Processed {
  Outcome outcome = Outcome::passed;
  std::uint32_t sets = 0;  // of nodes that took part
  friend bool operator==(const Processed&, const Processed&) = default;
};

class PacketFunction {
 public:
  /// Adds a map. Requires: tables that check() accepts; a keyed key that no other map has.
  void add(const MapKeys& keys, const IndexTables& tables);

  /// Has an entry of a map name another address. Requires: the map and the place exist.
  void set_address(std::uint32_t keyed_key, const EntryPlace& place, std::uint64_t address);

  /// Processes a frame where it lies. Cost: about 10 ns, and a lookup where it is one.
  Processed process(std::span<std::byte> frame) const;
  /// The same for each of a burst, in order; what is looked up is looked up together. Requires: as
  /// many `done`. Cost: a fourth of that of one by one where all are redirected.
  void process(std::span<const std::span<std::byte>> frames, std::span<Processed> done) const;
  /// The same for a READ of a transport that has no packets: by this key, of this address.
  Processed redirect(std::uint32_t& key, std::uint64_t& address) const;

 private:
  struct Map {
    MapKeys keys;
    std::uint32_t icrc_of_keys;  // by what an ICRC changes when one becomes the other
    IndexLookup lookup;
  };
  struct Batch;
  [[nodiscard]] const Map* find_map(std::uint32_t keyed_key) const;
  static void redirect_all(Batch& batch, std::span<Processed> done);

  std::vector<Map> maps_;
};

/// Where the parts of a READ request lie within a frame.
struct ReadRequestParts {
  std::span<std::byte> ib;   // from the BTH to the ICRC
  std::byte* udp = nullptr;  // the header
};

/// Finds them; an empty `ib` says that the frame is none: another protocol, a fragment, or lengths
/// that disagree. Checksums are not looked at. Any bytes may come.
[[nodiscard]] ReadRequestParts find_read_request(std::span<std::byte> frame);

}  // namespace espalier::dataplane
