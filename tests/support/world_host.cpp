// SPDX-License-Identifier: Apache-2.0
#include "tests/support/world_host.hpp"

#include <algorithm>
#include <cstring>
#include <functional>
#include <span>
#include <stdexcept>
#include <utility>

#include "engine/one_sided_host.hpp"
#include "kinds/map/node/planted_tree_bugs.hpp"
#include "tests/support/scene.hpp"
#include "tests/support/store_parts.hpp"

namespace espalier::test {
namespace {

constexpr const char* kMap = "map";

// Runs everything else in the middle of writes, where another machine's READs may arrive. Only
// libraries with planted bugs have such moments.
class SlowWrites {
 public:
#if defined(ESPALIER_PLANTED_BUGS)
  explicit SlowWrites(const std::function<void()>& meanwhile) {
    if (meanwhile) tree::on_moment = [&meanwhile](tree::Moment) { meanwhile(); };
  }
  ~SlowWrites() { tree::on_moment = nullptr; }
  SlowWrites(const SlowWrites&) = delete;
  SlowWrites& operator=(const SlowWrites&) = delete;
#else
  explicit SlowWrites(const std::function<void()>&) {}
#endif
};

}  // namespace

std::string take_log(WalkRecorder& recorder, MapRecord& record, const OneSidedOptions& options,
                     OneSidedCounts& counts) {
  std::string wrong = recorder.unexpected().value_or("");
  for (Operation& operation : recorder.log()) {
    ++(operation.refused ? counts.refused : counts.answers);
    for (const ReadItem& item : operation.items) {
      counts.long_values += item.value.size() > options.map.node_bytes ? 1 : 0;
    }
    if (operation.refused) continue;
    if (record.dropped != 0 && operation.invoked > record.dropped) {
      wrong = "after " + record.name + " was dropped: " + describe(operation);
    }
    record.history.operations.push_back(std::move(operation));
  }
  recorder.log().clear();
  return wrong;
}

WorldHost::WorldHost(fabric::sim::World& world, std::unique_ptr<fabric::Endpoint> endpoint,
                     std::uint32_t life, std::uint64_t seed, const OneSidedOptions& options,
                     Clock& clock, MapRecords& records, OneSidedCounts& counts)
    : world_(world),
      endpoint_(std::move(endpoint)),
      life_(life),
      random_(seed),
      options_(options),
      clock_(clock),
      records_(records),
      counts_(counts),
      store_(reserve_region(), 16) {
  if (!endpoint_->listen(kHostName)) throw std::runtime_error("the host cannot listen");
  for (std::uint32_t i = 0; i < options.keys; ++i) {
    keys_.push_back(std::string(options.keys_begin_with) + Scene::key(static_cast<int>(i)));
  }
  if (options.by_key) {
    index_ = std::make_unique<offload::IndexHost>(store_, endpoint_->regions(), &index_reads_);
  }
  make_map();
}

WorldHost::~WorldHost() = default;

void WorldHost::make_map() {
  auto made = tree::create_map(store_, kMap, options_.map);
  if (!made) throw std::runtime_error("no map: " + message(made.error()));
  map_ = std::move(*made);
  counts_.headers_reused +=
      static_cast<std::uint64_t>(std::ranges::count(headers_, map_->header_offset));
  headers_.push_back(map_->header_offset);
  ++counts_.maps;
  record_ = records_.size();
  MapRecord record;
  record.name = "map " + std::to_string(map_->id) + " of node " + std::to_string(life_);
  records_.push_back(std::move(record));
  writer_ = std::make_unique<HostWalker>(store_, *map_, 6, clock_);
  for (std::uint32_t i = 0; i < options_.keys; ++i) writer_->ask(next_write());
  if (options_.follows_feed || options_.by_key) feed_ = map_->table.feed().add_follower().value();
  if (!options_.by_key) return;
  auto indexed = index_->offer(map_, std::ranges::min(keys_), std::ranges::max(keys_));
  if (!indexed) throw std::runtime_error("no READs by key: " + message(indexed.error()));
  indexed_ = std::move(*indexed);
}

// Its buffers are free as soon as leases allow; what comes next takes them.
void WorldHost::drop_map() {
  drop_wanted_ = false;
  MapRecord& record = records_[record_];
  if (const std::string wrong = take_log(writer_->recorder, record, options_, counts_);
      !wrong.empty()) {
    wrong_ = wrong;
  }
  writer_.reset();
  static_cast<void>(store_.catalog.drop(kMap));
  record.dropped = clock_.tick();
  map_.reset();
  make_map();
}

Question WorldHost::next_write() {
  Question question;
  question.op = options_.erases && random_.one_in(3) ? Op::erase : Op::put;
  question.key = random_.pick(keys_);
  if (question.op == Op::erase) return question;
  const std::uint64_t most = random_.one_in(100) ? 200'000 : 3000;  // extents come and go
  const bool is_long = random_.one_in(options_.one_in_long);
  const std::uint64_t bytes =
      is_long ? random_.between(options_.long_bytes, most) : random_.below(options_.value_bytes);
  // No two nodes or maps have a value in common.
  question.value = std::to_string(100'000 * record_ + ++written_) + " ";
  while (question.value.size() < bytes) question.value += static_cast<char>('a' + bytes % 26);
  return question;
}

// Reports a move that did not happen, to where another node is, or none.
void WorldHost::lie() {
  const auto any_lid = [this] { return static_cast<wire::Lid>(random_.between(1, 40)); };
  wire::Ref where = map_->ref(any_lid());
  if (random_.one_in(4)) where.bits ^= std::uint64_t{1} << random_.below(64);
  map_->table.feed().publish(any_lid(), where, random_.below(1'000'000));
}

// Reports more than the feed's ring holds, all of it true: slow readers fall behind.
void WorldHost::overrun_feed() {
  for (std::uint32_t i = 0; i < 2 * wire::kFeedEntries; ++i) {
    const auto lid = static_cast<wire::Lid>(random_.between(1, 40));
    if (const wire::Ref ref = map_->ref(lid)) map_->table.feed().publish(lid, ref, 0);
  }
  ++counts_.feed_overruns;
}

void WorldHost::write() {
  if (dead()) return;
  if (drop_wanted_) drop_map();
  if (options_.lying_feed && random_.one_in(2)) lie();
  if (options_.follows_feed && random_.one_in(200)) {
    map_->table.feed().remove_follower();
    writer_->ask(next_write());
    static_cast<void>(map_->table.feed().add_follower().value());
  }
  if (options_.follows_feed && random_.one_in(500)) overrun_feed();
  {
    const SlowWrites slow(meanwhile);
    writing_ = true;
    writer_->ask(next_write());
    writing_ = false;
  }
  // What was given back is used again by the next write, or by another class of buffers.
  store_.reclaimer.collect(writer_->context.cache);
  if (store_.dropped.due()) store_.dropped.collect();
  if (!random_.one_in(50)) return;
  writer_->context.cache.flush();
  store_.pool.trim();
}

std::uint32_t WorldHost::open_session() {
  sessions_.emplace_back();
  const auto domain = static_cast<std::uint32_t>(sessions_.size());
  offer_region(domain);
  return domain;
}

void WorldHost::offer_region(std::uint32_t domain) {
  auto region = endpoint_->regions().offer({store_.region.at(0), store_.region.bytes()},
                                           fabric::RemoteRights::read, domain);
  if (!region) throw std::runtime_error("no region: " + message(region.error()));
  session(domain).region = std::move(*region);
}

WorldHost::Opening WorldHost::opening() const {
  wire::MapHeader header;
  std::memcpy(&header, store_.region.at(map_->header_offset), sizeof header);
  auto view = tree::MapView::read(header, map_->header_offset, store_.region.bytes(), nullptr);
  if (!view) throw std::runtime_error("no view: " + message(view.error()));
  return {life_, record_, *view, feed_, indexed_};
}

void WorldHost::admit(std::uint32_t domain, offload::IndexedMap& map) {
  const fabric::RegionKey key = session(domain).region.remote().key;
  const auto admitted = endpoint_->regions().admit(map.shared(), key);
  if (!admitted) throw std::runtime_error("not admitted: " + message(admitted.error()));
}

void WorldHost::accept() {
  if (dead()) return;
  while (const auto request = endpoint_->next_request()) {
    Hello hello;
    if (request->data.size() >= sizeof hello) {
      std::memcpy(&hello, request->data.data(), sizeof hello);
    }
    if (hello.life != life_) {
      endpoint_->reject(*request);
      continue;
    }
    auto end = std::make_unique<fabric::sim::End>(*endpoint_);
    end->options.domain = hello.domain;
    if (auto pair = endpoint_->accept(*request, end->options, {})) {
      end->pair = std::move(*pair);
      ends_.push_back(std::move(end));  // it lives as long as the host
    }
  }
}

void WorldHost::sweep() {
  const std::uint64_t now = world_.now_ns();
  if (dead() || now < kWorldTerms.lost_after_ns) return;
  for (const auto& lease : store_.leases.overdue(now - kWorldTerms.lost_after_ns)) {
    Session& of = session(static_cast<std::uint32_t>(lease.owner));
    offload::fence_and_end(of.region, store_.leases, of.leases);
  }
}

void WorldHost::die() {
  died_ns_ = world_.now_ns();
  ++counts_.deaths;
}

std::string WorldHost::wrong() {
  counts_.reads_resolved += index_reads_.resolved.exchange(0);
  counts_.reads_at_nothing += index_reads_.nothing.exchange(0);
  const std::string wrong = take_log(writer_->recorder, records_[record_], options_, counts_);
  return wrong_.empty() ? wrong : wrong_;
}

}  // namespace espalier::test
