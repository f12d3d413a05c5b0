// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that walk maps by one-sided READs: where the memory is, and leases.
#include <array>
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "offload/call.hpp"
#include "offload/connection.hpp"
#include "offload/one_sided_fields.hpp"
#include "offload/one_sided_host.hpp"
#include "offload/payload_reader.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {
namespace {

wire::MapPlace place_of(const tree::MapCore& core) {
  wire::MapPlace place{};
  place.header_offset = core.header_offset;
  // Its versions move meanwhile: word by word, each is whole.
  auto* to = reinterpret_cast<std::byte*>(&place.header);
  for (std::size_t at = 0; at < sizeof place.header; at += 8) {
    const auto word = base::load_shared<std::uint64_t>(core.at(core.header_offset + at));
    std::memcpy(to + at, &word, sizeof word);
  }
  return place;
}

// Whoever answers for the node refuses what it refuses.
void add_borders(std::string& to, const tree::MapCore& core) {
  if (core.shard == nullptr) return;
  const wire::KeyBounds has = core.shard->bounds(core.shard->own);
  std::string field(base::bytes_of(wire::ShardBorders{
      static_cast<std::uint32_t>(has.low.size()), static_cast<std::uint32_t>(has.high.size())}));
  field.append(has.low).append(has.high);
  add_field(to, wire::FieldKind::borders, field);
}

/// The lowest and the highest key of a map, as far as walks have found them.
struct MapEnds {
  std::string low;
  std::string high;
  std::uint32_t walks = 0;  // that have ended
};

bool take_end(Call& call, std::span<const Item> items) {
  MapEnds& ends = call.state<MapEnds>();
  (ends.walks == 0 ? ends.low : ends.high).assign(items.front().key);
  return true;
}

Next walk_to_end(Call& call, Op op) {
  call.new_walk(op).limit = 1;
  return call.walk();
}

void add_redirect(std::string& to, const fabric::RemoteRegion& redirect) {
  const wire::RedirectPlace place{redirect.base, redirect.bytes, redirect.key, 0};
  add_field(to, wire::FieldKind::redirect, base::bytes_of(place));
}

// What most keys begin with is told by the first and the last of them.
Next open_by_key(Call& call, OneSidedHost& host, bool fills_tables) {
  IndexHost* const index = host.index();
  if (index == nullptr) return call.fail({Code::unsupported, 0, 0});
  if (!call.has_state<MapEnds>()) {
    call.new_state<MapEnds>();
    return walk_to_end(call, Op::scan);
  }
  const Completion* const walked = call.walked();
  if (walked != nullptr && !walked->ok) return call.fail(walked->error);
  MapEnds& ends = call.state<MapEnds>();
  if (++ends.walks == 1) return walk_to_end(call, Op::scan_reverse);
  const std::shared_ptr<tree::MapCore>& core = call.host_map().core;
  const auto map = index->offer(core, ends.low, ends.high);
  if (!map) return call.fail(map.error());
  if (const auto offered = host.offer(); !offered) return call.fail(offered.error());
  if (const auto admitted = host.admit(*map); !admitted) return call.fail(admitted.error());
  std::string more;
  const wire::KeyedPlace keyed{(*map)->keyed_key(),
                               static_cast<std::uint32_t>((*map)->prefix().size())};
  add_field(more, wire::FieldKind::keyed, std::string(base::bytes_of(keyed)) + (*map)->prefix());
  if (fills_tables) {
    const auto redirect = host.open_redirect(*map);
    if (!redirect) return call.fail(redirect.error());
    add_redirect(more, *redirect);
  }
  add_borders(more, *core);
  const wire::MapPlace place = place_of(*core);
  return answer_one_sided(call, host, wire::FieldKind::map, base::bytes_of(place), more);
}

Next one_sided_open(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  const tree::MapCore& core = *call.host_map().core;
  if (host == nullptr || !core.options.versions) {
    return call.fail({Code::unsupported, 0, 0});
  }
  if ((call.argument() & ~wire::kReadsByKey) != 0) return call.fail({Code::unsupported, 0, 0});
  if (call.argument() != 0) return open_by_key(call, *host, false);
  const wire::MapPlace place = place_of(core);
  std::string more;
  add_borders(more, core);
  return answer_one_sided(call, *host, wire::FieldKind::map, base::bytes_of(place), more);
}

Next index_open(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  if (host == nullptr || !call.map().keeps_versions()) {
    return call.fail({Code::unsupported, 0, 0});
  }
  return open_by_key(call, *host, true);
}

Next index_generation(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  if (host == nullptr || (call.argument() & ~wire::kEndsGenerations) != 0) {
    return call.fail({Code::unsupported, 0, 0});
  }
  std::string fields;
  if (call.argument() == wire::kEndsGenerations) {
    const auto ended = host->end_generations_before(call.map_number());
    if (!ended) return call.fail(ended.error());
  } else {
    const auto redirect = host->begin_generation(call.map_number());
    if (!redirect) return call.fail(redirect.error());
    add_redirect(fields, *redirect);
  }
  return call.answer({}, {fields});
}

// What a client counted is a hint: leaves of a map that is not there count nowhere.
void count_leaves(Call& call, std::string_view lids) {
  std::array<wire::Lid, wire::kSampledLeavesMax> leaves{};
  if (lids.empty() || lids.size() % sizeof(wire::Lid) != 0 || lids.size() > sizeof leaves) return;
  std::memcpy(leaves.data(), lids.data(), lids.size());
  const auto map = call.services().catalog().find<tree::MapCore>(call.map_number());
  if (map == nullptr) return;
  map->heat.add(std::span(leaves).first(lids.size() / sizeof(wire::Lid)), base::monotonic_ns());
}

Next lease_renew(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  if (host == nullptr) return call.fail({Code::unsupported, 0, 0});
  const auto renewal = PayloadReader(call.payload()).take<wire::LeaseRenewal>();
  const auto epoch = host->renew(renewal.lease, renewal.oldest, base::monotonic_ns());
  if (!epoch) return call.fail(epoch.error());
  count_leaves(call, call.payload().substr(sizeof renewal));
  wire::ResponseHeader header{};
  header.version = *epoch;
  return call.answer(header);
}

Next feed_open(Call& call) {
  OneSidedHost* const host = call.connection().one_sided.get();
  const std::shared_ptr<tree::MapCore>& core = call.host_map().core;
  if (host == nullptr || !core->options.versions) return call.fail({Code::unsupported, 0, 0});
  const auto place = host->follow(core);
  if (!place) return call.fail(place.error());
  std::string fields;
  add_field(fields, wire::FieldKind::feed, base::bytes_of(*place));
  return call.answer({}, {fields});
}

Next index_counts(Call& call) {
  const std::size_t wanted = call.argument() != 0 ? call.argument() : tree::LeafHeat::kLeavesMax;
  std::string rows;
  for (const auto& [lid, answers] :
       call.host_map().core->heat.most_read(wanted, base::monotonic_ns())) {
    const wire::LeafCount row{lid, answers};
    rows += base::bytes_of(row);
  }
  if (!call.response_fits(rows.size())) return call.writable();
  OneSidedHost* const host = call.connection().one_sided.get();
  wire::ResponseHeader header{};
  if (host != nullptr && host->index() != nullptr) {
    header.version = host->index()->keyed_key(call.map_number());
  }
  return call.answer(header, {rows});
}

const Offload kOneSidedOffloads[] = {
    {.id = wire::OffloadId::one_sided_open,
     .name = "one_sided_open",
     .format = "map: the map to be walked; argument: 1 for READs by key",
     .summary = "offers the node's memory to be read by this session alone, and grants it a lease; "
                "answers fields (wire/one_sided.hpp)",
     .right = Right::read,
     .limits = {.map = true},
     .object = Names::all,
     .step = one_sided_open,
     .items = take_end},
    {.id = wire::OffloadId::index_open,
     .name = "index_open",
     .format = "map: the map whose READs by key are to be redirected",
     .summary = "as one_sided_open for READs by key, for who fills the tables of switches; a field "
                "more names the key that they write",
     .right = Right::admin,
     .limits = {.map = true},
     .object = Names::all,
     .step = index_open,
     .items = take_end},
    {.id = wire::OffloadId::index_generation,
     .name = "index_generation",
     .format = "map: a map that the session has opened by index_open; argument: 1 where no switch "
               "has tables of earlier generations any more, else 0",
     .summary = "answers the key that a new generation of tables writes; the one before stays good "
                "until the next; or makes void all but the newest",
     .right = Right::admin,
     .limits = {.map = true},
     .object = Names::all,
     .routine = true,
     .step = index_generation},
    {.id = wire::OffloadId::lease_renew,
     .name = "lease_renew",
     .format = "LeaseRenewal: the lease, and the oldest epoch of walks in flight; then up to 32 "
               "LIDs of leaves of a map",
     .summary = "renews a lease, and counts an answer of each of these leaves; answers the present "
                "epoch as version",
     .right = Right::read,
     .limits = {.payload_bytes_min = sizeof(wire::LeaseRenewal),
                .payload_bytes_max =
                    sizeof(wire::LeaseRenewal) + wire::kSampledLeavesMax * sizeof(wire::Lid)},
     .step = lease_renew},
    {.id = wire::OffloadId::index_counts,
     .name = "index_counts",
     .format = "map: the map; argument: how many leaves at most, 0 for all that are known",
     .summary = "answers which leaves are read most, and how often (wire/one_sided.hpp); as "
                "version, the key by which clients that open the map now READ it",
     .right = Right::read,
     .limits = {.map = true},
     .step = index_counts},
    {.id = wire::OffloadId::feed_open,
     .name = "feed_open",
     .format = "map: a map of which the session holds a lease",
     .summary =
         "tells the map's nodes that move in a ring of the memory, until the session's leases "
         "end; answers where that is (wire/mapping_feed.hpp)",
     .right = Right::read,
     .limits = {.map = true},
     .step = feed_open},
};

}  // namespace

void add_field(std::string& to, wire::FieldKind kind, std::string_view field) {
  wire::FieldHeader header{};
  header.kind = static_cast<std::uint16_t>(kind);
  header.bytes = static_cast<std::uint32_t>(field.size());
  to += base::bytes_of(header);
  to += field;
  to.append((8 - field.size() % 8) % 8, '\0');
}

Next answer_one_sided(Call& call, OneSidedHost& host, wire::FieldKind kind, std::string_view place,
                      std::string_view more) {
  const auto region = host.offer();
  if (!region) return call.fail(region.error());
  const auto lease = host.grant(base::monotonic_ns());
  if (!lease) return call.fail(lease.error());
  wire::OfferedRegion offered{};
  offered.base = region->base;
  offered.bytes = region->bytes;
  offered.key = region->key;
  const base::LeaseTerms& terms = host.terms();
  const wire::LeaseGrant grant{lease->id, lease->epoch, terms.renew_every_ns,
                               terms.believed_for_ns, terms.lost_after_ns};
  std::string fields;
  add_field(fields, wire::FieldKind::region, base::bytes_of(offered));
  add_field(fields, kind, place);
  add_field(fields, wire::FieldKind::lease, base::bytes_of(grant));
  fields += more;
  return call.answer({}, {fields});
}

std::span<const Offload> one_sided_offloads() { return kOneSidedOffloads; }

}  // namespace espalier::offload
