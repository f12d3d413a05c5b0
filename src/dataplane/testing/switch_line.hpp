// SPDX-License-Identifier: Apache-2.0
// For tests and benchmarks: a node whose memory lies in equal blocks, clients, and a switch between
// them, or two in a row, over memif in one process. The node is any memory, and the tables lead a
// number to the block that it falls into.
//
// Thread: one, which plays all sides.
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "dataplane/compiler.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/memif_switch.hpp"
#include "dataplane/switch_program.hpp"
#include "dataplane/tree_image.hpp"
#include "dataplane/way_tables.hpp"
#include "fabric/address.hpp"
#include "fabric/endpoint.hpp"

namespace espalier::dataplane {

class SwitchLine {
 public:
  static constexpr std::uint64_t kBlocks = 64;
  static constexpr std::uint64_t kBlockBytes = 1024;
  static constexpr std::uint64_t kStep = std::uint64_t{1} << 58;  // numbers of a block
  static constexpr std::uint32_t kKeyedKey = 0xFEED'0001;

  /// One endpoint, and its completions.
  struct End {
    explicit End(std::unique_ptr<fabric::Endpoint> of)
        : endpoint(std::move(of)), queue(*endpoint, 1024) {}
    std::unique_ptr<fabric::Endpoint> endpoint;
    fabric::CompletionQueue queue;
    std::vector<std::unique_ptr<fabric::QueuePair>> pairs;
  };

  /// two_middle: the second believes that another one is behind it, and lets shims pass.
  enum class Switches : std::uint8_t { one, two, two_middle };

  explicit SwitchLine(Switches switches = Switches::one) : memory_(kBlocks * kBlockBytes) {
    for (std::size_t i = 0; i < memory_.size(); ++i) memory_[i] = block_byte(i / kBlockBytes);
    start_node();
    const bool two = switches != Switches::one;
    const bool last = switches == Switches::two;
    if (two) {
      behind_ = or_throw(
          MemifSwitch::open({path("middle"), path("node"), false, last}, function_behind_));
    }
    switch_ = or_throw(
        MemifSwitch::open({path("clients"), path(two ? "middle" : "node"), true, !two}, function_));
  }
  ~SwitchLine() {
    region_ = {};
    node_.reset();
  }

  /// What block i is filled with.
  static std::byte block_byte(std::uint64_t i) { return static_cast<std::byte>(i * 3 + 1); }

  void start_node() {
    const auto address = or_throw(fabric::parse("roce+memif:" + path("node")));
    node_ = std::make_unique<End>(std::move(
        or_throw(fabric::open_for_listening(address, *fabric::RegionTable::create())).endpoint));
    region_ = or_throw(node_->endpoint->regions().offer({memory_.data(), memory_.size()},
                                                        fabric::RemoteRights::read, 0));
  }
  /// With all its pairs and links.
  void stop_node() {
    region_ = {};
    node_.reset();
  }

  /// A client by the link of a number, with a pair; `to`: "clients" or "node", past the switch.
  End& add_client(std::uint32_t link, const std::string& to = "clients") {
    const auto address =
        or_throw(fabric::parse("roce+memif:" + path(to) + ",link=" + std::to_string(link)));
    auto opened = or_throw(fabric::open_for_connecting(address, *fabric::RegionTable::create()));
    End& client = *clients_.emplace_back(std::make_unique<End>(std::move(opened.endpoint)));
    target_ = opened.target;
    return client;
  }
  /// Connects it to the node. False: that did not come about in time.
  bool connect(End& client) {
    client.pairs.clear();
    fabric::QueuePairOptions options;
    options.sends = options.receives = &client.queue;
    client.pairs.push_back(or_throw(client.endpoint->connect(target_, options, {})));
    const fabric::QueuePair& pair = *client.pairs.front();
    run_until([&] { return pair.state() != fabric::QueuePair::State::connecting; });
    return pair.state() == fabric::QueuePair::State::connected;
  }
  void remove_client(End& client) {
    std::erase_if(clients_, [&](const auto& each) { return each.get() == &client; });
  }

  /// All sides do what there is to do.
  void turn() {
    switch_->poll();
    if (behind_) behind_->poll();
    if (node_) {
      node_->endpoint->progress();
      while (const auto request = node_->endpoint->next_request()) {
        fabric::QueuePairOptions options;
        options.sends = options.receives = &node_->queue;
        auto pair = node_->endpoint->accept(*request, options, {});
        if (pair) node_->pairs.push_back(std::move(*pair));
      }
    }
    for (const auto& client : clients_) client->endpoint->progress();
  }
  /// False: not within ten seconds.
  template <class Condition>
  bool run_until(const Condition& condition) {
    const std::uint64_t until = base::monotonic_ns() + 10'000'000'000;
    while (!condition()) {
      if (base::monotonic_ns() > until) return false;
      turn();
    }
    return true;
  }
  /// READs `into.size()` bytes; nothing: no completion came.
  std::optional<fabric::Status> read(End& client, std::span<std::byte> into, fabric::RegionKey key,
                                     std::uint64_t remote) {
    if (client.pairs.front()->post(fabric::WorkRequest::read(1, into, key, remote)).taken != 1) {
      return std::nullopt;
    }
    fabric::Completion completion;
    const bool came = run_until([&] { return client.queue.poll({&completion, 1}) == 1; });
    return came ? std::optional(completion.status) : std::nullopt;
  }

  /// Tables that lead each number to its block; or with `shifted`, to the block behind it.
  [[nodiscard]] SwitchProgram program(std::uint64_t shifted = 0) const {
    SwitchProgram program;
    if (!program.add({map_keys(), tables(kLimits, shifted), {}})) {
      throw std::logic_error("no room in a program");
    }
    return program;
  }
  /// The same for two switches, the fat root for the first.
  [[nodiscard]] std::vector<SwitchProgram> programs_of_two(std::uint32_t generation,
                                                           std::uint64_t shifted = 0) const {
    const WayBudget way{.ranges = 1, .hops = {{0, 1}, {2, 64}}};
    return cut_program(map_keys(), tables(*limits_of(way), shifted), way, generation);
  }
  [[nodiscard]] IndexTables tables(const TableLimits& limits, std::uint64_t shifted) const {
    TreeImage tree;
    std::vector<NodeNumber> leaves;
    std::vector<std::uint64_t> separators;
    for (std::uint64_t i = 0; i < kBlocks; ++i) {
      if (i != 0) separators.push_back(i * kStep);
      leaves.push_back(tree.add_leaf(block_address(i + shifted), 1));
    }
    tree.set_root(tree.add_node(block_address(0), kBlocks, separators, leaves));
    return compile(tree, limits).tables;
  }
  [[nodiscard]] MapKeys map_keys() const { return {kKeyedKey, region_.remote().key}; }
  [[nodiscard]] std::uint64_t block_address(std::uint64_t i) const {
    return region_.remote().at(i % kBlocks * kBlockBytes);
  }
  [[nodiscard]] fabric::RegionKey key() const { return region_.remote().key; }
  [[nodiscard]] InstalledFunction& function() { return function_; }
  [[nodiscard]] InstalledFunction& function_behind() { return function_behind_; }
  [[nodiscard]] MemifSwitch& the_switch() { return *switch_; }
  [[nodiscard]] MemifSwitch& the_switch_behind() { return *behind_; }
  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }

 private:
  template <class T>
  static T or_throw(Result<T> result) {
    if (!result) throw std::runtime_error(message(result.error()));
    return std::move(*result);
  }

  base::TemporaryFolder folder_;
  std::vector<std::byte> memory_;
  static constexpr TableLimits kLimits{.ranges = 8, .sets = 2};

  InstalledFunction function_;
  InstalledFunction function_behind_;
  std::unique_ptr<MemifSwitch> behind_;  // null: there is one switch
  std::unique_ptr<MemifSwitch> switch_;
  std::unique_ptr<End> node_;
  fabric::Registration region_;
  std::vector<std::unique_ptr<End>> clients_;
  std::string target_;
};

}  // namespace espalier::dataplane
