// SPDX-License-Identifier: Apache-2.0
#include "bench/hop_line.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <stdexcept>

#include "base/assert.hpp"
#include "base/clock.hpp"
#include "bench/map_session.hpp"
#include "fabric/address.hpp"

namespace espalier::bench {
namespace {

constexpr std::size_t kBlockHeader = 24;
constexpr std::uint64_t kLongestNs = 10'000'000'000;

std::uint64_t word(const std::byte* block, std::size_t number) {
  std::uint64_t value = 0;
  std::memcpy(&value, block + number * sizeof value, sizeof value);
  return value;
}

void set_word(std::byte* block, std::size_t number, std::uint64_t value) {
  std::memcpy(block + number * sizeof value, &value, sizeof value);
}

std::uint64_t hop_block_bytes(std::uint64_t value_bytes) {
  constexpr std::uint64_t kNode = kBlockHeader + 8 * (2 * kRankFanout - 1);
  const std::uint64_t leaf = kBlockHeader + std::min(value_bytes, HopLine::kValueBytesMax);
  return (std::max(kNode, leaf) + 63) / 64 * 64;
}

}  // namespace

/// One end of the fabric. The pair is destroyed before the queue, and that before the endpoint.
struct HopLine::End {
  explicit End(std::unique_ptr<fabric::Endpoint> of)
      : endpoint(std::move(of)), queue(*endpoint, 1024) {}
  [[nodiscard]] fabric::QueuePairOptions options() {
    fabric::QueuePairOptions options;
    options.sends = options.receives = &queue;
    options.send_depth = options.reads_in_flight = 256;
    return options;
  }

  std::unique_ptr<fabric::Endpoint> endpoint;
  fabric::CompletionQueue queue;
  std::unique_ptr<fabric::QueuePair> pair;
  fabric::Registration region;  // the node's
};

HopLine::HopLine(const RankedKeys& keys, std::uint64_t value_bytes)
    : keys_(&keys), block_bytes_(hop_block_bytes(value_bytes)) {
  std::uint64_t blocks = 0;
  std::uint64_t count = keys.size();
  for (std::uint32_t level = 0; level <= keys.tree().levels; ++level) {
    counts_.push_back(count);
    first_block_.push_back(blocks);
    blocks += count;
    count = (count + kRankFanout - 1) / kRankFanout;
  }
  memory_ = HugeBuffer(blocks * block_bytes_);
  connect();
  fill();
}

HopLine::~HopLine() = default;

void HopLine::fill() {
  std::uint64_t span = keys_->tree().step;  // numbers below a child
  for (std::size_t level = 0; level < counts_.size(); ++level) {
    for (std::uint64_t i = 0; i < counts_[level]; ++i) {
      std::byte* const block = memory_.data() + (first_block_[level] + i) * block_bytes_;
      set_word(block, 0, level);
      set_word(block, 1, i);
      if (level == 0) continue;
      const std::uint64_t first = i * kRankFanout;
      const std::uint64_t children =
          std::min<std::uint64_t>(kRankFanout, counts_[level - 1] - first);
      set_word(block, 2, children - 1);
      for (std::uint64_t child = 0; child < children; ++child) {
        if (child != 0) set_word(block, 2 + child, (first + child) * span);
        set_word(block, 2 + children + child, address_of(level - 1, first + child));
      }
    }
    if (level != 0) span *= kRankFanout;
  }
}

void HopLine::connect() {
  const auto address = value_or_throw(fabric::parse("roce+memif:" + path("node")), "no address");
  auto listening = value_or_throw(
      fabric::open_for_listening(address, *fabric::RegionTable::create()), "no node");
  node_ = std::make_unique<End>(std::move(listening.endpoint));
  node_->region = value_or_throw(node_->endpoint->regions().offer({memory_.data(), memory_.bytes()},
                                                                  fabric::RemoteRights::read, 0),
                                 "the node offers no memory");
  switch_ = value_or_throw(dataplane::MemifSwitch::open({path("clients"), path("node")}, function_),
                           "no switch");
  const auto target =
      value_or_throw(fabric::parse("roce+memif:" + path("clients") + ",link=0"), "no address");
  auto connecting = value_or_throw(
      fabric::open_for_connecting(target, *fabric::RegionTable::create()), "no client");
  client_ = std::make_unique<End>(std::move(connecting.endpoint));
  client_->pair = value_or_throw(
      client_->endpoint->connect(connecting.target, client_->options(), {}), "no connection");
  const std::uint64_t until = base::monotonic_ns() + kLongestNs;
  while (client_->pair->state() == fabric::QueuePair::State::connecting) {
    if (base::monotonic_ns() > until) break;
    client_->endpoint->progress();
    turn();
    if (const auto request = node_->endpoint->next_request()) {
      node_->pair =
          value_or_throw(node_->endpoint->accept(*request, node_->options(), {}), "no connection");
    }
  }
  if (client_->pair->state() != fabric::QueuePair::State::connected) {
    throw std::runtime_error("the client does not come through the switch");
  }
}

// The client's frames reach the node, and its answers are on the way back.
void HopLine::turn() {
  switch_->poll();
  node_->endpoint->progress();
  switch_->poll();
}

std::uint64_t HopLine::address_of(std::uint64_t level, std::uint64_t number) const {
  return node_->region.remote().at((first_block_[level] + number) * block_bytes_);
}

// From addresses of a RankTree (rank_tree.cpp).
std::uint64_t HopLine::relocated(std::uint64_t address) const {
  constexpr unsigned kHopLevelShift = 56;
  const std::uint64_t level = address >> kHopLevelShift;
  const std::uint64_t number = (address & ((std::uint64_t{1} << kHopLevelShift) - 1)) / 64 - 1;
  return address_of(level, number);
}

dataplane::IndexTables HopLine::relocated(dataplane::IndexTables tables) const {
  for (dataplane::Way& way : tables.ways) way.address = relocated(way.address);
  for (dataplane::NodeSet& set : tables.sets) {
    for (dataplane::SetNode& node : set) {
      for (dataplane::Way& way : node.ways) way.address = relocated(way.address);
    }
  }
  return tables;
}

void HopLine::use(const RankedKeys& keys) {
  ESPALIER_ASSERT(keys.size() == counts_.front());
  keys_ = &keys;
}

void HopLine::compile(const dataplane::IndexTables& tables) {
  tables_ = {};
  tables_.add({kRankKeys.keyed, node_->region.remote().key}, relocated(tables));
}

void HopLine::set_tables(bool with) {
  with_tables_ = with;
  function_.install(with ? tables_ : dataplane::PacketFunction{});
}

void HopLine::read(std::size_t slot, std::uint32_t by_key, std::uint64_t address) {
  if (levels_ != nullptr) gets_[slot].sent_ns = base::monotonic_ns();
  const auto request = fabric::WorkRequest::read(slot, gets_[slot].block, by_key, address);
  if (client_->pair->post(request).taken != 1) throw std::runtime_error("a READ finds no room");
  ++reads_;
}

void HopLine::begin(std::size_t slot, std::uint64_t key) {
  gets_[slot].key = key;
  gets_[slot].start_ns = base::monotonic_ns();
  if (with_tables_) return read(slot, kRankKeys.keyed, keys_->number_of(key));
  read(slot, node_->region.remote().key, address_of(counts_.size() - 1, 0));
}

bool HopLine::go_on(std::size_t slot) {
  const Get& get = gets_[slot];
  const std::byte* const block = get.block.data();
  if (levels_ != nullptr) {
    levels_->at(word(block, 0)).record(base::monotonic_ns() - get.sent_ns);
  }
  if (word(block, 0) == 0) {
    if (word(block, 1) != get.key) throw std::runtime_error("a get comes to another key");
    return true;
  }
  const std::uint64_t separators = word(block, 2);
  if (separators >= kRankFanout) throw std::runtime_error("a READ brings no node");
  const std::uint64_t number = keys_->number_of(get.key);
  std::size_t child = 0;
  while (child < separators && word(block, 3 + child) <= number) ++child;
  read(slot, node_->region.remote().key, word(block, 3 + separators + child));
  return false;
}

std::uint64_t HopLine::run(std::span<const std::uint64_t> keys, std::uint32_t in_flight,
                           base::Histogram* latencies) {
  const std::uint64_t reads_before = reads_;
  if (gets_.size() < in_flight) gets_.resize(in_flight);
  for (Get& get : gets_) get.block.resize(block_bytes_);
  std::size_t begun = 0;
  std::size_t over = 0;
  for (; begun < std::min<std::size_t>(in_flight, keys.size()); ++begun) begin(begun, keys[begun]);
  std::array<fabric::Completion, 64> completions;
  std::uint64_t idle_since_ns = 0;
  while (over < keys.size()) {
    client_->endpoint->flush();  // what was posted leaves now
    turn();
    const std::size_t came = client_->queue.poll(completions);
    if (came == 0) {
      const std::uint64_t now = base::monotonic_ns();
      if (idle_since_ns == 0) idle_since_ns = now;
      if (now - idle_since_ns > kLongestNs) throw std::runtime_error("a READ is not answered");
      continue;
    }
    idle_since_ns = 0;
    for (std::size_t i = 0; i < came; ++i) {
      if (completions[i].status != fabric::Status::success) {
        throw std::runtime_error("a READ is refused");
      }
      const std::size_t slot = completions[i].work_id;
      if (!go_on(slot)) continue;
      if (latencies != nullptr) latencies->record(base::monotonic_ns() - gets_[slot].start_ns);
      ++over;
      if (begun < keys.size()) begin(slot, keys[begun++]);
    }
  }
  return reads_ - reads_before;
}

void HopLine::time_levels(std::span<const std::uint64_t> keys,
                          std::vector<base::Histogram>& levels) {
  levels.resize(counts_.size());
  levels_ = &levels;
  run(keys, 1, nullptr);
  levels_ = nullptr;
}

}  // namespace espalier::bench
