// SPDX-License-Identifier: Apache-2.0
// Offloads on ranges: scans, floor, counts.
//
// A scan of more than kStepBytes, and a count of more than kStepItems, takes several walks. The
// first one's version is held for the others, inside the first one's epoch, so that all of them
// read the same; between two walks other requests go on, and the client takes what was sent. With
// the map's versions off there is nothing to hold: each walk then reads what is there.
#include <utility>

#include "offload/engine.hpp"
#include "offload/reads.hpp"
#include "tree/write/estimate.hpp"

namespace espalier::offload {
namespace {

constexpr std::size_t kStepBytes = std::size_t{32} << 10;
constexpr std::uint64_t kStepItems = 8192;

Op op_of(const InFlight& r) {
  switch (r.offload->id) {
    case wire::OffloadId::scan_reverse: return Op::scan_reverse;
    case wire::OffloadId::scan_floor: return Op::scan_floor;
    case wire::OffloadId::floor: return Op::floor;
    default: return Op::scan;
  }
}

void start_range(Engine& engine, InFlight& r) {
  ReadSource source;
  if (!source.take(engine, r)) return;
  Steps& steps = r.begin_steps();
  steps.held = source.snapshot();
  steps.items = engine.items_memory();
  r.request = {};
  r.request.op = op_of(r);
  r.request.key = r.key();
  r.request.high = source.payload();
  const bool counts = r.offload->id == wire::OffloadId::count;
  steps.limit = counts || r.request.op == Op::floor ? 0 : r.header.argument;
  r.request.limit = static_cast<std::uint32_t>(steps.limit);
  engine.walk(r, source.held());
}

void ranged(Engine& engine, InFlight& r, const Completion& done);

// The next walk of the same scan, or the one in hand once more.
void go_on_range(Engine& engine, InFlight& r) {
  Steps& steps = *r.steps;
  if (steps.cancelled) return ranged(engine, r, steps.outcome);
  if (!steps.going_on) return start_range(engine, r);
  steps.more = false;
  if (!std::exchange(steps.once_more, false)) steps.from.swap(steps.last_key);
  steps.delivered_before = steps.delivered;
  steps.skip_last = r.request.op != Op::scan_reverse;  // that one's range excludes its high end
  (steps.skip_last ? r.request.key : r.request.high) = steps.from;
  const std::uint64_t left = steps.limit == 0 ? 0 : steps.limit - steps.delivered;
  r.request.limit = left == 0 ? 0 : static_cast<std::uint32_t>(left + (steps.skip_last ? 1 : 0));
  engine.walk(r, steps.held ? &steps.held->version() : nullptr);
}

void append(std::vector<std::byte>& to, const Item& item) {
  const auto header = wire::item_header(item.version, item.key.size(), item.value.size());
  const std::size_t at = to.size();
  to.resize(at + sizeof header + item.key.size() + item.value.size());
  std::byte* out = to.data() + at;
  std::memcpy(out, &header, sizeof header);
  copy_few(out + sizeof header, item.key.data(), item.key.size());
  copy_few(out + sizeof header + item.key.size(), item.value.data(), item.value.size());
}

// The first item of a walk that goes on was delivered by the one before. Where no version is held
// it may be gone; the floor of its key then is one that was delivered still earlier.
std::span<const Item> new_items(Steps& steps, std::span<const Item> items) {
  if (!steps.skip_last || items.empty()) return items;
  steps.skip_last = false;
  return items.front().key <= steps.from ? items.subspan(1) : items;
}

// Keeps where to go on. Returns false, which ends the walk.
bool stop(Steps& steps, const Item& last) {
  steps.more = true;
  steps.last_key.assign(last.key);
  return false;
}

bool take_items(Engine&, InFlight& r, std::span<const Item> items) {
  Steps& steps = *r.steps;
  for (const Item& item : new_items(steps, items)) {
    append(steps.items, item);
    ++steps.delivered;
    const bool all = steps.limit != 0 && steps.delivered >= steps.limit;
    if (all || steps.items.size() >= kStepBytes) return stop(steps, item);
  }
  return true;
}

bool count_items(Engine&, InFlight& r, std::span<const Item> items) {
  Steps& steps = *r.steps;
  const auto fresh = new_items(steps, items);
  const std::uint64_t before = steps.delivered;
  steps.delivered += fresh.size();
  if (fresh.empty() || before / kStepItems == steps.delivered / kStepItems) return true;
  return stop(steps, fresh.back());
}

// What was found waits for its client as keys to begin with, not as items: those need memory.
void walk_again(Engine& engine, InFlight& r) {
  Steps& steps = *r.steps;
  engine.keep_memory(std::exchange(steps.items, std::vector<std::byte>()));
  steps.delivered = steps.delivered_before;
  steps.once_more = true;
  engine.when_drained(r);
}

void ranged(Engine& engine, InFlight& r, const Completion& done) {
  Steps& steps = *r.steps;
  if (!done.ok) return engine.fail(r, done.error);
  if (!steps.going_on) steps.read_version = done.read_version;
  const bool all = steps.cancelled || (steps.limit != 0 && steps.delivered >= steps.limit);
  wire::ResponseHeader header{};
  header.version = steps.delivered;
  header.read_version = steps.read_version;
  const std::string_view items{reinterpret_cast<const char*>(steps.items.data()),
                               steps.items.size()};
  if (!items.empty() && !engine.response_fits(r, items.size())) {
    steps.outcome = done;
    return walk_again(engine, r);
  }
  if (!steps.more || all) return engine.answer(r, header, {items});
  if (!steps.held && r.map->core->options.versions) {
    steps.held = std::make_shared<HeldSnapshot>(r.map->core, done.read_version);
  }
  if (!items.empty()) {
    engine.send_items(r, header, {items});
    steps.items.clear();
  }
  steps.going_on = true;
  steps.outcome = done;  // for the case that nothing more is wanted
  engine.when_drained(r);
}

// What was asked for may have been answered by now; then there is nothing to cancel.
void start_cancel(Engine& engine, InFlight& r) {
  InFlight* const other = engine.find_in_flight(r, r.header.argument);
  if (other != nullptr && other->steps && other->offload->walked == ranged) {
    other->steps->cancelled = true;
  }
  engine.answer(r, {});
}

void found_floor(Engine& engine, InFlight& r, const Completion& done) {
  if (!done.ok) return engine.fail(r, done.error);
  const std::size_t item_bytes = sizeof(wire::ItemHeader) + done.key.size() + done.value.size();
  if (!engine.response_fits(r, item_bytes)) return engine.when_drained(r);
  wire::ResponseHeader header{};
  header.read_version = done.read_version;
  if (!done.found) return engine.answer(r, header);
  header.flags = wire::kFound;
  header.version = done.version;
  const auto item = wire::item_header(done.version, done.key.size(), done.value.size());
  engine.answer(r, header, {base::bytes_of(item), done.key, done.value});
}

void start_estimate(Engine& engine, InFlight& r) {
  tree::MapCore& core = *r.map->core;
  const auto estimate = tree::estimate_range(r.map->calls, core, r.key(), r.payload());
  if (!estimate) return engine.fail(r, estimate.error());
  wire::ResponseHeader header{};
  header.version = *estimate;
  engine.answer(r, header);
}

constexpr Limits kRange{.map = true, .payload_bytes_max = 65535, .at_snapshot = true};
constexpr Limits kEstimate{.map = true, .payload_bytes_max = 65535};

constexpr Offload range_offload(wire::OffloadId id, std::string_view name, std::string_view format,
                                std::string_view summary) {
  return {.id = id,
          .name = name,
          .format = format,
          .summary = summary,
          .limits = kRange,
          .start = start_range,
          .walked = ranged,
          .items = take_items,
          .resume = go_on_range};
}

const Offload kOffloads[] = {
    range_offload(wire::OffloadId::scan, "scan",
                  "key: low; argument: limit, 0 for none; snapshot; payload: high",
                  "answers the items of [low, high), ascending; empty bounds are none"),
    range_offload(wire::OffloadId::scan_reverse, "scan_reverse", "as scan",
                  "answers the same items, descending"),
    range_offload(wire::OffloadId::scan_floor, "scan_floor", "as scan",
                  "answers the items from the floor of low up to and including high"),
    {.id = wire::OffloadId::floor,
     .name = "floor",
     .format = "key; snapshot",
     .summary = "answers the item with the largest key not above this one",
     .limits = kRange,
     .start = start_range,
     .walked = found_floor,
     .items = take_items,
     .resume = start_range},
    {.id = wire::OffloadId::count,
     .name = "count",
     .format = "key: low; snapshot; payload: high",
     .summary = "answers how many items [low, high) has",
     .limits = kRange,
     .start = start_range,
     .walked = ranged,
     .items = count_items,
     .resume = go_on_range},
    {.id = wire::OffloadId::count_estimate,
     .name = "count_estimate",
     .format = "key: low; payload: high",
     .summary = "answers about how many items [low, high) has, at the cost of two descents",
     .limits = kEstimate,
     .start = start_estimate},
    {.id = wire::OffloadId::cancel,
     .name = "cancel",
     .format = "argument: the tag of a scan or count of the same response ring",
     .summary = "ends it early: it is answered with what it has",
     .limits = {},
     .start = start_cancel},
};

}  // namespace

std::span<const Offload> range_offloads() { return kOffloads; }

}  // namespace espalier::offload
