// SPDX-License-Identifier: Apache-2.0
// The walks of maps that one scheduler's requests are carried out by, and what handlers of maps ask
// for: the map, a walk of it, a version's release, memory for items.
//
// Of walks that run long only kLongWalks have a lane at a time; the lanes go to principals by turns
// (lane_queue.hpp), and a request that waits for one counts for nothing among those in flight.
// Short walks, which go in groups, wait for none of that.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "engine/call.hpp"
#include "engine/executor.hpp"
#include "engine/principal_ref.hpp"
#include "engine/registry.hpp"
#include "engine/typed_call.hpp"
#include "espalier/condition.hpp"
#include "espalier/types.hpp"
#include "kinds/map/offload/lane_queue.hpp"
#include "kinds/map/offload/map_table.hpp"
#include "kinds/map/offload/served_map.hpp"

namespace espalier::memory {
struct HeldVersion;
}
namespace espalier::tree {
class StagedValue;
}

namespace espalier::offload {

class HostMap;

class MapWalks final : public Executor, private Handler {
 public:
  /// Walks of many items that run together. Fewer than a map has lanes: short walks that need one
  /// find some free.
  static constexpr std::uint32_t kLongWalks = 24;
  /// A walk of so few items is none, whatever takes it.
  static constexpr std::uint32_t kShortWalkItems = 256;

  explicit MapWalks(const ExecutorContext& context);
  /// That of the request's scheduler.
  [[nodiscard]] static MapWalks& of(Call& call);

  bool admit(Request& request) override;
  bool turn() override;
  [[nodiscard]] bool has_news() const override { return !releases_.empty(); }
  void maintain() override { maps_.let_go_of_dropped(); }
  void make_room(std::size_t places) override;
  void drop(const Connection& connection) override;

  /// What goes with a request's walk.
  struct WalkTerms {
    const memory::HeldVersion* held = nullptr;
    Condition condition{};
    tree::StagedValue* staged = nullptr;
  };
  void walk(Request& request, const WalkTerms& terms);
  /// The same of a walk of the newest state with nothing that goes with it.
  void walk(Request& request);
  void wait_for_release(Request& request, std::uint64_t version) {
    releases_.push_back({&request, version});
  }
  [[nodiscard]] std::vector<std::byte> items_memory();
  void keep_memory(std::vector<std::byte> items);

 private:
  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  void begin_walk(Request& request, const WalkTerms& terms);
  void begin_long_walk(Request& request, const memory::HeldVersion* held);
  void give_lane_back(const Request& request, std::uint64_t items);
  bool go_on_deferred();
  bool go_on_in_lanes();
  bool go_on_released();
  void count_waiting();

  /// A walk that a step began inside another walk's epoch, where none may begin.
  struct Deferred {
    Request* request;
    WalkTerms terms;
  };
  /// Of a request whose walk has a lane, or waits for one.
  struct LongWalk {
    PrincipalRef account;
    std::uint64_t bytes = 0;  // that it has passed
  };
  struct WaitsForRelease {
    Request* request;
    std::uint64_t version;
  };

  static constexpr std::size_t kSpares = 32;  // memory of scans that is kept for others

  Scheduler& scheduler_;
  MapTable maps_;
  LaneQueue lanes_;
  std::size_t counted_ = 0;  // of those that wait for a lane, as the scheduler knows it
  std::vector<Deferred> deferred_;
  std::vector<Deferred> going_deferred_;  // of them, in this turn
  std::vector<LongWalk> long_walks_;      // of each place
  std::vector<WaitsForRelease> releases_;
  std::vector<std::vector<std::byte>> spare_items_;  // memory of scans that have ended
  bool in_walk_ = false;                             // a walk tells what it has found
};

/// What handlers of maps have for `executor`.
extern const ExecutorKind kMapWalks;

/// One of its answers in about 64 tells from which leaf it came: those that are read most are worth
/// a table in a switch.
void count_leaf(Request& request, std::uint64_t now_ns);

/// What handlers that kMapWalks carries out have for it, where walks of theirs deliver items.
struct TakesItems {
  bool (*take)(Call&, std::span<const Item>);  ///< false ends the walk
};
template <bool (*kTake)(Call&, std::span<const Item>)>
inline constexpr TakesItems kTakesItems{kTake};

/// As serve(), of a call on maps.
template <class Asked, Next (*kStep)(Call&, const Asked&)>
[[nodiscard]] constexpr Offload serve_map(CallHandler more = {}) {
  if (Asked::kCall.limits.map) more.executor = &kMapWalks;
  return serve<Asked, kStep>(more);
}

/// What the walk that the last step began has found. What it points to is there until the step
/// returns. Null: this step was not called by a walk. Requires: kMapWalks carries it out.
[[nodiscard]] inline const Completion* ended_walk(const Call& call) {
  return static_cast<const Completion*>(call.from_executor());
}

/// The same of a call whose step is over when its walk has ended: `kWalked` does what is left, and
/// the request is not read again.
template <class Asked, Next (*kStep)(Call&, const Asked&),
          Next (*kWalked)(Call&, const Completion&)>
[[nodiscard]] constexpr Offload serve_walk(CallHandler more = {}) {
  Offload made = serve_map<Asked, kStep>(more);
  made.step = [](Call& call) {
    const Completion* const found = ended_walk(call);
    return found != nullptr ? kWalked(call, *found) : read_and_step<Asked, kStep>(call);
  };
  return made;
}

/// The map that a request works on. Requires: its row says that it names one, and its handler that
/// it is carried out by kMapWalks.
[[nodiscard]] inline ServedMap& map_of(Call& call) {
  return static_cast<ServedMap&>(*call.request().works_on);
}
/// The same, for what only the host can do.
[[nodiscard]] HostMap& host_map_of(Call& call);

/// The walk of a request. Requires: a step of it has made one.
[[nodiscard]] inline espalier::Request& walk_of(Request& request) {
  return request.executor_state.get<espalier::Request>();
}
/// The walk that a step fills in before it ends with begin_walk(); what it points to must live
/// until that has ended.
inline espalier::Request& new_walk(Call& call, Op op) {
  espalier::Request& walk = call.request().executor_state.make<espalier::Request>();
  walk.op = op;
  walk.key = call.key();
  return walk;
}
/// How a step ends that goes on when its walk has ended: ended_walk() is then what it found. The
/// walk is the one that the step has filled in (new_walk); the step then runs inside its epoch.
inline Next begin_walk(Call& call) {
  MapWalks::of(call).walk(call.request());
  return call.handed_over();
}
inline Next begin_walk(Call& call, const memory::HeldVersion* held,
                       const Condition& condition = {}) {
  MapWalks::of(call).walk(call.request(), {held, condition, nullptr});
  return call.handed_over();
}
/// Of a write whose value is there already; it stays until the walk has ended.
inline Next begin_walk(Call& call, tree::StagedValue& staged) {
  MapWalks::of(call).walk(call.request(), {nullptr, {}, &staged});
  return call.handed_over();
}
/// How a step ends that goes on when its map has released a version.
inline Next wait_for_release(Call& call, std::uint64_t version) {
  MapWalks::of(call).wait_for_release(call.request(), version);
  return call.handed_over();
}
/// Memory for the items of a scan, empty: what an earlier scan left, if there is any.
[[nodiscard]] inline std::vector<std::byte> items_memory(Call& call) {
  return MapWalks::of(call).items_memory();
}
/// Gives it back, for another scan or to the system.
inline void keep_memory(Call& call, std::vector<std::byte> items) {
  MapWalks::of(call).keep_memory(std::move(items));
}

}  // namespace espalier::offload
