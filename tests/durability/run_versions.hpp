// SPDX-License-Identifier: Apache-2.0
// Runs of a store whose own writes are all lost, as a crash may lose those that `async` has shown
// early: what a key has after the next recovery must not have a version under which readers have
// seen something else.
//
// Thread: one, but for recovery.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "catalog/testing/recording_sink.hpp"
#include "engine/parallel_redo.hpp"
#include "engine/redo_target.hpp"
#include "engine/services.hpp"
#include "kinds/map/testing/map_objects.hpp"

namespace espalier::test {

/// Says which version came again; empty: none did.
inline std::string version_that_came_again() {
  constexpr int kKeys = 300;
  constexpr std::uint64_t kServices = std::uint64_t{64} << 20;
  catalog::RecordingSink sink;
  tree::StoreCore first = tree::make_store();
  first.catalog.record_to(&sink);
  const auto write_all = [](tree::StoreCore& core, const std::shared_ptr<tree::MapCore>& map,
                            const std::string& value) {
    tree::ThreadContext context(core, std::move(*core.epochs.join()), 0);
    tree::MapUser user(context, map);
    for (int i = 0; i < kKeys; ++i) user.put(std::to_string(i * 7 % kKeys), value);
    return map->clock.taken();
  };
  const auto made = *tree::create_map(first, "map", {.node_bytes = 1024});
  std::uint64_t highest = write_all(first, made, "durable");
  for (std::uint64_t run = 2; run < 5; ++run) {
    tree::StoreCore core = tree::make_store();
    offload::Services services(core, kServices);
    auto redo = offload::ParallelRedo::start(
        {.services = services, .own = {}, .threads = static_cast<std::uint32_t>(run - 1)});
    if (!redo) return "no threads";
    (*redo)->begin_versions_above(offload::versions_before_run(run));
    for (const std::string_view record : sink.records()) {
      if (!(*redo)->apply(std::as_bytes(std::span(record)))) return "a record was refused";
    }
    if (!(*redo)->finish()) return "a record was refused";
    redo->reset();
    const auto map = *core.catalog.open<tree::MapCore>("map");
    {
      tree::ThreadContext context(core, std::move(*core.epochs.join()), 0);
      tree::MapUser user(context, map);
      for (int i = 0; i < kKeys; ++i) {
        const std::uint64_t version = user.version(std::to_string(i));
        if (version > highest) continue;
        return "version " + std::to_string(version) + " in run " + std::to_string(run);
      }
    }
    highest = write_all(core, map, "lost");
  }
  return {};
}

/// The same of versions that a recovery itself took: many records in flight take later versions
/// than one by one. The next recovery, of the same records and those that this one made, must go on
/// above them, also where it does not begin above earlier runs, as in a chain.
inline std::string recovered_version_that_came_again() {
  constexpr int kKeys = 600;
  constexpr std::uint64_t kServices = std::uint64_t{64} << 20;
  catalog::RecordingSink sink;
  catalog::RecordingSink later;
  tree::StoreCore first = tree::make_store();
  first.catalog.record_to(&sink);
  const auto made = *tree::create_map(first, "map", {.node_bytes = 1024});
  {
    tree::ThreadContext context(first, std::move(*first.epochs.join()), 0);
    tree::MapUser user(context, made);
    for (int i = 0; i < kKeys; ++i) user.put(std::to_string(i * 7919 % 1000), "value");
  }
  tree::StoreCore second = tree::make_store();
  offload::Services services(second, kServices);
  auto redo = offload::ParallelRedo::start({.services = services, .own = {}, .threads = 1});
  if (!redo) return "no thread";
  for (const std::string_view record : sink.records()) {
    if (!(*redo)->apply(std::as_bytes(std::span(record)))) return "a record was refused";
  }
  if (!(*redo)->finish()) return "a record was refused";
  redo->reset();
  const std::uint64_t taken = (*second.catalog.open<tree::MapCore>("map"))->clock.taken();
  if (taken <= made->clock.taken()) return "recovery took no versions";
  second.catalog.record_to(&later);
  if (!offload::record_recovered(services, {})) return "no room for a record";

  tree::StoreCore third = tree::make_store();
  offload::Services others(third, kServices);
  offload::RedoTarget target(others, {});
  for (const auto& records : {sink.records(), later.records()}) {
    for (const std::string_view record : records) {
      if (!target.apply(record)) return "a record was refused";
    }
  }
  const std::uint64_t again = (*third.catalog.open<tree::MapCore>("map"))->clock.taken();
  return again >= taken ? "" : "version " + std::to_string(again + 1) + " comes again";
}

}  // namespace espalier::test
