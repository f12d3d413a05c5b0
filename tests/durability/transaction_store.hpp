// SPDX-License-Identifier: Apache-2.0
// For tests: a store with two ordered maps and two hash maps that share a clock, and transactions
// over them in a line of code each.
#pragma once

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "kinds/hash/audit.hpp"
#include "kinds/hash/hash_map.hpp"
#include "kinds/hash/hash_threads.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "kinds/map/write/audit.hpp"
#include "memory/version_clock.hpp"
#include "store/clock_groups.hpp"
#include "store/transaction.hpp"

namespace espalier::test {

using catalog::StepKind;

/// Two ordered maps and two hash maps, by name.
inline constexpr const char* kTransactedMaps[] = {"map_a", "map_b", "hash_a", "hash_b"};

/// A step with the name of its map. The text must outlive the transaction.
struct NamedStep {
  std::string map;
  StepKind kind = StepKind::get;
  std::string key;
  std::string value{};
  ConditionKind condition = ConditionKind::none;
  std::uint64_t version = 0;
};

class TransactionStore {
 public:
  explicit TransactionStore(bool shared = true, std::uint32_t partitions = 4,
                            std::uint64_t bytes_max = std::uint64_t{256} << 20)
      : core(std::move(*memory::Region::reserve({.bytes_max = bytes_max, .huge_pages = false})),
             128) {
    if (shared) core.groups->share();
    for (const char* const name : kTransactedMaps) {
      if (std::string_view(name).starts_with("map")) {
        EXPECT_TRUE(tree::create_map(core, name, {.node_bytes = 512, .log_bytes = 128}));
      } else {
        EXPECT_TRUE(hash::create_hash_map(hash::hash_store_of(core.catalog), name,
                                          {.partitions = partitions}));
      }
    }
  }

  [[nodiscard]] std::shared_ptr<tree::MapCore> map(std::string_view name) const {
    return core.catalog.open<tree::MapCore>(name).value();
  }
  [[nodiscard]] std::shared_ptr<hash::HashMap> hash(std::string_view name) const {
    return core.catalog.open<hash::HashMap>(name).value();
  }
  [[nodiscard]] memory::VersionClock& clock() const { return map("map_a")->clock; }

  /// Objects in the order of the steps that name them. They point into the steps.
  [[nodiscard]] std::vector<store::ObjectSteps> objects_of(
      const std::vector<NamedStep>& steps) const {
    std::vector<store::ObjectSteps> objects;
    std::vector<std::string> names;
    for (std::uint32_t i = 0; i < steps.size(); ++i) {
      const NamedStep& step = steps[i];
      auto known = std::ranges::find(names, step.map);
      if (known == names.end()) {
        const auto entry = core.catalog.find_any(step.map);
        objects.push_back({entry->object, entry->id});
        names.push_back(step.map);
        known = names.end() - 1;
      }
      store::ObjectSteps& of = objects[static_cast<std::size_t>(known - names.begin())];
      catalog::TransactionStep made{step.kind, step.key};
      if (step.kind == StepKind::put) made.value = step.value;
      if (step.kind == StepKind::check) made.condition = {step.condition, step.version, step.value};
      of.steps.push_back(made);
      of.numbers.push_back(i);
    }
    return objects;
  }
  /// Does not wait for the release.
  Result<store::Transacted> begin(const std::vector<NamedStep>& steps) {
    auto objects = objects_of(steps);
    return store::transact(core, objects);
  }
  Result<store::Transacted> transact(const std::vector<NamedStep>& steps) {
    auto done = begin(steps);
    if (done) {
      EXPECT_TRUE(store::wait_for_release(clock(), done->wait_for));
    }
    return done;
  }
  /// The value that plain readers see.
  std::optional<std::string> get(std::string_view of, std::string_view key) {
    if (of.starts_with("hash")) return hash(of)->get(thread, key).value();
    tree::MapUser user(context, map(of));
    for (auto& [found, value] : user.items()) {
      if (found == key) return value;
    }
    return std::nullopt;
  }
  /// What is wrong with the maps; empty: nothing. Requires: no thread uses them.
  [[nodiscard]] std::string faults() {
    std::string all;
    for (const char* const name : kTransactedMaps) {
      const bool ordered = std::string_view(name).starts_with("map");
      for (const std::string& one :
           ordered ? tree::audit(*map(name)) : hash::audit(*hash(name)).wrong) {
        all += std::string(name) + ": " + one + "\n";
      }
    }
    return all;
  }

  tree::StoreCore core;
  hash::HashThread thread = *hash::HashThread::join(hash::hash_store_of(core.catalog));
  tree::ThreadContext context{core, std::move(*core.epochs.join()), 0};
};

}  // namespace espalier::test
