// SPDX-License-Identifier: Apache-2.0
#include "bench/fat_tree_line.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <stdexcept>
#include <utility>

#include "base/bytes.hpp"
#include "base/cpu_clock.hpp"
#include "base/exposed_epoch.hpp"
#include "bench/map_session.hpp"
#include "bench/turn_costs.hpp"
#include "index/tree_crawl.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"
#include "wire/datagram.hpp"

namespace espalier::bench {
namespace {

// Four in one pod, and the client in another [Fat-B+Tree §V-A].
constexpr std::array<dataplane::FatTree::Host, FatTreeLine::kNodes> kTreeServers{
    {{0, 0, 0}, {0, 0, 1}, {0, 1, 0}, {0, 1, 1}}};
constexpr dataplane::FatTree::Host kTreeClient{2, 0, 0};
constexpr std::uint64_t kTableBase = std::uint64_t{1} << 50;  // of addresses in tables
constexpr std::uint32_t kTreeInFlight = 64;
/// So many requests are looked up, and then done.
constexpr std::size_t kTreeBatch = 10'000;
/// Keys by which the nodes of tables are chosen, at least.
constexpr std::uint64_t kTraceKeys = 200'000;

std::vector<std::byte> get_datagram(std::uint32_t map, std::string_view key) {
  wire::DatagramRequest get{};
  get.magic = wire::kDatagramMagic;
  get.version = wire::kDatagramVersion;
  get.kind = static_cast<std::uint8_t>(wire::DatagramKind::get);
  get.key_bytes = static_cast<std::uint16_t>(key.size());
  get.map = map;
  std::vector<std::byte> bytes(sizeof get + key.size());
  std::memcpy(bytes.data(), &get, sizeof get);
  std::memcpy(bytes.data() + sizeof get, key.data(), key.size());
  return bytes;
}

class Refusals final : public Handler {
 public:
  void done(const Completion& completion) override { wrong += completion.ok ? 0 : 1; }
  std::uint64_t wrong = 0;
};

}  // namespace

/// Hints that were looked up before, by the requests' tags.
class FatTreeLine::Hints final : public client::HintSource {
 public:
  [[nodiscard]] std::uint64_t hint_of(const Request& read) noexcept override {
    return read.tag < of.size() ? of[read.tag] : 0;
  }
  std::vector<std::uint64_t> of;
};

struct FatTreeLine::Server {
  Server(const SwitchRunOptions& options, std::size_t number)
      : map(options),
        at{kTreeServers[number].service(), wire::kDatagramPort},
        slot(value_or_throw(map.core().store.epochs.join(), "no place for a reader")) {
    const auto address = client::parse_node_address(local_address(map.node()));
    sessions = base::make_shared_until_fork<client::RemoteSessions>(*address, StoreOptions{});
    client::Scope scope{map.core().id, map.core().geometry.key_bytes_max, 0};
    scope.hints = &hints;
    pipeline = std::make_unique<client::RingPipeline>(
        sessions, value_or_throw(sessions->open_lane(), "no lane"), scope, kTreeInFlight);
  }
  [[nodiscard]] std::array<std::uint64_t, 3> hint_counts() {
    const auto& counts = map.core().hints;
    return {counts.admitted.sum(), counts.moved.sum(), counts.refused.sum()};
  }

  OwnNodeMap map;
  const fabric::roce::PortAddress at;
  base::EpochSlot slot;
  Hints hints;
  std::shared_ptr<client::RemoteSessions> sessions;
  std::unique_ptr<client::RingPipeline> pipeline;
  std::vector<std::string> keys;  // of a batch, with the next
  std::vector<Request> requests;
};

FatTreeLine::FatTreeLine(const SwitchRunOptions& options, std::uint64_t keys)
    : options_(options), keys_each_(std::max<std::uint64_t>(keys / kNodes, 2)) {
  SwitchRunOptions each = options;
  each.keys = keys_each_;
  for (std::size_t i = 0; i < kNodes; ++i) {
    tree_.add_node(kTreeServers[i]);
    servers_.push_back(std::make_unique<Server>(each, i));
  }
}

FatTreeLine::~FatTreeLine() = default;

std::string FatTreeLine::key_of(std::uint64_t item) const {
  return fmt::format("user{:012}", item % keys_each_);
}

void FatTreeLine::compile(double theta) {
  const base::ScrambledZipf draw(keys_each_ * kNodes, theta);
  base::Random random(options_.seed);
  std::array<std::vector<std::string>, kNodes> traces;
  for (std::uint64_t i = 0; i < std::max(kTraceKeys, 4 * options_.ops); ++i) {
    const std::uint64_t item = draw(random);
    traces[item / keys_each_].push_back(key_of(item));
  }
  // What all keys share, as a node would find it.
  const std::string last = key_of(keys_each_ - 1);
  const std::string prefix = last.substr(0, base::common_prefix_bytes(key_of(0), last));
  const dataplane::HopBudget layers{2, options_.nodes_per_set};
  const auto budget = tree_.budget(options_.ranges, layers, layers);
  std::vector<dataplane::TreeImage> images;
  std::vector<dataplane::MapKeys> keys;
  std::vector<dataplane::HintTerms> hints;
  for (std::uint16_t i = 0; i < kNodes; ++i) {
    tree::MapCore& core = servers_[i]->map.core();
    place::LocalRegion region(core.store.region.at(0));
    const base::ExposedEpoch exposed(servers_[i]->slot);
    const auto crawled = value_or_throw(place::crawl(core, region), "the tree cannot be read");
    images.push_back(crawled.image(prefix, kTableBase, crawled.count(traces[i])));
    keys.push_back({1, 2u + i, i});
    hints.push_back({core.id, kTableBase, prefix});
  }
  std::vector<dataplane::IndexTables> tables;
  for (auto& each : dataplane::compile(images, *dataplane::limits_of(budget))) {
    tables.push_back(std::move(each.tables));
  }
  const auto programs = dataplane::cut_program(keys, tables, budget, 1, hints);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    tree_.function(i).install(programs[i].function());
  }
}

// What the switches of the way write into each get. Returns the processor time of all of them.
double FatTreeLine::look_up(Server& server, std::span<const Request> requests) {
  const fabric::roce::PortAddress client{kTreeClient.address(), 1000};
  tree::MapCore& core = server.map.core();
  std::vector<std::vector<std::byte>> gets;
  for (const Request& request : requests) gets.push_back(get_datagram(core.id, request.key));
  const std::uint64_t begin_ns = base::thread_cpu_ns();
  for (auto& get : gets) get = tree_.through.process_datagram(client, server.at, get);
  const std::uint64_t end_ns = base::thread_cpu_ns();
  const base::ExposedEpoch exposed(server.slot);
  for (std::size_t i = 0; i < gets.size(); ++i) {
    if (gets[i].empty()) throw std::runtime_error("a get was lost at a switch");
    wire::Ref hint;
    std::memcpy(&hint.bits, gets[i].data() + offsetof(wire::DatagramRequest, hint),
                sizeof hint.bits);
    // As a node's reader of datagrams does.
    const std::uint32_t generation =
        core.store.pool.generation_in_use(hint.offset(), memory::BufferKind::node);
    server.hints.of.push_back(wire::Ref::make(hint.offset(), generation).bits);
  }
  return static_cast<double>(end_ns - begin_ns);
}

FatTreeLine::Sample FatTreeLine::run(double theta, std::uint32_t read_percent, bool hinted,
                                     std::uint64_t seed) {
  constexpr double kHops = 5;
  base::Random random(seed);
  const base::ScrambledZipf draw(keys_each_ * kNodes, theta);
  const std::string value(options_.value_bytes, 'w');
  Sample sample;
  std::array<std::uint64_t, kNodes> done{};
  std::array<std::uint64_t, 3> fates{};
  double looked_up_ns = 0;
  std::uint64_t looked_up = 0;
  Refusals refusals;
  for (std::uint64_t left = options_.ops; left != 0;) {
    const auto count = std::min<std::uint64_t>(left, kTreeBatch);
    left -= count;
    for (const auto& server : servers_) server->keys.clear();
    std::array<std::vector<bool>, kNodes> reads;
    for (std::uint64_t i = 0; i < count; ++i) {
      const std::uint64_t item = draw(random);
      server_of(item).keys.push_back(key_of(item));
      reads[item / keys_each_].push_back(random.below(100) < read_percent);
    }
    for (std::size_t n = 0; n < kNodes; ++n) {
      Server& server = *servers_[n];
      server.requests.assign(server.keys.size(), {});
      for (std::size_t i = 0; i < server.keys.size(); ++i) {
        server.requests[i].op = reads[n][i] ? Op::get : Op::put;
        server.requests[i].tag = i;
        server.requests[i].key = server.keys[i];
        if (!reads[n][i]) server.requests[i].value = value;
      }
      server.hints.of.clear();
      if (hinted) {
        looked_up_ns += look_up(server, server.requests);
        looked_up += server.requests.size();
      }
      const auto before = server.hint_counts();
      const WorkerMeter meter(server.map.node());
      for (std::span<const Request> rest(server.requests); !rest.empty();) {
        const auto some = rest.first(std::min<std::size_t>(rest.size(), kTreeInFlight));
        server.pipeline->run(some, refusals);
        rest = rest.subspan(some.size());
      }
      sample.cpu_ns[n] += meter.cpu_ns();
      done[n] += server.requests.size();
      const auto after = server.hint_counts();
      for (std::size_t i = 0; i < fates.size(); ++i) fates[i] += after[i] - before[i];
    }
  }
  if (refusals.wrong != 0) throw std::runtime_error("requests were refused");
  for (std::size_t n = 0; n < kNodes; ++n) {
    sample.cpu_ns[n] /= static_cast<double>(std::max<std::uint64_t>(done[n], 1));
    sample.shares[n] = static_cast<double>(done[n]) / static_cast<double>(options_.ops);
  }
  const auto hints =
      static_cast<double>(std::max<std::uint64_t>(1, fates[0] + fates[1] + fates[2]));
  sample.admitted = static_cast<double>(fates[0]) / hints;
  sample.moved = static_cast<double>(fates[1]) / hints;
  sample.refused = static_cast<double>(fates[2]) / hints;
  if (looked_up != 0) sample.hop_ns = looked_up_ns / static_cast<double>(looked_up) / kHops;
  return sample;
}

}  // namespace espalier::bench
