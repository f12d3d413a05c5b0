// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/map_walks.hpp"

#include <new>
#include <utility>

#include "base/assert.hpp"
#include "base/try_reserve.hpp"
#include "catalog/catalog.hpp"
#include "catalog/redo_sink.hpp"
#include "engine/connection.hpp"
#include "engine/scheduler.hpp"
#include "engine/services.hpp"
#include "kinds/map/format/shard.hpp"
#include "kinds/map/offload/host_map.hpp"
#include "kinds/map/offload/map_services.hpp"
#include "kinds/map/offload/walk_call.hpp"
#include "kinds/map/walk/walk_request.hpp"

namespace espalier::offload {
namespace {

constexpr std::size_t kSpareBytes = std::size_t{128} << 10;

// Whether the node's own shard has all keys that a request names.
[[gnu::noinline]] bool in_shard(const wire::ShardMap& map, const Request& request) {
  const Keys keys = request.offload->limits.keys;
  if (keys == Keys::none) return true;
  const wire::KeyBounds own = map.bounds(map.own);
  // The offload rejects keys that no map accepts.
  if (keys == Keys::one) return request.key().empty() || own.has(request.key());
  return own.has_range(request.key(), request.payload_behind_snapshot());
}

// Whether a walk may pass many items, and so needs a counted lane. Call after the offload has set
// the walk's final form.
bool is_long(const espalier::Request& walk) {
  const bool scan = walk.op == Op::scan || walk.op == Op::scan_reverse || walk.op == Op::scan_floor;
  return scan && (walk.limit == 0 || walk.limit > MapWalks::kShortWalkItems);
}

bool is_writing(const espalier::Request& walk) {
  return walk.op >= Op::put && walk.op <= Op::erase;
}

// A walk fails with busy for no other reason.
bool found_no_room(const Completion& completion) {
  return !completion.ok && completion.error.code == Code::busy;
}

// The hint for a read's walk, if it begins at the request's key: a continued scan begins elsewhere,
// and a descending one at the range's other end.
wire::Ref hint_of(const Request& request, const espalier::Request& walk) {
  const bool reads = !is_writing(walk) && walk.op != Op::scan_reverse;
  return reads && walk.key.data() == request.key().data() ? wire::Ref{request.header.hint}
                                                          : wire::Ref{};
}

// Whether a write must wait because too many of the map's writes wait for durable records.
bool must_wait(const ServedMap& map, const espalier::Request& walk) {
  return map.recorded && is_writing(walk) && !map.may_write();
}

}  // namespace

const ExecutorKind kMapWalks{[](const ExecutorContext& context) -> std::unique_ptr<Executor> {
  return std::make_unique<MapWalks>(context);
}};

MapWalks::MapWalks(const ExecutorContext& context)
    : scheduler_(context.scheduler),
      maps_(context.services, context.shard),
      lanes_(context.services.part<MapServices>().lane_rounds, kLongWalks) {
  spare_items_.reserve(kSpares);
}

void count_leaf(Request& request, std::uint64_t now_ns) {
  if (request.works_on == nullptr) return;  // the request was refused
  static_cast<ServedMap&>(*request.works_on).count_answer(request.key(), now_ns);
}

HostMap& host_map_of(Call& call) { return static_cast<HostMap&>(map_of(call)); }

MapWalks& MapWalks::of(Call& call) { return static_cast<MapWalks&>(call.executor(kMapWalks)); }

Next begin_walk(Call& call) {
  MapWalks::of(call).walk(call.request());
  return call.handed_over();
}

Next begin_walk(Call& call, const memory::HeldVersion* held, const Condition& condition) {
  MapWalks::of(call).walk(call.request(), {held, condition, nullptr});
  return call.handed_over();
}

Next begin_walk(Call& call, memory::StagedBytes& staged, const Condition& condition) {
  MapWalks::of(call).walk(call.request(), {nullptr, condition, &staged});
  return call.handed_over();
}

Next begin_walk(Call& call, tree::Addition& addition) {
  MapWalks::of(call).walk(call.request(), {.addition = &addition});
  return call.handed_over();
}

// A map without records waits for other writers only, and no durability event wakes it.
Next wait_for_release(Call& call, std::uint64_t version) {
  if (!map_of(call).recorded && call.catalog().redo() != nullptr) return call.again();
  MapWalks::of(call).wait_for_release(call.request(), version);
  return call.handed_over();
}

std::vector<std::byte> items_memory(Call& call) { return MapWalks::of(call).items_memory(); }

void keep_memory(Call& call, std::vector<std::byte> items) {
  MapWalks::of(call).keep_memory(std::move(items));
}

bool MapWalks::admit(Request& request) {
  ServedMap* const map = maps_.find(request.header.map);
  if (map == nullptr) {
    scheduler_.fail(request, {Code::not_found, 0, request.header.map});
    return false;
  }
  ++map->users;
  request.works_on = map;
  if (map->shard != nullptr && !in_shard(*map->shard, request)) [[unlikely]] {
    scheduler_.fail(request, {Code::wrong_shard, 0, map->shard->own});
    return false;
  }
  return true;
}

bool MapWalks::turn() {
  bool moved = maps_.step();
  if (!deferred_.empty()) moved = go_on_deferred() || moved;
  if (lanes_.waiting() != 0) [[unlikely]]
    moved = go_on_in_lanes() || moved;
  if (waits_for_release() && !by_records()) [[unlikely]]
    moved = go_on_released() || moved;
  const bool polls = waits_for_release() && !by_records();
  if (maps_.walking() || !deferred_.empty() || lanes_.waiting() != 0 || polls) ask_for_turn();
  return moved;
}

void MapWalks::make_room(std::size_t places) {
  const auto more = [places](auto&... lists) {
    (base::reserve_more(lists, places - lists.size()), ...);
  };
  more(deferred_, going_deferred_, kept_back_, releases_, long_walks_);
  long_walks_.resize(places);
}

void MapWalks::drop(const Connection& connection) {
  const auto is_of_it = [&](const auto& each) {
    if (each.request->connection != &connection) return false;
    scheduler_.release(*each.request);
    return true;
  };
  std::erase_if(kept_back_, is_of_it);
  std::erase_if(releases_, is_of_it);
  if (lanes_.waiting() == 0) return;
  lanes_.drop(connection, [this](const LaneQueue::Walk& walk) {
    long_walks_[walk.request->index] = {};
    scheduler_.release(*walk.request);
  });
}

void MapWalks::walk(Request& request) {
  ServedMap& map = static_cast<ServedMap&>(*request.works_on);
  if (in_walk_ || map.recorded || is_long(walk_of(request))) [[unlikely]]
    return walk(request, WalkTerms{});
  espalier::Request& asked = walk_of(request);
  asked.tag = request.index;
  map.submit(asked, *this, hint_of(request, asked));
  if (maps_.begin_walks(map)) ask_for_turn();
}

// Queued walks need a turn, too.
void MapWalks::walk(Request& request, const WalkTerms& terms) {
  if (in_walk_) {
    deferred_.push_back({&request, terms});
    return ask_for_turn();
  }
  if (must_wait(static_cast<ServedMap&>(*request.works_on), walk_of(request))) [[unlikely]] {
    return keep_back(request, terms);
  }
  if (!is_long(walk_of(request))) [[likely]]
    return begin_walk(request, terms);
  const memory::HeldVersion* const held = terms.held;
  ESPALIER_ASSERT(terms.condition.kind == ConditionKind::none);
  PrincipalRef& account = long_walks_[request.index].account;
  account = scheduler_.account_of(request);
  if (lanes_.take(account, *request.connection, {&request, held})) {
    begin_long_walk(request, held);
  } else {
    scheduler_.set_aside(request, Counted::by_connection);
    ask_for_turn();
  }
}

// The walk has its lane.
void MapWalks::begin_long_walk(Request& request, const memory::HeldVersion* held) {
  try {
    begin_walk(request, {held, {}, nullptr});
  } catch (const std::bad_alloc&) {
    give_lane_back(request, 0);
    throw;
  }
}

void MapWalks::begin_walk(Request& request, const WalkTerms& terms) {
  ServedMap& map = static_cast<ServedMap&>(*request.works_on);
  espalier::Request& asked = walk_of(request);
  asked.tag = request.index;
  const wire::Ref hint = hint_of(request, asked);
  if (terms.held == nullptr && terms.condition.kind == ConditionKind::none &&
      terms.staged == nullptr && terms.addition == nullptr) {
    map.submit(asked, *this, hint);
  } else {
    map.submit(
        {&asked, this, terms.held, hint, terms.condition, false, terms.staged, terms.addition});
  }
  if (maps_.begin_walks(map)) ask_for_turn();
}

void MapWalks::give_lane_back(const Request& request, std::uint64_t items) {
  const LongWalk walk = std::exchange(long_walks_[request.index], LongWalk{});
  lanes_.give_back(*walk.account, LaneRounds::cost(items, walk.bytes));
}

void MapWalks::done(const Completion& completion) {
  Request& request = scheduler_.place(completion.tag);
  if (is_long(walk_of(request))) [[unlikely]]
    give_lane_back(request, completion.items);
  ServedMap& map = static_cast<ServedMap&>(*request.works_on);
  const bool may_wait = map.recorded && is_writing(walk_of(request));
  if (may_wait && found_no_room(completion) && scheduler_.may_wait_for_room()) [[unlikely]]
    return scheduler_.begin_again_with_room(request);
  in_walk_ = true;
  scheduler_.go_on_with(request, &completion, may_wait ? map.take_unreleased() : 0);
  in_walk_ = false;
}

bool MapWalks::items(std::uint64_t tag, std::span<const Item> items) {
  Request& request = scheduler_.place(tag);
  if (is_long(walk_of(request))) {
    std::uint64_t& bytes = long_walks_[tag].bytes;
    for (const Item& item : items) bytes += item.key.size() + item.value.size();
  }
  Call call(scheduler_, request);
  try {
    return static_cast<const TakesItems*>(request.offload->for_executor)->take(call, items);
  } catch (const std::bad_alloc&) {  // ends the walk, and then the request
    request.no_memory = true;
    return false;
  }
}

// Begins the walks requested inside another walk's epoch.
bool MapWalks::go_on_deferred() {
  going_deferred_.swap(deferred_);
  for (const Deferred& each : going_deferred_) {
    if (each.request->connection->closing) {
      scheduler_.release(*each.request);
    } else {
      scheduler_.guarded(*each.request, [&] { walk(*each.request, each.terms); });
    }
  }
  going_deferred_.clear();
  return true;
}

bool MapWalks::by_records() const { return scheduler_.releases_by_records(); }

// A delayed request keeps no slot of the scheduler, since a disk may take seconds.
void MapWalks::keep_back(Request& request, const WalkTerms& terms) {
  if (request.connection->closing) return scheduler_.release(request);
  scheduler_.set_aside(request, Counted::by_connection);
  kept_back_.push_back({&request, terms});
  await_release();
}

void MapWalks::wait_for_release(Request& request, std::uint64_t version) {
  if (request.connection->closing) return scheduler_.release(request);
  scheduler_.set_aside(request, Counted::by_connection);
  releases_.push_back({&request, version});
  await_release();
}

void MapWalks::await_release() {
  if (by_records()) {
    scheduler_.expect_release();
  } else {
    ask_for_turn();
  }
}

// Begins, in order of arrival, writes that were delayed because too many waited for their release.
bool MapWalks::go_on_kept_back() {
  going_deferred_.swap(kept_back_);
  bool moved = false;
  for (const Deferred& each : going_deferred_) {
    Request& request = *each.request;
    if (must_wait(static_cast<const ServedMap&>(*request.works_on), walk_of(request))) {
      kept_back_.push_back(each);
      continue;
    }
    moved = true;
    scheduler_.take_back(request);
    scheduler_.guarded(request, [&] { walk(request, each.terms); });
  }
  going_deferred_.clear();
  return moved;
}

// Begins walks that waited for a lane.
bool MapWalks::go_on_in_lanes() {
  bool moved = false;
  while (const auto next = lanes_.next()) {
    scheduler_.take_back(*next->request);
    scheduler_.guarded(*next->request, [&] { begin_long_walk(*next->request, next->held); });
    moved = true;
  }
  return moved;
}

bool MapWalks::go_on_released() {
  bool moved = !kept_back_.empty() && go_on_kept_back();
  for (std::size_t i = 0; i < releases_.size();) {
    const WaitsForRelease waiting = releases_[i];
    const auto& map = static_cast<const ServedMap&>(*waiting.request->works_on);
    const bool released = map.released() >= waiting.version;
    if (!released && !map.failed()) {
      ++i;
      continue;
    }
    releases_[i] = releases_.back();
    releases_.pop_back();
    scheduler_.take_back(*waiting.request);
    if (released) {
      scheduler_.go_on_with(*waiting.request);
    } else {
      scheduler_.fail(*waiting.request, catalog::kRecordLost);
    }
    moved = true;
  }
  return moved;
}

void MapWalks::keep_memory(std::vector<std::byte> items) {
  if (items.capacity() == 0 || items.capacity() > kSpareBytes || spare_items_.size() >= kSpares) {
    return;
  }
  items.clear();
  spare_items_.push_back(std::move(items));
}

std::vector<std::byte> MapWalks::items_memory() {
  if (spare_items_.empty()) return {};
  std::vector<std::byte> items = std::move(spare_items_.back());
  spare_items_.pop_back();
  return items;
}

}  // namespace espalier::offload
