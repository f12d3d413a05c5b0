// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch --experiment install`: the time to make and to change the tables of a
// switch, the latter while frames are forwarded at the highest rate.
//
//   compile  1024 ranges and the sets of nodes, of a tree built from ranks
//   update   one node has another address: the entries that name it, sent over the control socket
//   replace  all tables by others, as text over that socket
//
// Each frame that arrives is checked against the tables that may have been active while it was in
// flight: those active when it was sent, and those sent before it arrived.
#include <fmt/format.h>

#include <array>
#include <atomic>
#include <memory>
#include <optional>
#include <stdexcept>
#include <thread>
#include <unordered_map>
#include <vector>

#include "base/clock.hpp"
#include "base/histogram.hpp"
#include "base/temporary_folder.hpp"
#include "bench/frame_links.hpp"
#include "bench/frame_traffic.hpp"
#include "bench/map_session.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "bench/switch_frames.hpp"
#include "dataplane/control_client.hpp"
#include "dataplane/control_server.hpp"
#include "dataplane/memif_switch.hpp"
#include "dataplane/switch_program.hpp"
#include "dataplane/switch_threads.hpp"

namespace espalier::bench {
namespace {

/// More than the default of --ranges: the capacity of a switch's tables (index_in_network.md).
constexpr std::size_t kRangesCompiled = 1024;
/// Bits of an address that count the moves of its node: above the node's number, and below its
/// level (rank_tree.cpp).
constexpr unsigned kMovesShift = 40;
constexpr std::uint64_t kMovesMask = std::uint64_t{0xFFFF} << kMovesShift;

/// The addresses to which tables lead each of the frames.
std::vector<std::uint64_t> addresses_of(const FrameSet& frames,
                                        const dataplane::IndexTables& tables) {
  std::vector<std::uint64_t> addresses;
  for (std::size_t i = 0; i < FrameSet::kFrames; ++i) {
    addresses.push_back(dataplane::find(tables, FrameSet::address_in(frames.at(i))).address);
  }
  return addresses;
}

/// Nodes that move in sequence, each as often as it comes.
class MovingNodes final : public FrameCheck {
 public:
  struct Node {
    std::uint64_t address = 0;  // before it moved
    std::vector<dataplane::EntryPlace> places;
    std::atomic<std::uint64_t> known{0};  // moves that the switch may have
    std::atomic<std::uint64_t> made{0};   // moves that it has
  };

  MovingNodes(const FrameSet& frames, const dataplane::IndexTables& tables) {
    std::unordered_map<std::uint64_t, Node*> by_address;
    for (const std::uint64_t address : addresses_of(frames, tables)) {
      Node*& node = by_address[address];
      if (node == nullptr) {
        node = nodes_.emplace_back(std::make_unique<Node>()).get();
        node->address = address;
        node->places = dataplane::places_of(tables, address);
      }
      of_frame_.push_back(node);
    }
    made_before_.resize(of_frame_.size());
  }

  /// The node to which a frame is led.
  [[nodiscard]] Node& of(std::size_t place) const { return *of_frame_[place]; }
  /// Its address after so many moves.
  [[nodiscard]] static std::uint64_t address(const Node& node, std::uint64_t moves) {
    return node.address | (moves << kMovesShift & kMovesMask);
  }

  void leaves(std::size_t place) override { made_before_[place] = of(place).made.load(); }
  bool may_be(std::size_t place, std::uint64_t address) override {
    const Node& node = of(place);
    const std::uint64_t moves = (address & kMovesMask) >> kMovesShift;
    return (address & ~kMovesMask) == node.address && moves >= made_before_[place] &&
           moves <= node.known.load();
  }

 private:
  std::vector<std::unique_ptr<Node>> nodes_;
  std::vector<Node*> of_frame_;
  std::vector<std::uint64_t> made_before_;  // moves made before each frame was sent
};

/// Two sets of tables, active in turn, beginning with the first.
class TwoTables final : public FrameCheck {
 public:
  TwoTables(const FrameSet& frames, const std::array<dataplane::IndexTables, 2>& tables)
      : addresses_{addresses_of(frames, tables[0]), addresses_of(frames, tables[1])},
        made_before_(FrameSet::kFrames) {}

  void leaves(std::size_t place) override { made_before_[place] = made.load(); }
  bool may_be(std::size_t place, std::uint64_t address) override {
    const std::uint64_t first = made_before_[place];
    const std::uint64_t last = known.load();
    if (addresses_[first % 2][place] == address) return true;
    return last > first && addresses_[(first + 1) % 2][place] == address;
  }

  std::atomic<std::uint64_t> known{0};  // changes that the switch may have
  std::atomic<std::uint64_t> made{0};   // changes that it has

 private:
  std::array<std::vector<std::uint64_t>, 2> addresses_;
  std::vector<std::uint64_t> made_before_;  // changes made before each frame was sent
};

class InstallRun {
 public:
  InstallRun(const SwitchRunOptions& options, Report& report)
      : options_(options),
        report_(report),
        keys_(options.keys, options.seed),
        frames_(ranked_numbers(keys_, options.seed), kRankKeys.keyed) {}

  void run() {
    report_.table({{"tables", -9, "target"},
                   {"times", 7, "ops"},
                   {"p50 ms", 8, "p50_ns", 3, 1e-6},
                   {"p99 ms", 8, "p99_ns", 3, 1e-6},
                   {"max ms", 8, "max_ns", 3, 1e-6},
                   {"M frames/s", 10, "frames_per_second", 2, 1e-6},
                   {"dropped", 8, "dropped"},
                   {"misrouted", 9, "misrouted"}});
    compile();
    FrameLinks links(path("node"));
    dataplane::InstalledFunction function;
    const auto forwards = value_or_throw(
        dataplane::MemifSwitch::open({path("clients"), path("node")}, function), "no switch");
    dataplane::SwitchControl control(function, [](std::string&) {});
    const auto serves =
        value_or_throw(dataplane::ControlServer::open(path("control"), control), "no control");
    const dataplane::SwitchThreads threads(*forwards, *serves, false);
    links.connect(path("clients"), [] { std::this_thread::yield(); });
    client_.emplace(
        value_or_throw(dataplane::ControlClient::connect(path("control")), "no control"));
    update(links);
    replace(links);
    if (!right_) report_.fail(kFramesAreWrong);
  }

 private:
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }
  [[nodiscard]] std::string text_of(std::size_t tables) const {
    dataplane::SwitchProgram program;
    if (!program.add({kRankKeys, tables_[tables]})) throw std::runtime_error("no room for tables");
    return program.text();
  }

  void compile() {
    base::Histogram ns;
    dataplane::Compiled compiled;
    const dataplane::TableLimits limits{
        .ranges = kRangesCompiled, .sets = options_.sets, .nodes_per_set = options_.nodes_per_set};
    for (std::uint64_t i = 0; i < options_.installs; ++i) {
      report_.progress().show(fmt::format("compiling, {} of {}", i + 1, options_.installs));
      const base::Stopwatch watch;
      auto made = dataplane::compile(keys_.tree().tree, limits);
      ns.record(watch.elapsed_ns());
      compiled = std::move(made);
    }
    tables_[0] = std::move(compiled.tables);
    // Other tables, which lead many keys elsewhere: half as large.
    tables_[1] =
        dataplane::compile(keys_.tree().tree, {.ranges = kRangesCompiled / 2,
                                               .sets = options_.sets / 2,
                                               .nodes_per_set = (options_.nodes_per_set + 1) / 2})
            .tables;
    print("compile", ns, nullptr);
  }

  // Sends a request, and times it.
  void ask(base::Histogram& ns, const char* word, const std::string& body) {
    const base::Stopwatch watch;
    const auto answer = client_->ask(word, body);
    ns.record(watch.elapsed_ns());
    if (!answer || !client_->refused().empty()) {
      throw std::runtime_error("the switch takes no tables: " + client_->refused());
    }
  }
  // Ensures that frames are in flight during each change.
  static void wait_for_frames(const FrameTraffic& traffic) {
    constexpr std::uint64_t kBetween = 512;
    const std::uint64_t from = traffic.received();
    const base::Stopwatch watch;
    while (traffic.received() < from + kBetween && watch.elapsed_ns() < 1'000'000'000) {
      std::this_thread::yield();
    }
  }

  void update(FrameLinks& links) {
    base::Histogram ns;
    base::Histogram first;
    ask(first, "install", text_of(0));
    MovingNodes nodes(frames_, tables_[0]);
    base::Random random(options_.seed);
    FrameTraffic traffic(links, frames_, nodes);
    for (std::uint64_t i = 0; i < options_.updates; ++i) {
      if (i % 100 == 0)
        report_.progress().show(fmt::format("update {} of {}", i, options_.updates));
      MovingNodes::Node& node = nodes.of(random.below(FrameSet::kFrames));
      const std::uint64_t moves = node.known.load() + 1;
      if (moves > kMovesMask >> kMovesShift) continue;
      std::vector<dataplane::EntryChange> changes;
      for (const auto& place : node.places) {
        changes.push_back({kRankKeys.keyed, place, MovingNodes::address(node, moves)});
      }
      const std::string text = dataplane::to_text(changes);
      wait_for_frames(traffic);
      node.known.store(moves);
      ask(ns, "change", text);
      node.made.store(moves);
    }
    wait_for_frames(traffic);
    const TrafficCount count = traffic.stop();
    print("update", ns, &count);
  }

  void replace(FrameLinks& links) {
    base::Histogram ns;
    base::Histogram first;
    const std::array<std::string, 2> texts{text_of(0), text_of(1)};
    ask(first, "install", texts[0]);
    TwoTables tables(frames_, tables_);
    FrameTraffic traffic(links, frames_, tables);
    for (std::uint64_t i = 1; i <= options_.installs; ++i) {
      report_.progress().show(fmt::format("replacing, {} of {}", i, options_.installs));
      wait_for_frames(traffic);
      tables.known.store(i);
      ask(ns, "install", texts[i % 2]);
      tables.made.store(i);
    }
    wait_for_frames(traffic);
    const TrafficCount count = traffic.stop();
    print("replace", ns, &count);
  }

  void print(const char* name, const base::Histogram& ns, const TrafficCount* count) {
    if (count != nullptr) right_ = right_ && count->dropped == 0 && count->misrouted == 0;
    Json line;
    line["target"] = name;
    line["workload"] = "install";
    line["keys"] = options_.keys;
    line["ranges"] = kRangesCompiled;
    line["sets"] = options_.sets;
    line["nodes_per_set"] = options_.nodes_per_set;
    line["nodes"] = dataplane::nodes_in_sets(tables_[0]);
    line["threads"] = count == nullptr ? 1 : 4;
    line["seed"] = options_.seed;
    line["ops"] = ns.count();
    line["p50_ns"] = ns.percentile(0.5);
    line["p99_ns"] = ns.percentile(0.99);
    line["max_ns"] = ns.max();
    if (count != nullptr) {
      line["frames"] = count->frames;
      line["frames_per_second"] = count->per_second;
      line["dropped"] = count->dropped;
      line["misrouted"] = count->misrouted;
    }
    report_.line(line);
  }

  const SwitchRunOptions& options_;
  Report& report_;
  const RankedKeys keys_;
  const FrameSet frames_;
  base::TemporaryFolder folder_;
  std::array<dataplane::IndexTables, 2> tables_;
  std::optional<dataplane::ControlClient> client_;
  bool right_ = true;
};

}  // namespace

void run_switch_install(const SwitchRunOptions& options, Report& report) {
  InstallRun(options, report).run();
}

}  // namespace espalier::bench
