// SPDX-License-Identifier: Apache-2.0
#include "dataplane/packet_function.hpp"

#include <algorithm>
#include <array>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "dataplane/checksum_change.hpp"
#include "dataplane/icrc_changes.hpp"
#include "dataplane/key_number.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "fabric/ethernet.hpp"
#include "fabric/region_table.hpp"
#include "fabric/roce/format.hpp"
#include "fabric/roce/icrc.hpp"

namespace espalier::dataplane {
namespace {

using base::load_be;
using base::planted;
using base::store_be;
using wire::kUdpBytes;
using wire::kUdpChecksumOffset;
using wire::roce::BthBytes;
using wire::roce::kReadRequestBytes;
using wire::roce::RethBytes;

// From the UDP header on.
constexpr std::size_t kAddressOffset = kUdpBytes + sizeof(BthBytes);
constexpr std::size_t kKeyOffset = kAddressOffset + offsetof(RethBytes, key);
constexpr std::size_t kIcrcOffset = kUdpBytes + kReadRequestBytes - wire::roce::kIcrcBytes;

bool is_read(const Datagram& datagram) {
  return datagram.udp != nullptr &&
         is_datagram(datagram, wire::roce::kUdpPort, kUdpBytes + kReadRequestBytes) &&
         is_read_request(datagram.udp + kUdpBytes);
}

std::uint64_t address_of(const std::byte* udp) {
  return load_be<std::uint64_t>(udp + kAddressOffset);
}
std::uint32_t key_of(const std::byte* udp) { return load_be<std::uint32_t>(udp + kKeyOffset); }

/// A READ request that is redirected, from what it says to what it will say.
struct Redirected {
  std::byte* udp;
  std::uint64_t old_address;
  std::uint64_t new_address;
};

/// `change`: of the ICRC, by address and key.
void write_redirected(const Redirected& read, const MapKeys& keys, std::uint32_t change) {
  std::byte* const icrc = read.udp + kIcrcOffset;
  const std::uint32_t old_icrc = load_be<std::uint32_t>(icrc);
  const std::uint32_t new_icrc =
      planted(Bug::icrc_not_updated) ? old_icrc : old_icrc ^ base::swap_bytes(change);
  if (load16(read.udp + kUdpChecksumOffset) != 0) {
    const std::uint64_t of_old =
        halves(~read.old_address) + std::uint32_t{~keys.keyed} + std::uint32_t{~old_icrc};
    const std::uint64_t of_new = halves(read.new_address) + keys.redirect + new_icrc;
    mend_checksum(read.udp, of_old + of_new);
  }
  store_be(read.udp + kAddressOffset, read.new_address);
  store_be(read.udp + kKeyOffset, keys.redirect);
  store_be(icrc, new_icrc);
}

}  // namespace

ReadRequestParts find_read_request(std::span<std::byte> frame) {
  const Datagram datagram = find_datagram(frame);
  if (!is_read(datagram)) return {};
  return {std::span(datagram.udp + kUdpBytes, kReadRequestBytes), datagram.udp};
}

void PacketFunction::add(const MapKeys& keys, const IndexTables& tables, const TablesPart& part,
                         const HintTerms& hints) {
  ESPALIER_ASSERT(find_map(keys.name()) == nullptr);
  maps_.push_back({keys, part, hints, fabric::roce::icrc_change(0, keys.keyed ^ keys.redirect),
                   IndexLookup(tables)});
}

void PacketFunction::set_address(const TablesName& name, const EntryPlace& place,
                                 std::uint64_t address) {
  const auto map = std::ranges::find(maps_, name, [](const Map& of) { return of.keys.name(); });
  ESPALIER_ASSERT(map != maps_.end());
  map->lookup.set_address(place, address);
}

const PacketFunction::Map* PacketFunction::find_map(const TablesName& name) const {
  for (const Map& map : maps_) {
    if (map.keys.keyed == name.keyed && map.keys.node == name.node) return &map;
  }
  return nullptr;
}

// Whose cursor it is: of a map with these tables, which begin at a cursor and have that node. Where
// a switch before this one has let it pass, it is of that switch's part: as many hops say so. By
// the key of another node than it goes to a READ would be refused, and end its pair.
const PacketFunction::Map* PacketFunction::find_map_of(const TablesName& name,
                                                       const Shim& shim) const {
  const Map* const map = find_map(name);
  return map != nullptr && is_of(*map, name.node, shim) ? map : nullptr;
}

bool PacketFunction::is_of(const Map& map, std::uint16_t node, const Shim& shim) {
  if (map.lookup.has_root()) return false;
  if (shim.server != node && !planted(Bug::other_server_believed)) return false;
  const TablesPart& part = map.part;
  const bool same = shim.generation == part.generation && shim.hops == part.hops + 1;
  if (!same && !planted(Bug::other_generation_believed)) return false;
  return shim.cursor < map.lookup.nodes_of_first_set();
}

// A get goes to its node by itself, so the tables of that lead it.
const PacketFunction::Map* PacketFunction::find_map_of(const AskedGet& get, std::uint16_t node,
                                                       const std::optional<Shim>& shim) const {
  for (const Map& map : maps_) {
    const bool there = map.keys.node == node || planted(Bug::other_server_believed);
    if (!there || map.hints.map != get.map || map.hints.map == 0) continue;
    if (shim ? is_of(map, node, *shim) : map.lookup.has_root()) return &map;
  }
  return nullptr;
}

/// A READ that tables are asked for.
struct PacketFunction::Sought {
  const Map* map = nullptr;  // null: none
  Datagram of;
  std::uint64_t number = 0;
  bool carried = false;  // it came with a shim:
  std::uint32_t cursor = 0;
  bool is_get = false;  // in a datagram

  /// What was found goes with it to the next switch; else it goes to the node by itself.
  [[nodiscard]] bool leads_on(const Found& found, const Hop& hop) const {
    if (found.next == kNoNode || hop.last || map->part.hops == 0) return false;
    if (is_get && of.bytes > wire::kUdpBytes + wire::kDatagramBytesMax - kShimBytes) return carried;
    return carried || hop.room_bytes >= kShimBytes;
  }
  [[nodiscard]] Shim shim_of(const Found& found) const {
    const ShimKind kind = is_get ? ShimKind::get : ShimKind::read;
    return {map->part.generation, found.next, map->keys.node, map->part.hops, kind};
  }
  /// `icrc_of_address`: by what an ICRC changes where the address that was found is written.
  [[nodiscard]] Processed go_on(std::span<std::byte> frame, const Found& found, const Hop& hop,
                                std::uint32_t icrc_of_address) const;
};

Processed PacketFunction::Sought::go_on(std::span<std::byte> frame, const Found& found,
                                        const Hop& hop, std::uint32_t icrc_of_address) const {
  constexpr auto kGrown = static_cast<std::int32_t>(kShimBytes);
  // What is known here stays in a get where no switch behind this one knows better.
  const bool hinted =
      is_get && write_hint(of.udp, of.udp + wire::kUdpBytes + (carried ? kShimBytes : 0),
                           map->hints, found.address);
  if (leads_on(found, hop)) {
    if (carried) {
      write_shim(of.udp + kUdpBytes, shim_of(found));
      return {Outcome::carried, found.sets};
    }
    add_shim(frame, of, shim_of(found));
    return {Outcome::carried, found.sets, kGrown};
  }
  if (carried) {
    if (planted(Bug::shim_not_removed)) return {Outcome::shim_passed, found.sets};
    remove_shim(frame, of);
  }
  const std::int32_t grown = carried ? -kGrown : 0;
  if (is_get) {
    const Outcome without = carried ? Outcome::shim_removed : Outcome::passed;
    return {hinted ? Outcome::hinted : without, found.sets, grown};
  }
  write_redirected({of.udp, number, found.address}, map->keys, map->icrc_of_keys ^ icrc_of_address);
  return {Outcome::redirected, found.sets, grown};
}

// Clients' own keys are none of a switch's business; a keyed one has a controller elsewhere.
Processed PacketFunction::pass_read(const Map* map, std::uint32_t key) {
  const bool is_unknown = map == nullptr && fabric::RegionTable::is_keyed(key);
  if (!is_unknown) return {Outcome::read_passed, 0};
  return {Outcome::key_unknown, 0, 0, key};
}

// What becomes of a frame whose walk does not go on here; else `sought` has a map.
Processed PacketFunction::look_at(std::span<std::byte> frame, const Hop& hop,
                                  Sought& sought) const {
  sought.of = find_datagram(frame);
  sought.carried = sought.is_get = false;
  sought.map = nullptr;
  if (!is_read(sought.of)) {
    if (is_for_switch(sought.of)) return look_at_shim(frame, hop, sought);
    if (is_for_datagrams(sought.of)) return look_at_get(hop, sought);
    return {};
  }
  const std::uint32_t key = key_of(sought.of.udp);
  const Map* const map = find_map({key, hop.node});
  if (map == nullptr || !map->lookup.has_root()) return pass_read(map, key);
  sought.map = map;
  sought.number = address_of(sought.of.udp);
  return {};
}

Processed PacketFunction::look_at_get(const Hop& hop, Sought& sought) const {
  const auto get = find_get(sought.of);
  if (!get) return {};
  sought.map = find_map_of(*get, hop.node, std::nullopt);
  if (sought.map == nullptr) return {};
  sought.is_get = true;
  sought.number = key_number(sought.map->hints.prefix, get->key);
  return {};
}

Processed PacketFunction::look_at_shim(std::span<std::byte> frame, const Hop& hop,
                                       Sought& sought) const {
  const auto shim = hop.first ? std::nullopt : find_shim(sought.of);
  if (!shim) {
    return {hop.first || hop.last ? Outcome::shim_dropped : Outcome::shim_passed};
  }
  const Datagram behind = behind_shim(sought.of);
  sought.is_get = shim->kind == ShimKind::get;
  const auto get = sought.is_get ? get_in(behind) : std::nullopt;
  const std::uint16_t node = planted(Bug::other_server_believed) ? shim->server : hop.node;
  sought.map = get ? find_map_of(*get, node, shim) : find_map_of({key_of(behind.udp), node}, *shim);
  if (sought.map == nullptr) {
    if (!hop.last || planted(Bug::shim_not_removed)) return {Outcome::shim_passed};
    remove_shim(frame, sought.of);
    return {Outcome::shim_removed, 0, -static_cast<std::int32_t>(kShimBytes)};
  }
  sought.carried = true;
  sought.number = get ? key_number(sought.map->hints.prefix, get->key) : address_of(behind.udp);
  sought.cursor = shim->cursor;
  return {};
}

Processed PacketFunction::redirect(std::uint32_t& key, std::uint64_t& address,
                                   std::optional<Shim>& shim, const Hop& hop) const {
  Sought sought;
  sought.carried = shim.has_value();
  if (hop.first && shim) return {Outcome::shim_dropped};
  const TablesName name{key, hop.node};
  sought.map = shim ? find_map_of(name, *shim) : find_map(name);
  if (sought.map == nullptr || (!shim && !sought.map->lookup.has_root())) {
    if (!shim) return pass_read(sought.map, key);
    if (!hop.last) return {Outcome::shim_passed};
    shim.reset();
    return {Outcome::shim_removed};
  }
  const IndexLookup& lookup = sought.map->lookup;
  const Found found = shim ? lookup.find_from(shim->cursor, address) : lookup.find(address);
  if (sought.leads_on(found, hop)) {
    shim = sought.shim_of(found);
    return {Outcome::carried, found.sets};
  }
  shim.reset();
  key = sought.map->keys.redirect;
  address = found.address;
  return {Outcome::redirected, found.sets};
}

Processed PacketFunction::process(std::span<std::byte> frame, const Hop& hop) const {
  Sought sought;
  const Processed done = look_at(frame, hop, sought);
  if (sought.map == nullptr) return done;
  const IndexLookup& lookup = sought.map->lookup;
  const Found found =
      sought.carried ? lookup.find_from(sought.cursor, sought.number) : lookup.find(sought.number);
  return sought.go_on(frame, found, hop,
                      fabric::roce::icrc_change_of_address(sought.number ^ found.address));
}

// --- bursts --------------------------------------------------------------------------------------

/// Requests of one map, all with shims or all without, and which frames of the burst they are.
/// Nothing of it is set before it is used: to clear it would take as long as some frames.
struct PacketFunction::Batch {
  const Map* map;
  bool carried;
  bool is_get;
  std::size_t count;
  std::array<std::byte*, IndexLookup::kTogether> ip;
  std::array<std::byte*, IndexLookup::kTogether> udp;
  std::array<std::uint64_t, IndexLookup::kTogether> numbers;
  std::array<std::uint32_t, IndexLookup::kTogether> cursors;
  std::array<std::uint32_t, IndexLookup::kTogether> frames;
  std::array<std::size_t, IndexLookup::kTogether> bytes;

  [[nodiscard]] bool has_room_for(const Sought& sought) const {
    return count == 0 || (count != IndexLookup::kTogether && sought.map == map &&
                          sought.carried == carried && sought.is_get == is_get);
  }
  void add(const Sought& sought, std::uint32_t frame) {
    map = sought.map;
    carried = sought.carried;
    is_get = sought.is_get;
    bytes[count] = sought.of.bytes;
    ip[count] = sought.of.ip;
    udp[count] = sought.of.udp;
    numbers[count] = sought.number;
    cursors[count] = sought.cursor;
    frames[count++] = frame;
  }
};

void PacketFunction::redirect_all(Batch& batch, std::span<const std::span<std::byte>> frames,
                                  std::span<Processed> done, const Hop& hop) {
  std::array<Found, IndexLookup::kTogether> found;
  const auto numbers = std::span(batch.numbers).first(batch.count);
  const auto into = std::span(found).first(batch.count);
  if (batch.carried) {
    const auto cursors = std::span(batch.cursors).first(batch.count);
    batch.map->lookup.find_together_from(cursors, numbers, into);
  } else {
    batch.map->lookup.find_together(numbers, into);
  }
  IcrcChanges changes;
  static_assert(kIcrcsTogether == IndexLookup::kTogether);
  for (std::size_t i = 0; i < batch.count; ++i) {
    changes.addresses[i] = batch.numbers[i] ^ found[i].address;
  }
  std::fill(changes.addresses.begin() + static_cast<std::ptrdiff_t>(batch.count),
            changes.addresses.end(), std::uint64_t{0});
  find_icrc_changes(changes, batch.count);
  for (std::size_t i = 0; i < batch.count; ++i) {
    const Sought sought{batch.map,        {batch.ip[i], batch.udp[i], batch.bytes[i]},
                        batch.numbers[i], batch.carried,
                        batch.cursors[i], batch.is_get};
    const std::uint32_t frame = batch.frames[i];
    done[frame] = sought.go_on(frames[frame], found[i], hop, changes.icrcs[i]);
  }
  batch.count = 0;
}

void PacketFunction::process(std::span<const std::span<std::byte>> frames,
                             std::span<Processed> done, const Hop& hop) const {
  ESPALIER_ASSERT(done.size() >= frames.size());
  Batch batch;
  batch.map = nullptr;
  batch.count = 0;
  Sought sought;
  for (std::size_t i = 0; i < frames.size(); ++i) {
    done[i] = look_at(frames[i], hop, sought);
    if (sought.map == nullptr) continue;
    if (!batch.has_room_for(sought)) redirect_all(batch, frames, done, hop);
    batch.add(sought, static_cast<std::uint32_t>(i));
  }
  if (batch.count != 0) redirect_all(batch, frames, done, hop);
}

}  // namespace espalier::dataplane
