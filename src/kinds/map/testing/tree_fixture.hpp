// SPDX-License-Identifier: Apache-2.0
// Fixtures of tree tests: nodes built by hand, and a map without the library around it.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/host/host_executor.hpp"
#include "kinds/map/node/leaf_builder.hpp"
#include "kinds/map/write/audit.hpp"
#include "kinds/map/write/structure.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

/// All node sizes, each with no log, the default log and the longest log.
inline std::vector<MapOptions> all_geometries() {
  std::vector<MapOptions> all;
  for (std::uint32_t node_bytes = wire::kNodeBytesMin; node_bytes <= wire::kNodeBytesMax;
       node_bytes *= 2) {
    for (const std::uint32_t log_bytes : {0u, 512u, wire::kLogBytesMax}) {
      all.push_back({.node_bytes = node_bytes, .log_bytes = log_bytes});
    }
  }
  return all;
}

/// Memory of exactly one node, so that a sanitizer detects reads beyond it.
class NodeBuffer {
 public:
  explicit NodeBuffer(const Geometry& geometry)
      : geometry_(geometry), bytes_(new(std::align_val_t{64}) std::byte[geometry.node_bytes]{}) {}
  [[nodiscard]] std::byte* data() const { return bytes_.get(); }
  [[nodiscard]] NodeView view() const { return {bytes_.get(), geometry_}; }

 private:
  struct Delete {
    void operator()(std::byte* at) const { ::operator delete[](at, std::align_val_t{64}); }
  };
  Geometry geometry_;
  std::unique_ptr<std::byte[], Delete> bytes_;
};

/// Random keys of few letters, so that keys share prefixes and are prefixes of each other.
inline std::string random_key(base::Random& random, std::uint32_t bytes_max) {
  std::string key(1 + random.below(random.below(4) == 0 ? bytes_max : std::min(bytes_max, 12u)), 0);
  static constexpr char kLetters[] = {'a', 'b', '\0', '\xFF'};
  for (char& letter : key) letter = kLetters[random.below(sizeof kLetters)];
  return key;
}

/// Stores the last answer and all items of one request.
class OneAnswer final : public Handler {
 public:
  void done(const Completion& done) override {
    completion = done;
    value.assign(done.value);
  }
  bool items(std::uint64_t, std::span<const Item> run) override {
    for (const Item& item : run) items_.emplace_back(item.key, item.value);
    return true;
  }
  Completion completion;
  std::string value;
  std::vector<std::pair<std::string, std::string>> items_;
};

/// A store with one map, and one worker that reads and writes it.
class TreeFixture {
 public:
  explicit TreeFixture(const MapOptions& options = {.node_bytes = 1024},
                       std::uint64_t bytes_max = std::uint64_t{256} << 20)
      : store_(std::move(*memory::Region::reserve({.bytes_max = bytes_max, .huge_pages = false})),
               16),
        context_(std::make_unique<ThreadContext>(store_, std::move(*store_.epochs.join()), 0)),
        map_(std::move(*MapCore::create(store_, 1, "map", options))),
        executor_(*context_, *map_, 1, [this](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(map_->base, queue, false, &kNever);
        }) {}

  static Request request(Op op, std::string_view key, std::string_view value = {}) {
    Request one;
    one.op = op;
    one.key = key;
    one.value = value;
    return one;
  }
  Completion run(const Request& one) {
    OneAnswer answer;
    return run(one, answer);
  }
  Completion run(const Request& one, OneAnswer& answer) {
    executor_.submit({&one, 1}, answer);
    executor_.drain();
    return answer.completion;
  }
  /// Reads at a held version.
  OneAnswer run(const Request& one, const memory::HeldVersion& held) {
    OneAnswer answer;
    executor_.submit(WalkRequest{&one, &answer, &held, {}, {}});
    executor_.drain();
    return answer;
  }
  Completion put(std::string_view key, std::string_view value) {
    return run(request(Op::put, key, value));
  }
  Completion erase(std::string_view key) { return run(request(Op::erase, key)); }

  /// Writes all of these under one version; no value: erases the key.
  void write_all(const std::map<std::string, std::optional<std::string>>& writes) {
    std::vector<SearchKey> keys(writes.size());
    std::vector<WriteIntent> intents;
    for (const auto& [key, value] : writes) {
      SearchKey& search = keys[intents.size()];
      search.assign(key);
      const std::string_view text = value ? std::string_view(*value) : std::string_view{};
      intents.push_back({value ? Op::put : Op::erase, &search, text, false, {}});
    }
    context_->slot.enter();
    EXPECT_EQ(write_batch(*context_, *map_, intents, {}).status, WriteStatus::done);
    context_->slot.exit();
  }

  /// Puts keys "key00000" and so on, with their numbers as values.
  void fill(std::uint64_t count, std::string_view prefix = "key") {
    for (std::uint64_t i = 0; i < count; ++i) put(numbered(i, prefix), std::to_string(i));
  }
  static std::string numbered(std::uint64_t i, std::string_view prefix = "key") {
    std::string digits = std::to_string(i);
    return std::string(prefix) + std::string(5 - std::min<std::size_t>(5, digits.size()), '0') +
           digits;
  }

  StoreCore& store() { return store_; }
  MapCore& map() { return *map_; }
  ThreadContext& context() { return *context_; }
  [[nodiscard]] std::byte* bytes(wire::Lid lid) const {
    return map_->at(map_->table.get(lid).offset());
  }
  [[nodiscard]] wire::Lid first_leaf() const {
    wire::Lid lid = map_->root;
    while (!map_->node(lid).leaf()) lid = map_->node(lid).child(0);
    return lid;
  }

 private:
  static constexpr bool kNever = false;
  StoreCore store_;
  std::unique_ptr<ThreadContext> context_;
  std::unique_ptr<MapCore> map_;
  HostExecutor<HostAccess> executor_;
};

}  // namespace espalier::tree
