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

Op op_of(const Request& request) {
  switch (request.offload->id) {
    case wire::OffloadId::scan_reverse: return Op::scan_reverse;
    case wire::OffloadId::scan_floor: return Op::scan_floor;
    case wire::OffloadId::floor: return Op::floor;
    default: return Op::scan;
  }
}

void start_range(Engine& engine, Request& request) {
  ReadSource source;
  if (!source.take(engine, request)) return;
  RequestState& state = request.begin_state();
  state.held = source.snapshot();
  state.items = engine.items_memory();
  request.walk = {};
  request.walk.op = op_of(request);
  request.walk.key = request.key();
  request.walk.high = source.payload();
  const bool counts = request.offload->id == wire::OffloadId::count;
  state.limit = counts || request.walk.op == Op::floor ? 0 : request.header.argument;
  request.walk.limit = static_cast<std::uint32_t>(state.limit);
  engine.walk(request, source.held());
}

void ranged(Engine& engine, Request& request, const Completion& done);

// The next walk of the same scan, or the one in hand once more.
void go_on_range(Engine& engine, Request& request) {
  RequestState& state = *request.state;
  if (state.cancelled) return ranged(engine, request, state.outcome);
  if (!state.going_on) return start_range(engine, request);
  state.more = false;
  if (!std::exchange(state.once_more, false)) state.from.swap(state.last_key);
  state.delivered_before = state.delivered;
  state.skip_last = request.walk.op != Op::scan_reverse;  // that one's range excludes its high end
  (state.skip_last ? request.walk.key : request.walk.high) = state.from;
  const std::uint64_t left = state.limit == 0 ? 0 : state.limit - state.delivered;
  request.walk.limit = left == 0 ? 0 : static_cast<std::uint32_t>(left + (state.skip_last ? 1 : 0));
  engine.walk(request, state.held ? &state.held->version() : nullptr);
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
std::span<const Item> new_items(RequestState& state, std::span<const Item> items) {
  if (!state.skip_last || items.empty()) return items;
  state.skip_last = false;
  return items.front().key <= state.from ? items.subspan(1) : items;
}

// Keeps where to go on. Returns false, which ends the walk.
bool stop(RequestState& state, const Item& last) {
  state.more = true;
  state.last_key.assign(last.key);
  return false;
}

bool take_items(Engine&, Request& request, std::span<const Item> items) {
  RequestState& state = *request.state;
  for (const Item& item : new_items(state, items)) {
    append(state.items, item);
    ++state.delivered;
    const bool all = state.limit != 0 && state.delivered >= state.limit;
    if (all || state.items.size() >= kStepBytes) return stop(state, item);
  }
  return true;
}

bool count_items(Engine&, Request& request, std::span<const Item> items) {
  RequestState& state = *request.state;
  const auto fresh = new_items(state, items);
  const std::uint64_t before = state.delivered;
  state.delivered += fresh.size();
  if (fresh.empty() || before / kStepItems == state.delivered / kStepItems) return true;
  return stop(state, fresh.back());
}

// What was found waits for its client as keys to begin with, not as items: those need memory.
void walk_again(Engine& engine, Request& request) {
  RequestState& state = *request.state;
  engine.keep_memory(std::exchange(state.items, std::vector<std::byte>()));
  state.delivered = state.delivered_before;
  state.once_more = true;
  engine.on_writable(request);
}

void ranged(Engine& engine, Request& request, const Completion& done) {
  RequestState& state = *request.state;
  if (!done.ok) return engine.fail(request, done.error);
  if (!state.going_on) state.read_version = done.read_version;
  const bool all = state.cancelled || (state.limit != 0 && state.delivered >= state.limit);
  wire::ResponseHeader header{};
  header.version = state.delivered;
  header.read_version = state.read_version;
  const std::string_view items{reinterpret_cast<const char*>(state.items.data()),
                               state.items.size()};
  if (!items.empty() && !engine.response_fits(request, items.size())) {
    state.outcome = done;
    return walk_again(engine, request);
  }
  if (!state.more || all) return engine.answer(request, header, {items});
  if (!state.held && request.map->core->options.versions) {
    state.held = std::make_shared<HeldSnapshot>(request.map->core, done.read_version,
                                                request.connection->peer);
  }
  if (!items.empty()) {
    engine.send_items(request, header, {items});
    state.items.clear();
  }
  state.going_on = true;
  state.outcome = done;  // for the case that nothing more is wanted
  engine.on_writable(request);
}

// What was asked for may have been answered by now; then there is nothing to cancel.
void start_cancel(Engine& engine, Request& request) {
  Request* const other = engine.find_in_flight(request, request.header.argument);
  if (other != nullptr && other->state && other->offload->walked == ranged) {
    other->state->cancelled = true;
  }
  engine.answer(request, {});
}

void found_floor(Engine& engine, Request& request, const Completion& done) {
  if (!done.ok) return engine.fail(request, done.error);
  const std::size_t item_bytes = sizeof(wire::ItemHeader) + done.key.size() + done.value.size();
  if (!engine.response_fits(request, item_bytes)) return engine.on_writable(request);
  wire::ResponseHeader header{};
  header.read_version = done.read_version;
  if (!done.found) return engine.answer(request, header);
  header.flags = wire::kFound;
  header.version = done.version;
  const auto item = wire::item_header(done.version, done.key.size(), done.value.size());
  engine.answer(request, header, {base::bytes_of(item), done.key, done.value});
}

void start_estimate(Engine& engine, Request& request) {
  tree::MapCore& core = *request.map->core;
  const auto estimate =
      tree::estimate_range(request.map->calls, core, request.key(), request.payload());
  if (!estimate) return engine.fail(request, estimate.error());
  wire::ResponseHeader header{};
  header.version = *estimate;
  engine.answer(request, header);
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
