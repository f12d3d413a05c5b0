// SPDX-License-Identifier: Apache-2.0
// The walks of maps that one scheduler's requests are carried out by. What handlers of maps ask of
// it: walk_call.hpp.
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
  /// Where a log makes records durable, it is asked when more is (go_on_released).
  [[nodiscard]] bool has_news() const override { return waits_for_release() && !by_records(); }
  [[nodiscard]] bool waits_for_release() const override {
    return !releases_.empty() || !kept_back_.empty();
  }
  bool go_on_released() override;
  void maintain() override { maps_.let_go_of_dropped(); }
  void make_room(std::size_t places) override;
  void drop(const Connection& connection) override;

  /// What goes with a request's walk.
  struct WalkTerms {
    const memory::HeldVersion* held = nullptr;
    Condition condition{};
    memory::StagedBytes* staged = nullptr;
    tree::Addition* addition = nullptr;
  };
  void walk(Request& request, const WalkTerms& terms);
  /// The same of a walk of the newest state with nothing that goes with it.
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
  std::vector<Deferred> deferred_;
  std::vector<Deferred> going_deferred_;  // of them, in this turn
  std::vector<Deferred> kept_back_;       // writes that may not begin yet
  std::vector<LongWalk> long_walks_;      // of each place
  std::vector<WaitsForRelease> releases_;
  std::vector<std::vector<std::byte>> spare_items_;  // memory of scans that have ended
  bool in_walk_ = false;                             // a walk tells what it has found
};

}  // namespace espalier::offload
