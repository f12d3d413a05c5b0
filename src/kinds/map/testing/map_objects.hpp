// SPDX-License-Identifier: Apache-2.0
// For tests: a store whose maps are created, found and dropped by name, and users of these maps.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "kinds/map/testing/tree_fixture.hpp"
#include "kinds/map/write/map_object.hpp"
#include "memory/region.hpp"
#include "store/store_core.hpp"
#include "store/thread_context.hpp"

namespace espalier::tree {

inline StoreCore make_store(std::uint64_t bytes_max = std::uint64_t{256} << 20) {
  return {std::move(*memory::Region::reserve({.bytes_max = bytes_max, .huge_pages = false})), 16};
}

/// Reads and writes a map, of which it holds a reference.
class MapUser {
 public:
  MapUser(ThreadContext& context, std::shared_ptr<MapCore> map)
      : map_(std::move(map)),
        executor_(context, *map_, 1, [this](std::uint32_t, base::ReadyQueue& queue) {
          return HostAccess(map_->base, queue, false, &kNever);
        }) {}

  Completion put(std::string_view key, std::string_view value) {
    return write(Op::put, key, value);
  }
  Completion write(Op op, std::string_view key, std::string_view value = {}) {
    return run(TreeFixture::request(op, key, value)).completion;
  }
  /// `addition.sum` is the value written.
  Completion add(std::string_view key, Addition& addition) {
    const Request put = TreeFixture::request(Op::put, key, base::bytes_of(addition.sum));
    OneAnswer answer;
    executor_.submit(WalkRequest{.request = &put, .handler = &answer, .addition = &addition});
    executor_.drain();
    return answer.completion;
  }
  std::string get(std::string_view key) { return run(TreeFixture::request(Op::get, key)).value; }
  std::uint64_t version(std::string_view key) {
    return run(TreeFixture::request(Op::get, key)).completion.version;
  }
  std::vector<std::pair<std::string, std::string>> items() {
    return run(TreeFixture::request(Op::scan, {})).items_;
  }
  MapCore& map() { return *map_; }

 private:
  OneAnswer run(const Request& request) {
    OneAnswer answer;
    executor_.submit({&request, 1}, answer);
    executor_.drain();
    return answer;
  }

  static constexpr bool kNever = false;
  std::shared_ptr<MapCore> map_;
  HostExecutor<HostAccess> executor_;
};

inline std::uint64_t buffers_in_use(const StoreCore& store) {
  std::uint64_t all = 0;
  for (memory::SizeClass cls = 0; cls < memory::kClasses; ++cls)
    all += store.pool.stats(cls).in_use;
  return all;
}

/// A store, and the maps in its catalogue.
class MapObjects : public ::testing::Test {
 protected:
  using Core = std::shared_ptr<MapCore>;
  Result<Core> create(std::string_view name, const MapOptions& options) {
    return create_map(store_, name, options);
  }
  [[nodiscard]] Result<Core> open(std::string_view name) const {
    return store_.catalog.open<MapCore>(name);
  }
  [[nodiscard]] Core find(std::uint32_t id) const { return store_.catalog.find<MapCore>(id); }
  Result<Core> drop(std::string_view name) { return store_.catalog.drop<MapCore>(name); }
  [[nodiscard]] std::vector<std::string> names() const { return store_.catalog.names(); }

  StoreCore store_ = make_store();
  const MapOptions options_{.node_bytes = 512};
};

}  // namespace espalier::tree
