// SPDX-License-Identifier: Apache-2.0
// A reader that walks over copies, and records its answers. Of the store it has the bytes, a view
// made from the map's header, and a place in the epoch table.
#pragma once

#include <cstdint>
#include <utility>

#include "base/epoch.hpp"
#include "kinds/map/walk/walker.hpp"
#include "tests/support/copy_access.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {

/// Exposes one epoch while anything is in flight.
class EpochHold {
 public:
  explicit EpochHold(base::EpochSlot slot) : slot_(std::move(slot)) {}
  void stale() const {}
  [[nodiscard]] std::uint32_t begin() {
    if (in_flight_++ == 0) slot_.enter();
    return 0;
  }
  void end(std::uint32_t) {
    if (--in_flight_ == 0) slot_.exit();
  }
  void idle() const {}

 private:
  base::EpochSlot slot_;
  std::uint32_t in_flight_ = 0;
};

class CopyPlace {
 public:
  using AccessType = CopyAccess;
  using GuardType = EpochHold;
  static constexpr bool kWrites = false;

  CopyPlace(const tree::MapView& view, base::EpochSlot slot)
      : view_(view), guard_(std::move(slot)) {}
  [[nodiscard]] const tree::MapView& view() const { return view_; }
  [[nodiscard]] EpochHold& guard() { return guard_; }

 private:
  tree::MapView view_;
  EpochHold guard_;
};

/// Thread: one.
class CopyWalker {
 public:
  CopyWalker(tree::StoreCore& store, const tree::MapCore& map, std::uint32_t index, Clock& clock,
             std::uint32_t lanes, std::uint64_t seed,
             CopyMachine::Order order = CopyMachine::Order::random);

  void submit(Question question, const memory::HeldVersion* held = nullptr, wire::Ref hint = {}) {
    walker.submit(recorder.ask(std::move(question), held, hint));
  }
  /// Runs until all is answered.
  void drain() { run(walker, machine); }

  WalkRecorder recorder;
  CopyMachine machine;
  CopyPlace place;
  tree::Walker<CopyPlace> walker;
};

}  // namespace espalier::test

namespace espalier::tree {
extern template class Walker<test::CopyPlace>;
}  // namespace espalier::tree
