// SPDX-License-Identifier: Apache-2.0
// What a switch does with one frame. A READ request by a map's keyed key carries a key number in
// place of its address: it gets the address that the tables have for this number, and the map's
// redirect key. Everything else passes unchanged, damaged or malformed frames included.
//
//   Ethernet | up to two VLAN tags | IPv4 or IPv6 | UDP, port 4791 | BTH | RETH | ICRC
//                                                        checksum          |  |       |
//                                                            ^-- mended    |  key     mended
//                                                                          address
//
// The ICRC is updated incrementally (icrc.hpp), so that a frame that was damaged on its way here is
// still rejected at its destination. A UDP checksum is updated for both changes.
//
// Where switches stand in a row, each with a part of the tables, a READ whose walk leaves one part
// goes to the next switch with a shim that holds the walk's position (shim.hpp). Where the walk or
// the row ends, the shim is removed and the READ redirected. Any other frame with a shim (of
// another generation, say) is restored at the last switch and passes; a malformed shim cannot be
// removed, and its frame is dropped there. Shims from hosts are dropped.
//
// A map may lie on several nodes by one keyed key. A pair ends at one of them, so a READ is
// redirected within the node that it goes to anyway, by the tables of that node alone.
//
// A get in one datagram (datagram_hints.hpp) is given the node that tables know best for its key,
// as a hint, by each switch of a row anew.
//
// Thread: any while it is not changed.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "dataplane/datagram_hints.hpp"
#include "dataplane/index_lookup.hpp"
#include "dataplane/shim.hpp"

namespace espalier::dataplane {

/// Whose tables: of a map, at one of the nodes that it lies on.
struct TablesName {
  std::uint32_t keyed = 0;
  std::uint16_t node = 0;
  friend auto operator<=>(const TablesName&, const TablesName&) = default;
};

/// By which keys READs of a map go.
struct MapKeys {
  std::uint32_t keyed = 0;     // what clients send
  std::uint32_t redirect = 0;  // what the switch puts in its place
  std::uint16_t node = 0;      // which node that key is of, where a map lies on several
  [[nodiscard]] TablesName name() const { return {keyed, node}; }
  friend bool operator==(const MapKeys&, const MapKeys&) = default;
};

/// Which part of a map's tables a switch has, where these are cut over several in a row.
struct TablesPart {
  std::uint32_t generation = 0;  // of the tables: cursors of others mean nothing in these
  std::uint8_t hops = 0;         // switches behind this one that have parts of them
  friend bool operator==(const TablesPart&, const TablesPart&) = default;
};

/// Where a switch stands, and what there is around frames that come to it.
struct Hop {
  bool first = true;           // they come from hosts
  bool last = true;            // they go to a host
  std::size_t room_bytes = 0;  // that may be written behind each
  std::uint16_t node = 0;      // which node they go to, where the switch leads to several
};

enum class Outcome : std::uint8_t {
  passed,       // no READ request
  key_unknown,  // one by a keyed key that no map here has
  read_passed,  // one by a key that no map has: a client's own, or a keyed one without tables
  redirected,
  carried,       // goes to the next switch with a shim that this one has written
  shim_passed,   // of other tables than these: goes on as it came
  shim_removed,  // the same at the last switch: it is the READ that its client sent
  shim_dropped,  // from a host, or at the last switch one that is not whole
  hinted,        // a get in a datagram, which says now where its walk may begin
};

struct Processed {
  Outcome outcome = Outcome::passed;
  std::uint32_t sets = 0;  // of nodes that took part
  std::int32_t grown = 0;  // bytes by which the frame is longer now, at its end
  std::uint32_t key = 0;   // where it is unknown
  friend bool operator==(const Processed&, const Processed&) = default;
};

class PacketFunction {
 public:
  /// Adds a map, or its part at one node. Requires: tables that check() accepts; a name that no
  /// other has.
  void add(const MapKeys& keys, const IndexTables& tables, const TablesPart& part = {},
           const HintTerms& hints = {});

  /// Has an entry of a map name another address. Requires: the map and the place exist.
  void set_address(const TablesName& of, const EntryPlace& place, std::uint64_t address);

  /// Processes a frame where it lies. Cost: about 10 ns, and a lookup where it is one.
  Processed process(std::span<std::byte> frame, const Hop& hop = {}) const;
  /// The same for each of a burst, in order; what is looked up is looked up together. Requires: as
  /// many `done`. Cost: a fourth of that of one by one where all are redirected.
  void process(std::span<const std::span<std::byte>> frames, std::span<Processed> done,
               const Hop& hop = {}) const;
  /// The same for a READ of a transport that has no packets: by this key, of this address, and with
  /// this shim, if it has one.
  Processed redirect(std::uint32_t& key, std::uint64_t& address, std::optional<Shim>& shim,
                     const Hop& hop = {}) const;

 private:
  struct Map {
    MapKeys keys;
    TablesPart part;
    HintTerms hints;
    std::uint32_t icrc_of_keys;  // by what an ICRC changes when one becomes the other
    IndexLookup lookup;
  };
  struct Sought;
  struct Batch;
  [[nodiscard]] const Map* find_map(const TablesName& name) const;
  static Processed pass_read(const Map* map, std::uint32_t key);
  [[nodiscard]] const Map* find_map_of(const TablesName& name, const Shim& shim) const;
  [[nodiscard]] static bool is_of(const Map& map, std::uint16_t node, const Shim& shim);
  Processed look_at(std::span<std::byte> frame, const Hop& hop, Sought& sought) const;
  Processed look_at_shim(std::span<std::byte> frame, const Hop& hop, Sought& sought) const;
  [[nodiscard]] const Map* find_map_of(const AskedGet& get, std::uint16_t node,
                                       const std::optional<Shim>& shim) const;
  Processed look_at_get(const Hop& hop, Sought& sought) const;
  static void redirect_all(Batch& batch, std::span<const std::span<std::byte>> frames,
                           std::span<Processed> done, const Hop& hop);

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
