// SPDX-License-Identifier: Apache-2.0
// Offloads on ranges: scans, floor, counts.
//
// A scan of more than kStepBytes, or a count of more than kStepItems, takes several walks. The
// version of the first walk is held, inside that walk's epoch, for the others, so that all read the
// same state; between two walks other requests run, and the client receives items. With versions
// off nothing can be held: each walk reads the newest state.
#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "engine/connection.hpp"
#include "engine/payload_reader.hpp"
#include "engine/typed_call.hpp"
#include "kinds/map/item_calls.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/long_value.hpp"
#include "kinds/map/offload/map_offloads.hpp"
#include "kinds/map/offload/reads.hpp"
#include "kinds/map/offload/served_map.hpp"
#include "kinds/map/offload/snapshot.hpp"
#include "kinds/map/offload/walk_answer.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/write/estimate.hpp"
#include "kinds/map/write/map_core.hpp"
#include "kinds/map/write/range_borders.hpp"
#include "rings/ring.hpp"

namespace espalier::offload {
namespace {

constexpr std::size_t kStepBytes = std::size_t{32} << 10;
constexpr std::uint64_t kStepItems = 8192;

/// State of a scan or count between its walks.
struct RangeState {
  std::shared_ptr<HeldSnapshot> held;  // the version read at: a snapshot's, or the first walk's
  std::vector<std::byte> items;        // as encoded in the answer
  std::unique_ptr<LongAnswer> long_answer;  // these items, the last with a long value
  std::string last_key;                     // key of the last delivered item
  std::string from;  // begin of the current walk: the last key of the one before
  std::uint64_t delivered = 0;
  std::uint64_t delivered_before = 0;  // `delivered` at the begin of the current walk
  std::uint64_t limit = 0;             // 0: none
  std::uint64_t read_version = 0;      // of the first walk
  bool going_on = false;               // the current walk is not the first
  bool skip_last = false;              // the walk begins with `from`, which was delivered
  bool more = false;                   // stopped before its end
  bool once_more = false;              // the walk is to be repeated
  bool cancelled = false;              // the client wants no more
};

/// The range of any of these calls.
struct AskedRange {
  Op op = Op::scan;
  std::string_view high{};
  std::uint32_t limit = 0;  // 0: none
  std::optional<std::uint64_t> snapshot{};
};

Next start_range(Call& call, RangeState& state, const AskedRange& asked) {
  const ReadSource source = read_source(call, asked.snapshot, state.held);
  if (!source.found) return call.fail({Code::not_found, 0, 0});
  state.held = source.snapshot;
  state.items = items_memory(call);
  state.limit = asked.limit;
  state.more = false;
  state.once_more = false;
  espalier::Request& walk = new_walk(call, asked.op);
  walk.high = asked.high;
  walk.limit = static_cast<std::uint32_t>(state.limit);
  return begin_walk(call, source.held());
}

// Begins the next walk of the scan, or repeats the current one.
Next go_on_range(Call& call, RangeState& state) {
  espalier::Request& walk = walk_of(call.request());
  state.items = items_memory(call);
  state.more = false;
  if (!std::exchange(state.once_more, false)) state.from.swap(state.last_key);
  state.delivered_before = state.delivered;
  state.skip_last = walk.op != Op::scan_reverse;  // reverse scans exclude their high end
  (state.skip_last ? walk.key : walk.high) = state.from;
  const std::uint64_t left = state.limit == 0 ? 0 : state.limit - state.delivered;
  walk.limit = left == 0 ? 0 : static_cast<std::uint32_t>(left + (state.skip_last ? 1 : 0));
  return begin_walk(call, state.held ? &state.held->version() : nullptr);
}

// Appends an item with this part of its value.
void append(std::vector<std::byte>& to, const Item& item, std::string_view value) {
  const auto header = wire::item_header(item.version, item.key.size(), item.value.size());
  const std::size_t at = to.size();
  to.resize(at + sizeof header + item.key.size() + value.size());
  std::byte* out = to.data() + at;
  std::memcpy(out, &header, sizeof header);
  rings::copy_few(out + sizeof header, item.key.data(), item.key.size());
  rings::copy_few(out + sizeof header + item.key.size(), value.data(), value.size());
}

// Copies the value inline if it cannot stay in place.
void append_long(Call& call, RangeState& state, const Item& item) {
  append(state.items, item, {});
  state.long_answer = long_answer(call, text_of(state.items), item.value);
  if (state.long_answer) return;
  const auto value = bytes_of_text(item.value);
  state.items.insert(state.items.end(), value.begin(), value.end());
}

// The first item of a continued walk was delivered by the walk before. Without a held version it
// may be gone; the floor of its key is then an item delivered still earlier.
std::span<const Item> new_items(RangeState& state, std::span<const Item> items) {
  if (!state.skip_last || items.empty()) return items;
  state.skip_last = false;
  return items.front().key <= state.from ? items.subspan(1) : items;
}

// Records where to continue. Returns false, which ends the walk.
bool stop(RangeState& state, const Item& last) {
  state.more = true;
  state.last_key.assign(last.key);
  return false;
}

bool take_items(Call& call, std::span<const Item> items) {
  RangeState& state = call.state<RangeState>();
  for (const Item& item : new_items(state, items)) {
    if (item.value.size() > kLongValueBytes) [[unlikely]] {
      append_long(call, state, item);
    } else {
      append(state.items, item, item.value);
    }
    ++state.delivered;
    const bool all = state.limit != 0 && state.delivered >= state.limit;
    if (all || state.items.size() >= kStepBytes || state.long_answer) return stop(state, item);
  }
  return true;
}

bool count_items(Call& call, std::span<const Item> items) {
  RangeState& state = call.state<RangeState>();
  const auto fresh = new_items(state, items);
  const std::uint64_t before = state.delivered;
  state.delivered += fresh.size();
  if (fresh.empty() || before / kStepItems == state.delivered / kStepItems) return true;
  return stop(state, fresh.back());
}

// A waiting scan keeps no memory for items.
void give_items_back(Call& call, RangeState& state) {
  keep_memory(call, std::exchange(state.items, std::vector<std::byte>()));
}

wire::ResponseHeader header_of(const RangeState& state) {
  wire::ResponseHeader header{};
  header.version = state.delivered;
  header.read_version = state.read_version;
  return header;
}

// The answer frees the state, so the items are moved out of it first.
Next answer_items(Call& call, const wire::ResponseHeader& header, std::vector<std::byte> items) {
  const Next next =
      call.answer(header, {{reinterpret_cast<const char*>(items.data()), items.size()}});
  keep_memory(call, std::move(items));
  return next;
}

[[nodiscard]] bool is_over(const RangeState& state) {
  return !state.more || state.cancelled || (state.limit != 0 && state.delivered >= state.limit);
}

// Sends what the last walk has found to the client.
Next deliver(Call& call, RangeState& state) {
  const bool over = is_over(state);
  if (state.long_answer) {
    if (!state.long_answer->is_whole()) return state.long_answer->copy(call);
    state.long_answer->header = header_of(state);
    if (over) return state.long_answer->answer(call);
    state.long_answer->send_items(call, header_of(state));
    state.long_answer.reset();
  } else {
    if (over) return answer_items(call, header_of(state), std::move(state.items));
    const std::string_view items = text_of(state.items);
    if (!items.empty()) call.send_chunk(wire::ChunkKind::items, header_of(state), {items});
  }
  give_items_back(call, state);
  state.going_on = true;
  return call.writable();
}

// A walk has ended.
Next ranged(Call& call, RangeState& state, const Completion& done) {
  if (!done.ok) return call.fail(done.error);
  if (!state.going_on) state.read_version = done.read_version;
  const std::size_t bytes =
      state.long_answer ? state.long_answer->payload_bytes() : state.items.size();
  if (bytes != 0 && !call.response_fits(bytes)) {
    // While the client's ring is full, only the key to continue from is kept, not the items.
    state.long_answer.reset();
    give_items_back(call, state);
    state.delivered = state.delivered_before;
    state.once_more = true;
    return call.writable();
  }
  if (!is_over(state) && !state.held) {
    state.held = map_of(call).hold(done.read_version, call.connection().peer);
  }
  return deliver(call, state);
}

Next read_range(Call& call, const AskedRange& asked) {
  RangeState& state = call.state<RangeState>();
  if (const Completion* const done = ended_walk(call)) return ranged(call, state, *done);
  if (state.long_answer) return deliver(call, state);
  if (state.cancelled) return call.answer(header_of(state));
  return state.going_on ? go_on_range(call, state) : start_range(call, state, asked);
}

template <Op kOp, class Asked>
Next scan(Call& call, const Asked& asked) {
  return read_range(call, {kOp, asked.high, asked.limit, asked.snapshot});
}

Next count(Call& call, const map_calls::Count& asked) {
  return read_range(call, {Op::scan, asked.high, 0, asked.snapshot});
}

void cancel_range(Call& call) { call.state<RangeState>().cancelled = true; }

Next found_floor(Call& call, const Completion& found) {
  if (!found.ok) return call.fail(found.error);
  const std::size_t item_bytes = sizeof(wire::ItemHeader) + found.key.size() + found.value.size();
  if (!call.response_fits(item_bytes)) return call.writable();
  wire::ResponseHeader header{};
  header.read_version = found.read_version;
  if (!found.found) return call.answer(header);
  header.flags = wire::kFound;
  header.version = found.version;
  if (found.value.size() > kLongValueBytes) [[unlikely]] {
    std::vector<std::byte> head;
    append(head, {found.key, found.value, found.version}, {});
    if (const auto begun = begin_long(call, header, text_of(head), found.value)) return *begun;
  }
  const auto item = wire::item_header(found.version, found.key.size(), found.value.size());
  return call.answer(header, {base::bytes_of(item), found.key, found.value});
}

Next floor(Call& call, const map_calls::Floor& asked) {
  if (const Completion* const found = ended_walk(call)) return found_floor(call, *found);
  ItemReadState& state = call.state<ItemReadState>();
  if (state.answer) return go_on(call, *state.answer);
  const ReadSource source = read_source(call, asked.snapshot, state.held);
  if (!source.found) return call.fail({Code::not_found, 0, 0});
  state.held = source.snapshot;
  new_walk(call, Op::floor);
  return begin_walk(call, source.held());
}

Next count_estimate(Call& call, const map_calls::CountEstimate& asked) {
  HostMap& map = host_map_of(call);
  const auto estimate = tree::estimate_range(map.calls, *map.core, asked.low, asked.high);
  if (!estimate) return call.fail(estimate.error());
  return answer(call, map_calls::Estimated{*estimate});
}

Next range_borders(Call& call, const map_calls::RangeBorders& asked) {
  HostMap& map = host_map_of(call);
  std::string keys;
  for (const std::string& key :
       tree::range_borders(map.calls, *map.core, asked.low, asked.high, asked.parts)) {
    const auto bytes = static_cast<std::uint16_t>(key.size());
    keys.append(base::bytes_of(bytes)).append(key);
  }
  if (!call.response_fits(keys.size())) return call.writable();
  return answer(call, map_calls::BordersFound{keys});
}

constexpr CallHandler kScans{
    .for_executor = &kTakesItems<take_items>, .cancel = cancel_range, .sampled = count_leaf};
constexpr CallHandler kCounts{.for_executor = &kTakesItems<count_items>, .cancel = cancel_range};

const Offload kRangeOffloads[] = {
    serve_map<map_calls::Scan, scan<Op::scan>>(kScans),
    serve_map<map_calls::ScanReverse, scan<Op::scan_reverse>>(kScans),
    serve_map<map_calls::ScanFloor, scan<Op::scan_floor>>(kScans),
    serve_map<map_calls::Floor, floor>({.sampled = count_leaf}),
    serve_map<map_calls::Count, count>(kCounts),
    serve_map<map_calls::CountEstimate, count_estimate>(),
    serve_map<map_calls::RangeBorders, range_borders>(),
};

}  // namespace

std::span<const Offload> range_offloads() { return kRangeOffloads; }

}  // namespace espalier::offload
