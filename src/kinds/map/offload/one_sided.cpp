// SPDX-License-Identifier: Apache-2.0
// Offloads for clients that walk maps by one-sided READs: where the memory is.
#include <cstring>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/assert.hpp"
#include "base/bytes.hpp"
#include "base/clock.hpp"
#include "engine/connection.hpp"
#include "engine/one_sided_fields.hpp"
#include "engine/one_sided_host.hpp"
#include "engine/services.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/calls.hpp"
#include "kinds/map/format/map_place.hpp"
#include "kinds/map/format/mapping_feed.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/index_host.hpp"
#include "kinds/map/offload/indexed_reads.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/write/map_core.hpp"
#include "wire/one_sided.hpp"

namespace espalier::offload {
namespace {

wire::MapPlace place_of(const tree::MapCore& core) {
  wire::MapPlace place{};
  place.header_offset = core.header_offset;
  // Its versions change concurrently: copied word by word, so that each is whole.
  auto* to = reinterpret_cast<std::byte*>(&place.header);
  for (std::size_t at = 0; at < sizeof place.header; at += 8) {
    const auto word = base::load_shared<std::uint64_t>(core.at(core.header_offset + at));
    std::memcpy(to + at, &word, sizeof word);
  }
  return place;
}

// A reader that answers for the node must refuse the keys that the node refuses.
void add_borders(std::string& to, const tree::MapCore& core) {
  if (core.shard == nullptr) return;
  const wire::KeyBounds has = core.shard->bounds(core.shard->own);
  std::string field(base::bytes_of(wire::ShardBorders{
      static_cast<std::uint32_t>(has.low.size()), static_cast<std::uint32_t>(has.high.size())}));
  field.append(has.low).append(has.high);
  add_field(to, wire::FieldKind::borders, field);
}

/// The lowest and the highest key of a map, as found by walks so far.
struct MapEnds {
  std::string low;
  std::string high;
  std::uint32_t walks = 0;  // number of ended walks
};

bool take_end(Call& call, std::span<const Item> items) {
  MapEnds& ends = call.state<MapEnds>();
  (ends.walks == 0 ? ends.low : ends.high).assign(items.front().key);
  return true;
}

Next walk_to_end(Call& call, Op op) {
  new_walk(call, op).limit = 1;
  return begin_walk(call);
}

void add_redirect(std::string& to, const fabric::RemoteRegion& redirect) {
  const wire::RedirectPlace place{redirect.base, redirect.bytes, redirect.key, 0};
  add_field(to, wire::FieldKind::redirect, base::bytes_of(place));
}

// The prefix of most keys is derived from the first and the last key.
Next open_by_key(Call& call, OneSidedHost& host, bool fills_tables) {
  IndexedReads& reads = IndexedReads::of(call.connection(), host);
  if (reads.index() == nullptr) return call.fail({Code::unsupported, 0, 0});
  if (!call.has_state<MapEnds>()) {
    call.new_state<MapEnds>();
    return walk_to_end(call, Op::scan);
  }
  const Completion* const walked = ended_walk(call);
  if (walked != nullptr && !walked->ok) return call.fail(walked->error);
  MapEnds& ends = call.state<MapEnds>();
  if (++ends.walks == 1) return walk_to_end(call, Op::scan_reverse);
  const std::shared_ptr<tree::MapCore>& core = host_map_of(call).core;
  const auto map = reads.index()->offer(core, ends.low, ends.high);
  if (!map) return call.fail(map.error());
  if (const auto offered = host.offer(); !offered) return call.fail(offered.error());
  if (const auto admitted = reads.admit(*map); !admitted) return call.fail(admitted.error());
  std::string more;
  const wire::KeyedPlace keyed{(*map)->keyed_key(),
                               static_cast<std::uint32_t>((*map)->prefix().size())};
  add_field(more, wire::FieldKind::keyed, std::string(base::bytes_of(keyed)) + (*map)->prefix());
  if (fills_tables) {
    const auto redirect = reads.open_redirect(*map);
    if (!redirect) return call.fail(redirect.error());
    add_redirect(more, *redirect);
  }
  add_borders(more, *core);
  const wire::MapPlace place = place_of(*core);
  return answer_one_sided(call, host, wire::FieldKind::map, base::bytes_of(place), more);
}

Next open_reads(Call& call, const map_calls::OpenReads& asked) {
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  const tree::MapCore& core = *host_map_of(call).core;
  if (host == nullptr || !core.options.versions) {
    return call.fail({Code::unsupported, 0, 0});
  }
  if ((asked.ways & ~wire::kReadsByKey) != 0) return call.fail({Code::unsupported, 0, 0});
  if (asked.ways != 0) return open_by_key(call, *host, false);
  const wire::MapPlace place = place_of(core);
  std::string more;
  add_borders(more, core);
  return answer_one_sided(call, *host, wire::FieldKind::map, base::bytes_of(place), more);
}

Next open_index(Call& call, const map_calls::OpenIndex&) {
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  if (host == nullptr || !map_of(call).keeps_versions()) {
    return call.fail({Code::unsupported, 0, 0});
  }
  return open_by_key(call, *host, true);
}

Next next_generation(Call& call, const map_calls::NextGeneration& asked) {
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  if (host == nullptr || (asked.what & ~wire::kEndsGenerations) != 0) {
    return call.fail({Code::unsupported, 0, 0});
  }
  IndexedReads& reads = IndexedReads::of(call.connection(), *host);
  std::string fields;
  if (asked.what == wire::kEndsGenerations) {
    const auto ended = reads.end_generations_before(asked.map);
    if (!ended) return call.fail(ended.error());
  } else {
    const auto redirect = reads.begin_generation(asked.map);
    if (!redirect) return call.fail(redirect.error());
    add_redirect(fields, *redirect);
  }
  return answer(call, map_calls::Described{fields});
}

Next open_feed(Call& call, const map_calls::OpenFeed&) {
  OneSidedHost* const host = OneSidedHost::of(call.connection());
  const std::shared_ptr<tree::MapCore>& core = host_map_of(call).core;
  if (host == nullptr || !core->options.versions) return call.fail({Code::unsupported, 0, 0});
  const auto place = IndexedReads::of(call.connection(), *host).follow(core);
  if (!place) return call.fail(place.error());
  std::string fields;
  add_field(fields, wire::FieldKind::feed, base::bytes_of(*place));
  return answer(call, map_calls::Described{fields});
}

Next count_leaves_read(Call& call, const map_calls::CountLeaves& asked) {
  const std::size_t wanted = asked.most != 0 ? asked.most : tree::LeafHeat::kLeavesMax;
  std::string rows;
  for (const auto& [lid, answers] :
       host_map_of(call).core->heat.most_read(wanted, base::monotonic_ns())) {
    const wire::LeafCount row{lid, answers};
    rows += base::bytes_of(row);
  }
  if (!call.response_fits(rows.size())) return call.writable();
  const LinkSide* const side = call.connection().side.get();
  const IndexHost* const index = side != nullptr ? IndexHost::of(side->endpoint) : nullptr;
  const std::uint64_t key = index != nullptr ? index->keyed_key(asked.map) : 0;
  return answer(call, map_calls::LeavesCounted{key, rows});
}

const Offload kOneSidedOffloads[] = {
    serve_map<map_calls::OpenReads, open_reads>({.for_executor = &kTakesItems<take_end>}),
    serve_map<map_calls::OpenIndex, open_index>({.for_executor = &kTakesItems<take_end>}),
    serve_map<map_calls::NextGeneration, next_generation>(),
    serve_map<map_calls::CountLeaves, count_leaves_read>(),
    serve_map<map_calls::OpenFeed, open_feed>(),
};

}  // namespace

std::span<const Offload> one_sided_offloads() { return kOneSidedOffloads; }

}  // namespace espalier::offload
