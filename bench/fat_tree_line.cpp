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
#include "dataplane/key_number.hpp"
#include "dataplane/retarget.hpp"
#include "index/tree_crawl.hpp"
#include "kinds/map/walk/next_step.hpp"
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
/// Keys by which the nodes of tables are chosen, at least.
constexpr std::uint64_t kTraceKeys = 200'000;
/// Of each node, for the share of requests that tables lead to leaves.
constexpr std::size_t kHitKeys = 5'000;

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

std::string tree_key(std::uint64_t item) { return fmt::format("user{:012}", item); }

// What all keys up to this one share, as a node would find it. Switches compare the 8 bytes behind
// it: with a shorter one many keys would be alike to them, and hints would end high in the tree.
std::string shared_by_all(std::uint64_t last) {
  const std::string key = tree_key(last);
  return key.substr(0, base::common_prefix_bytes(tree_key(0), key));
}

class Refusals final : public Handler {
 public:
  void done(const Completion& completion) override { wrong += completion.ok ? 0 : 1; }
  std::uint64_t wrong = 0;
};

}  // namespace

/// Hints that were admitted, that had moved, that were refused, and that led astray.
using HintFates = std::array<std::uint64_t, 4>;

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
  [[nodiscard]] HintFates hint_fates() {
    const auto& counts = map.core().hints;
    return {counts.admitted.sum(), counts.moved.sum(), counts.refused.sum(), counts.astray.sum()};
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
    : options_(options),
      keys_each_(std::max<std::uint64_t>(keys / kNodes, 2)),
      prefix_(shared_by_all(keys_each_ - 1)) {
  SwitchRunOptions each = options;
  each.keys = keys_each_;
  for (std::size_t i = 0; i < kNodes; ++i) {
    tree_.add_node(kTreeServers[i]);
    servers_.push_back(std::make_unique<Server>(each, i));
  }
}

FatTreeLine::~FatTreeLine() = default;

std::string FatTreeLine::key_of(std::uint64_t item) const {
  return tree_key(item % keys_each_);
}

dataplane::TopologyBudget FatTreeLine::budget() const {
  const dataplane::HopBudget layers{2, options_.nodes_per_set};
  return tree_.budget(options_.ranges, layers, layers);
}

dataplane::TreeImage FatTreeLine::read_tree(Server& server,
                                            std::span<const std::string> trace) const {
  tree::MapCore& core = server.map.core();
  place::LocalRegion region(core.store.region.at(0));
  const base::ExposedEpoch exposed(server.slot);
  const auto crawled = value_or_throw(place::crawl(core, region), "the tree cannot be read");
  return crawled.image(prefix_, kTableBase, crawled.count(trace));
}

void FatTreeLine::compile(double theta) {
  const base::ScrambledZipf draw(keys_each_ * kNodes, theta);
  base::Random random(options_.seed);
  std::array<std::vector<std::string>, kNodes> traces;
  for (std::uint64_t i = 0; i < std::max(kTraceKeys, 4 * options_.ops); ++i) {
    const std::uint64_t item = draw(random);
    traces[item / keys_each_].push_back(key_of(item));
  }
  std::vector<dataplane::TreeImage> images;
  for (std::size_t i = 0; i < kNodes; ++i) images.push_back(read_tree(*servers_[i], traces[i]));
  tables_.clear();
  for (auto& each : dataplane::compile(images, *dataplane::limits_of(budget()))) {
    tables_.push_back(std::move(each.tables));
  }
  std::size_t hits = 0;
  std::size_t asked = 0;
  for (std::size_t i = 0; i < kNodes; ++i) {
    const auto some = std::span(traces[i]).first(std::min(traces[i].size(), kHitKeys));
    hits += count_hits(*servers_[i], tables_[i], some);
    asked += some.size();
  }
  at_leaf_ = static_cast<double>(hits) / static_cast<double>(asked);
  install();
}

// Keys that the tables lead to their own leaves. Keys whose numbers are alike are led to none: so
// this tells, too, whether numbers tell them apart.
std::size_t FatTreeLine::count_hits(Server& server, const dataplane::IndexTables& tables,
                                    std::span<const std::string> keys) const {
  const base::ExposedEpoch exposed(server.slot);
  tree::Cursor cursor;
  cursor.read_version = tree::kNewest;
  std::size_t hits = 0;
  for (const std::string& key : keys) {
    cursor.key.assign(key);
    const wire::Ref leaf = tree::find_leaf(server.map.core(), cursor, {});
    const auto found = dataplane::find(tables, dataplane::key_number(prefix_, key));
    hits += found.address == kTableBase + leaf.offset() ? 1 : 0;
  }
  return hits;
}

// Tables keep their shape, and name nodes where they are now.
void FatTreeLine::follow() {
  for (std::size_t i = 0; i < kNodes; ++i) {
    tables_[i] = dataplane::retargeted(std::move(tables_[i]), read_tree(*servers_[i], {}));
  }
  install();
}

void FatTreeLine::install() {
  std::vector<dataplane::MapKeys> keys;
  std::vector<dataplane::HintTerms> hints;
  for (std::uint16_t i = 0; i < kNodes; ++i) {
    keys.push_back({1, 2u + i, i});
    hints.push_back({servers_[i]->map.core().id, kTableBase, prefix_});
  }
  const auto programs = dataplane::cut_program(keys, tables_, budget(), 1, hints);
  for (std::size_t i = 0; i < programs.size(); ++i) {
    tree_.function(i).install(programs[i].function());
  }
}

// Computes the hints that the switches on the path write into each get. Returns the processor time
// of all of them.
double FatTreeLine::look_up(Server& server, std::span<const Request> requests) {
  const fabric::roce::PortAddress client{kTreeClient.address(), 1000};
  std::vector<std::vector<std::byte>> gets;
  for (const Request& request : requests) {
    gets.push_back(get_datagram(server.map.core().id, request.key));
  }
  const std::uint64_t begin_ns = base::thread_cpu_ns();
  for (auto& get : gets) get = tree_.through.process_datagram(client, server.at, get);
  const std::uint64_t end_ns = base::thread_cpu_ns();
  for (const auto& get : gets) {
    if (get.empty()) throw std::runtime_error("a get was lost at a switch");
    std::uint64_t& hint = server.hints.of.emplace_back();
    std::memcpy(&hint, get.data() + offsetof(wire::DatagramRequest, hint), sizeof hint);
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
  HintFates fates{};
  double looked_up_ns = 0;
  std::uint64_t looked_up = 0;
  Refusals refusals;
  for (std::uint64_t left = options_.ops; left != 0;) {
    const auto count = std::min<std::uint64_t>(left, kBatch);
    left -= count;
    if (hinted && read_percent != 100) follow();
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
      const HintFates before = server.hint_fates();
      const WorkerMeter meter(server.map.node());
      for (std::span<const Request> rest(server.requests); !rest.empty();) {
        const auto some = rest.first(std::min<std::size_t>(rest.size(), kTreeInFlight));
        server.pipeline->run(some, refusals);
        rest = rest.subspan(some.size());
      }
      sample.cpu_ns[n] += meter.cpu_ns();
      done[n] += server.requests.size();
      const HintFates after = server.hint_fates();
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
  sample.astray = static_cast<double>(fates[3]) / hints;
  sample.at_leaf = at_leaf_;
  if (looked_up != 0) sample.hop_ns = looked_up_ns / static_cast<double>(looked_up) / kHops;
  return sample;
}

}  // namespace espalier::bench
