// SPDX-License-Identifier: Apache-2.0
// For tests: simulated nodes on one thread, whose maps are written to between any two steps of a
// cut; checks whether the result of a cut ever existed at one moment.
//
// A seed decides when writes come, when time passes, when a node executes a request, and whether a
// release was under way when a hold was granted.
//
// Thread: one.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <set>
#include <string>
#include <vector>

#include "base/random.hpp"
#include "shards/cut_steps.hpp"

namespace espalier::client {

struct CutReached {
  std::uint64_t cuts = 0;
  std::uint64_t held = 0;    ///< of them, those that took holds
  std::uint64_t busy = 0;    ///< that came to nothing
  std::uint64_t broken = 0;  ///< holds that ended too early
};

class CutWorld {
 public:
  CutWorld(std::uint64_t seed, std::size_t nodes) : random_(seed), versions_(nodes) {
    for (std::size_t i = 0; i < nodes; ++i) parts_.push_back(std::make_unique<Part>(*this, i));
    note();
  }

  /// From now on no node grants holds.
  void grant_none() { grants_none_ = true; }

  /// Takes one cut. `writes_in`: one step in so many brings writes; 0: none. `pause_after`: number
  /// of tries to hold after which writes stop. Returns the mistake.
  std::string cut(std::uint64_t writes_in, CutReached& reached, int pause_after = 200) {
    writes_in_ = writes_in;
    states_ = {versions_};
    granted_ = ended_ = 0;
    std::vector<CutPart*> parts;
    for (const auto& part : parts_) parts.push_back(part.get());
    int tries = 200;
    const auto taken = cut_all(
        parts, [](const Error& error, std::size_t) { return error; },
        [&] {
          now_ += random_.below(60'000'000);
          step();
          if (--pause_after == 0) writes_in_ = 0;
          return --tries != 0;
        });
    if (granted_ != 0) ++reached.held;
    reached.broken += broken_;
    broken_ = 0;
    if (granted_ != ended_) return "a hold was granted and not ended";
    const auto asked = [](const auto& part) { return part->asked(); };
    if (twice_ || std::ranges::any_of(parts_, asked)) return "what was begun was not finished";
    if (!taken) {
      if (taken.error().code != Code::busy) return message(taken.error());
      ++reached.busy;
      return {};
    }
    ++reached.cuts;
    std::vector<Version> cut;
    for (const auto& part : parts_) cut.push_back(part->held_version());
    if (!states_.contains(cut)) return "the versions were never there together";
    return {};
  }

 private:
  static constexpr std::uint64_t kHoldNs = 1'000'000;
  static constexpr std::uint64_t kApartNs = 50'000'000;

  class Part final : public CutPart {
   public:
    Part(CutWorld& world, std::size_t number) : world_(world), number_(number) {}
    void close() override { world_.step(); }
    bool begin_open() override { return begin(Asked::open); }
    Result<void> finish_open() override {
      finish(Asked::open);
      return {};
    }
    [[nodiscard]] Version held_version() const override { return snapshot_; }
    bool begin_collect() override { return begin(Asked::collect); }
    Result<Version> finish_collect() override {
      finish(Asked::collect);
      return answered_;
    }
    bool begin_hold() override { return begin(Asked::hold); }
    Result<void> finish_hold() override {
      finish(Asked::hold);
      if (!grants_) return fail(Code::busy);
      return {};
    }
    bool begin_confirm() override { return begin(Asked::confirm); }
    Result<std::optional<Version>> finish_confirm() override {
      finish(Asked::confirm);
      if (!stood_) return std::optional<Version>{};
      return std::optional(answered_);
    }
    /// Whether releases wait.
    [[nodiscard]] bool held() const { return until_ > world_.now_; }
    [[nodiscard]] bool asked() const { return asked_ != Asked::nothing; }

   private:
    enum class Asked : std::uint8_t { nothing, open, collect, hold, confirm };

    bool begin(Asked what) {
      if (asked()) world_.twice_ = true;
      asked_ = what;
      done_ = false;
      world_.step();
      if (world_.random_.below(2) == 0) act();
      world_.step();
      return true;
    }
    void finish(Asked what) {
      if (asked_ != what) world_.twice_ = true;
      world_.step();
      if (!done_) act();
      asked_ = Asked::nothing;
      world_.step();
    }
    // What the node does, when it comes to it.
    void act() {
      done_ = true;
      answered_ = world_.versions_[number_];
      if (asked_ == Asked::open) snapshot_ = answered_;
      if (asked_ == Asked::hold) {
        grants_ =
            !world_.grants_none_ && (!granted_before_ || world_.now_ - granted_ns_ >= kApartNs);
        if (!grants_) return;
        granted_before_ = true;
        granted_ns_ = world_.now_;
        until_ = world_.now_ + kHoldNs;
        ++world_.granted_;
        on_its_way_ = world_.random_.below(2) == 0;
      }
      if (asked_ == Asked::confirm) {
        stood_ = held();
        until_ = 0;
        ++world_.ended_;
        if (!stood_) ++world_.broken_;
      }
    }

    friend class CutWorld;
    CutWorld& world_;
    const std::size_t number_;
    Asked asked_ = Asked::nothing;
    bool done_ = false;
    bool grants_ = false;
    bool stood_ = false;
    bool granted_before_ = false;
    bool on_its_way_ = false;  // a version that a hold does not stop
    std::uint64_t granted_ns_ = 0;
    std::uint64_t until_ = 0;
    Version answered_ = 0;
    Version snapshot_ = 0;
  };

  void note() { states_.insert(versions_); }

  // Concurrent activity of other clients.
  void step() {
    now_ += random_.below(random_.below(40) == 0 ? 1'500'000 : 20'000);
    if (writes_in_ == 0 || random_.below(writes_in_) != 0) return;
    for (std::uint64_t n = random_.below(4); n != 0; --n) {
      Part& part = *parts_[writer_];
      if (part.held() && !part.on_its_way_) return;  // it waits to be released
      part.on_its_way_ = false;
      ++versions_[writer_];
      note();
      writer_ = (writer_ + 1) % parts_.size();
    }
  }

  base::Random random_;
  std::vector<Version> versions_;
  std::vector<std::unique_ptr<Part>> parts_;
  std::set<std::vector<Version>> states_;  // since the cut began
  std::size_t writer_ = 0;                 // whose turn is next
  std::uint64_t writes_in_ = 0;
  std::uint64_t now_ = 1;
  std::uint64_t granted_ = 0;
  std::uint64_t ended_ = 0;
  std::uint64_t broken_ = 0;
  bool twice_ = false;
  bool grants_none_ = false;
};

/// Many cuts of many seeds; returns the first mistake.
inline std::string wrong_cuts(std::uint64_t seed, std::uint64_t worlds, CutReached& reached) {
  for (std::uint64_t i = 0; i < worlds; ++i) {
    CutWorld world(seed + i, 2 + i % 3);
    for (std::uint64_t n = 0; n < 20; ++n) {
      const std::string wrong = world.cut(n % 5, reached);
      if (!wrong.empty()) return "seed " + std::to_string(seed + i) + ": " + wrong;
    }
  }
  return {};
}

}  // namespace espalier::client
