// SPDX-License-Identifier: Apache-2.0
// A store, its maps, and actors whose requests go on step by step, all on one thread: what several
// threads may do to each other, in the order that a test chooses.
//
// A walk that would go on for ever is given up after some steps and has no answer, so a test of a
// broken map ends too.
#pragma once

#include <cstdint>
#include <list>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "kinds/map/host/host_executor.hpp"
#include "tests/support/step_access.hpp"

namespace espalier::test {

inline const MapOptions kNoLog{.node_bytes = 512,
                                   .log_bytes = 0};  ///< every write makes a new leaf
inline const MapOptions kLog{.node_bytes = 512, .log_bytes = 128};

/// Where a read begins and as of when.
struct ReadFrom {
  const memory::HeldVersion* held = nullptr;  // null: the newest released version
  wire::Ref hint{};
};

/// One participant: its requests run one at a time.
class Actor : private Handler {
 public:
  Actor(tree::StoreCore& store, tree::MapCore& map, std::uint32_t index);

  /// Begins a request, which then stands at its first stop. Requires: none is under way.
  void begin(Op op, std::string_view key, std::string_view value = {}, const ReadFrom& from = {});
  /// A write under a condition.
  void begin(Op op, std::string_view key, std::string_view value, const Condition& condition);
  /// Takes one step. Returns whether the request is answered.
  bool step();
  /// Takes steps until the answer is there, or so many were taken. Returns whether it is there.
  bool finish(int steps_max = 2000);
  [[nodiscard]] bool answered() const { return answered_; }
  [[nodiscard]] const Completion& completion() const { return completion_; }
  /// Where the nodes lie that the request has come to, in order.
  [[nodiscard]] const std::vector<std::uint64_t>& visited() const { return standing_.visited; }

  // Whole requests. What stands for no answer is a text that no test writes.
  static constexpr std::string_view kNothing = "(nothing)";
  static constexpr std::string_view kNoAnswer = "(no answer)";
  bool put(std::string_view key, std::string_view value);
  bool erase(std::string_view key);
  std::string get(std::string_view key, const ReadFrom& from = {});
  /// "key=value"
  std::string floor(std::string_view key, const ReadFrom& from = {});
  /// "key=value" of each item.
  std::vector<std::string> scan(Op op, std::string_view low, std::string_view high,
                                const ReadFrom& from = {});
  /// The value that was found, once answered.
  [[nodiscard]] std::string value_found() const;

  tree::ThreadContext context;

 private:
  void submit(const tree::WalkRequest& walk);
  void done(const Completion& completion) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  tree::MapCore& map_;
  Standing standing_;
  std::unique_ptr<tree::HostExecutor<StepAccess>> executor_;
  std::string key_;  // of the request under way
  std::string value_;
  Request request_;
  bool answered_ = false;
  Completion completion_;
  std::string found_key_;
  std::string found_value_;
  std::vector<std::string> found_items_;
};

/// A version held as a snapshot holds it.
class HeldHere {
 public:
  HeldHere(tree::MapCore& map, tree::ThreadContext& context);
  ~HeldHere() { map_.store.reclaimer.drop(map_, held_); }
  HeldHere(const HeldHere&) = delete;
  HeldHere& operator=(const HeldHere&) = delete;
  [[nodiscard]] ReadFrom read() const { return {&*held_, {}}; }
  [[nodiscard]] std::uint64_t version() const { return held_->version; }

 private:
  tree::MapCore& map_;
  std::list<memory::HeldVersion>::iterator held_;
};

class Scene {
 public:
  explicit Scene(const MapOptions& options = {.node_bytes = 512, .log_bytes = 128});

  /// Another map of the same store.
  tree::MapCore& add_map(const MapOptions& options);

  struct Put {
    std::string key;
    std::optional<std::string> value;  // none: erase
  };
  /// Writes all under one version and does not wait for its release.
  tree::BatchOutcome write(const std::vector<Put>& puts,
                           std::optional<std::string_view> only_if_absent = {});
  /// Puts keys "k000" and so on; the values name their numbers and `what`.
  void fill(int count, std::string_view what = "v");
  static std::string key(int i);
  static std::string value(int i, std::string_view what = "v");
  /// "key=value" of the items that `fill` made.
  static std::vector<std::string> filled(int count, std::string_view what = "v");

  /// Collects until what can be freed is free.
  void collect();
  /// The leaf that has this key now.
  [[nodiscard]] wire::Ref leaf_of(std::string_view key) const { return leaf_of(*map, key); }
  [[nodiscard]] static wire::Ref leaf_of(const tree::MapCore& map, std::string_view key);
  /// The low fences of all leaves but the first.
  [[nodiscard]] std::vector<std::string> borders();

  tree::StoreCore store;
  std::unique_ptr<tree::MapCore> map;
  std::vector<std::unique_ptr<tree::MapCore>> other_maps;
  tree::ThreadContext context;  // for what waits for nothing: write, collect, holding versions
  Actor a;
  Actor b;
};

}  // namespace espalier::test
