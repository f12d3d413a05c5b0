// SPDX-License-Identifier: Apache-2.0
// A map at a simulated node without faults, and a reader of it with a node cache: its memory
// accesses, and how often it waits.
#pragma once

#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "base/bytes.hpp"
#include "base/random.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "kinds/map/remote/one_sided_reader.hpp"
#include "kinds/map/write/map_object.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {

/// Keys that agree in their first 8 bytes, so that fences and separators decide.
inline std::string numbered_key(std::uint64_t i) { return "key" + std::to_string(1'000'000 + i); }
/// Keys of which hardly any two share a prefix.
inline std::string scattered_key(std::uint64_t i) {
  return std::to_string(base::mix64(i + 1)) + "/" + std::to_string(i);
}

inline memory::Region region_for_cache() {
  auto region = memory::Region::reserve({.bytes_max = std::uint64_t{1} << 28, .huge_pages = false});
  EXPECT_TRUE(region) << message(region.error());
  return std::move(*region);
}

struct CacheSetting {
  std::uint64_t seed = 1;  // of the simulated world
  bool in_order = true;
  std::uint64_t cache_bytes = 4 << 20;  // 0: none
  bool leaf_heads = true;
  bool groups_gets = false;
  std::uint32_t leaves_ahead = place::LeavesAhead::kMost;
  bool holds_memory = false;  // the reader has a lease at the host
  std::string (*key)(std::uint64_t) = scattered_key;
  MapOptions map{.node_bytes = 1024, .log_bytes = 256};
};

/// A map at a simulated node, whose host writes it here, and a reader of it.
class CacheScene : private Handler {
 public:
  explicit CacheScene(const CacheSetting& setting)
      : key_(setting.key),
        world_(setting.seed, faults_of(setting)),
        host_(world_.add_node("host")),
        client_(world_.add_node("client")),
        here_(*client_),
        there_(*host_),
        cache_(setting.cache_bytes) {
    region_ = *host_->regions().offer({store_.region.at(0), store_.region.bytes()},
                                      fabric::RemoteRights::read, 0);
    map_ = *tree::create_map(store_, "map", setting.map);
    writer_ = std::make_unique<HostWalker>(store_, *map_, 1, clock_);
    EXPECT_TRUE(host_->listen("host"));
    EXPECT_TRUE(connect(world_, here_, there_, "host"));
    auto view = view_of(*map_);
    place::OneSidedReader::Options options;
    options.now_ns = [this] { return world_.now_ns(); };
    options.terms.believed_for_ns = ~std::uint64_t{0} >> 1;
    options.terms.renew_every_ns = ~std::uint64_t{0} >> 1;
    options.cache = setting.cache_bytes == 0 ? nullptr : &cache_;
    options.remembers_leaves = setting.leaf_heads;
    options.groups_gets = setting.groups_gets;
    options.leaves_ahead = setting.leaves_ahead;
    reader_.emplace(*client_, *here_.pair, here_.sends, region_.remote(), view, options);
    base::LeaseTable::Granted lease{1, store_.epochs.current()};
    if (setting.holds_memory) lease = store_.leases.grant(1, world_.now_ns());
    reader_->lease().granted(lease.id, lease.epoch, world_.now_ns(), world_.now_ns());
  }

  void put(const std::string& key, const std::string& value) {
    Question question;
    question.op = Op::put;
    question.key = key;
    question.value = value;
    writer_->ask(std::move(question));
  }
  void erase(const std::string& key) {
    Question question;
    question.op = Op::erase;
    question.key = key;
    writer_->ask(std::move(question));
  }
  void fill(std::uint64_t keys) {
    for (std::uint64_t i = 0; i < keys; ++i) put(key_(i), "value" + std::to_string(i));
  }
  /// Writes these keys in turn, each time another value, until the buffer of this leaf was freed
  /// and reused for another node. Returns whether it was.
  bool write_until_reused(wire::Ref leaf, std::span<const std::string> keys) {
    const auto generation = [&] {
      const auto header = base::load_plain<wire::BufferHeader>(store_.region.at(leaf.offset()));
      return header.superseded == 0 ? leaf.generation() : header.generation & wire::kGenerationMask;
    };
    for (std::uint64_t i = 0; i < 1000 && generation() == leaf.generation(); ++i) {
      put(keys[i % keys.size()], "other" + std::to_string(i));
      store_.reclaimer.collect(writer_->context.cache);
    }
    return generation() != leaf.generation();
  }
  /// Frees what was overwritten.
  void collect() { store_.reclaimer.collect(writer_->context.cache); }
  std::optional<std::string> get(const std::string& key) {
    Request request;
    request.op = Op::get;
    request.key = key;
    found_.reset();
    answered_ = false;
    reader_->submit({&request, 1}, *this);
    while (reader_->poll() != 0) client_->wait(1'000'000);
    EXPECT_TRUE(answered_);
    return found_;
  }
  /// Gets so many keys from this one on, all in one submission; returns how often the map's header
  /// was read for them.
  std::uint64_t headers_read_together(std::uint64_t from, std::size_t gets) {
    std::uint64_t headers = 0;
    const std::uint64_t begin = region_.remote().base + map_->header_offset;
    world_.middle = [&](fabric::RegionKey&, const std::uint64_t& address) {
      headers += address >= begin && address < begin + sizeof(wire::MapHeader) ? 1 : 0;
    };
    std::vector<std::string> keys;
    std::vector<Request> requests(gets);
    for (std::size_t i = 0; i < gets; ++i) keys.push_back(key_(from + i));
    for (std::size_t i = 0; i < gets; ++i) requests[i] = {.op = Op::get, .key = keys[i]};
    answered_ = false;
    reader_->submit(requests, *this);
    while (reader_->poll() != 0) client_->wait(1'000'000);
    EXPECT_TRUE(answered_);
    world_.middle = nullptr;
    return headers;
  }
  /// Random gets of existing keys; returns the waits for each.
  double waits_per_get(std::uint64_t keys, int gets, Random& random) {
    const std::uint64_t before = trips();
    for (int i = 0; i < gets; ++i) {
      const std::uint64_t number = random.below(keys);
      EXPECT_EQ(get(key_(number)), "value" + std::to_string(number));
    }
    return static_cast<double>(trips() - before) / gets;
  }
  using Items = std::vector<std::pair<std::string, std::string>>;
  /// A scan, which the client ends after at most so many items.
  Items scan(const Request& request, std::size_t enough = ~std::size_t{0}) {
    items_.clear();
    enough_ = enough;
    answered_ = false;
    reader_->submit({&request, 1}, *this);
    while (reader_->poll() != 0) client_->wait(1'000'000);
    EXPECT_TRUE(answered_);
    return std::move(items_);
  }
  /// Called between two pieces of a scan; may be empty.
  std::function<void()> meanwhile;

  /// Has the reader follow the map's feed.
  void follow() {
    const auto place = map_->table.feed().add_follower();
    ASSERT_TRUE(place) << message(place.error());
    const auto cursor = place::FeedCursor::create(*place, reader_->view());
    ASSERT_TRUE(cursor) << message(cursor.error());
    reader_->follow(*cursor);
  }
  /// Round trips of walks, without those of the feed.
  [[nodiscard]] std::uint64_t trips() const { return reader_->traffic().round_trips; }
  [[nodiscard]] place::OneSidedReader& reader() { return *reader_; }
  [[nodiscard]] const tree::MapCore& map() const { return *map_; }
  [[nodiscard]] place::NodeCache& cache() { return cache_; }
  [[nodiscard]] fabric::sim::World& world() { return world_; }
  /// The address of this buffer for READs.
  [[nodiscard]] std::uint64_t address_of(wire::Ref buffer) const {
    return region_.remote().at(buffer.offset());
  }

 private:
  static fabric::sim::Faults faults_of(const CacheSetting& setting) {
    fabric::sim::Faults faults;
    faults.reads_in_order = setting.in_order;
    return faults;
  }
  tree::MapView view_of(const tree::MapCore& map) {
    wire::MapHeader header;
    std::memcpy(&header, store_.region.at(map.header_offset), sizeof header);
    auto view = tree::MapView::read(header, map.header_offset, store_.region.bytes(), nullptr);
    EXPECT_TRUE(view);
    return *view;
  }
  bool items(std::uint64_t, std::span<const Item> items) override {
    for (const Item& item : items) items_.emplace_back(item.key, item.value);
    if (meanwhile) meanwhile();
    return items_.size() < enough_;
  }
  void done(const Completion& completion) override {
    EXPECT_TRUE(completion.ok) << message(completion.error);
    answered_ = completion.ok;
    if (completion.ok && completion.found) found_ = std::string(completion.value);
  }

  std::string (*key_)(std::uint64_t);
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> host_;
  std::unique_ptr<fabric::Endpoint> client_;
  tree::StoreCore store_{region_for_cache(), 16};
  Clock clock_;
  std::shared_ptr<tree::MapCore> map_;
  std::unique_ptr<HostWalker> writer_;
  fabric::Registration region_;
  fabric::sim::End here_;
  fabric::sim::End there_;
  place::NodeCache cache_;
  std::optional<place::OneSidedReader> reader_;
  bool answered_ = false;
  std::optional<std::string> found_;
  Items items_;
  std::size_t enough_ = 0;
};

}  // namespace espalier::test
