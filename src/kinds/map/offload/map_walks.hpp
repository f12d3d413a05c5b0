// SPDX-License-Identifier: Apache-2.0
// Executes the walks of one scheduler's requests on maps. Interface for handlers: walk_call.hpp.
//
// At most kLongWalks long walks have a lane at a time; lanes are shared fairly between principals
// (lane_queue.hpp), and a request that waits for a lane does not count as in flight. Short walks,
// which run in groups, need no lane.
//
// Thread: that of the scheduler.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/executor.hpp"
#include "engine/principal_ref.hpp"
#include "espalier/condition.hpp"
#include "espalier/types.hpp"
#include "kinds/map/offload/lane_queue.hpp"
#include "kinds/map/offload/map_table.hpp"
#include "kinds/map/offload/served_map.hpp"

namespace espalier::memory {
struct HeldVersion;
class StagedBytes;
}  // namespace espalier::memory

namespace espalier::offload {

class Call;
class Scheduler;

class MapWalks final : public Executor, private Handler {
 public:
  /// Limit on concurrent walks of many items. Fewer than the lanes of a map, so that short walks
  /// that need a lane find one.
  static constexpr std::uint32_t kLongWalks = 24;
  /// A walk of at most this many items is not long.
  static constexpr std::uint32_t kShortWalkItems = 256;

  explicit MapWalks(const ExecutorContext& context);
  /// That of the request's scheduler.
  [[nodiscard]] static MapWalks& of(Call& call);

  bool admit(Request& request) override;
  bool turn() override;
  /// If a log makes records durable, it calls when more are (go_on_released).
  [[nodiscard]] bool has_news() const override { return waits_for_release() && !by_records(); }
  [[nodiscard]] bool waits_for_release() const override {
    return !releases_.empty() || !kept_back_.empty();
  }
  bool go_on_released() override;
  void maintain() override { maps_.let_go_of_dropped(); }
  void make_room(std::size_t places) override;
  void drop(const Connection& connection) override;

  /// The context of a request's walk.
  struct WalkTerms {
    const memory::HeldVersion* held = nullptr;
    Condition condition{};
    memory::StagedBytes* staged = nullptr;
    tree::Addition* addition = nullptr;
  };
  void walk(Request& request, const WalkTerms& terms);
  /// A walk of the newest state, without context.
  void walk(Request& request);
  void wait_for_release(Request& request, std::uint64_t version);
  [[nodiscard]] std::vector<std::byte> items_memory();
  void keep_memory(std::vector<std::byte> items);

 private:
  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  void begin_walk(Request& request, const WalkTerms& terms);
  void begin_long_walk(Request& request, const memory::HeldVersion* held);
  void give_lane_back(const Request& request, std::uint64_t items);
  [[nodiscard]] bool by_records() const;
  void keep_back(Request& request, const WalkTerms& terms);
  void await_release();
  bool go_on_deferred();
  bool go_on_kept_back();
  bool go_on_in_lanes();

  /// A walk requested by a step inside another walk's epoch, where none may begin.
  struct Deferred {
    Request* request;
    WalkTerms terms;
  };
  /// Of a request whose walk has a lane, or waits for one.
  struct LongWalk {
    PrincipalRef account;
    std::uint64_t bytes = 0;  // bytes passed
  };
  struct WaitsForRelease {
    Request* request;
    std::uint64_t version;
  };

  static constexpr std::size_t kSpares = 32;  // buffers of scans kept for reuse

  Scheduler& scheduler_;
  MapTable maps_;
  LaneQueue lanes_;
  std::vector<Deferred> deferred_;
  std::vector<Deferred> going_deferred_;  // those being begun in this turn
  std::vector<Deferred> kept_back_;       // writes delayed until others are released
  std::vector<LongWalk> long_walks_;      // by request slot
  std::vector<WaitsForRelease> releases_;
  std::vector<std::vector<std::byte>> spare_items_;  // buffers of ended scans
  bool in_walk_ = false;                             // whether a walk is completing
};

}  // namespace espalier::offload
