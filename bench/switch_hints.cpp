// SPDX-License-Identifier: Apache-2.0
// Gets with a hint of the node at which they may begin, as a switch or a client's cache has it:
// their cost to the node, compared with gets without one, and the use of hints while the map is
// written.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "base/exposed_epoch.hpp"
#include "base/random.hpp"
#include "base/zipf.hpp"
#include "bench/map_session.hpp"
#include "bench/median.hpp"
#include "bench/own_line.hpp"
#include "bench/probe.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "bench/turn_costs.hpp"
#include "channel/rings/ring_pipeline.hpp"
#include "kinds/map/walk/next_step.hpp"
#include "kinds/map/write/map_core.hpp"
#include "store/store_core.hpp"

namespace espalier::bench {
namespace {

/// The level of the tree at which gets begin.
struct HintedWay {
  const char* name;
  std::uint32_t level;
  bool hints;
};
constexpr std::array<HintedWay, 3> kHintedWays{
    {{"no-hint", 0, false}, {"node-above", 1, true}, {"leaf", 0, true}}};
/// Requests between two updates of the nodes' places.
constexpr std::size_t kHintAge = 10'000;

struct HintedSample {
  double cpu_ns = 0;  // of the node's worker, for a request
  double admitted = 0;
  double moved = 0;
  double refused = 0;
};
using HintedSamples = std::array<std::vector<HintedSample>, kHintedWays.size()>;

/// Hints that were looked up in advance, by the requests' tags.
class KnownHints final : public client::HintSource {
 public:
  explicit KnownHints(const tree::MapCore& map)
      : map_(map), slot_(value_or_throw(map.store.epochs.join(), "no place for a reader")) {}

  void look_up(std::span<const Request> requests, std::uint32_t level) {
    const base::ExposedEpoch exposed(slot_);
    hints_.clear();
    tree::Cursor cursor;
    cursor.read_version = tree::kNewest;
    for (const Request& request : requests) {
      cursor.key.assign(request.key);
      wire::Ref ref = map_.root_ref();
      while (map_.view(ref).level() > level) {
        const tree::NodeView node = map_.view(ref);
        const auto head = tree::NodeHead::read(node.bytes());
        const tree::Step step = next_step(map_, cursor, node, head, ref);
        if (step.kind != tree::StepKind::child) break;
        ref = map_.ref(step.lid);
      }
      hints_.push_back(ref.bits);
    }
  }
  void forget() { hints_.clear(); }
  [[nodiscard]] std::uint64_t hint_of(const Request& read) noexcept override {
    return read.tag < hints_.size() ? hints_[read.tag] : 0;
  }

 private:
  const tree::MapCore& map_;
  base::EpochSlot slot_;
  std::vector<std::uint64_t> hints_;
};

class HintsRun {
 public:
  HintsRun(const SwitchRunOptions& options, Report& report, OwnNodeMap& map)
      : options_(options),
        report_(report),
        node_(map.node()),
        core_(map.core()),
        hints_(core_),
        zipf_(options.keys) {
    const auto address = client::parse_node_address(local_address(node_));
    sessions_ = base::make_shared_until_fork<client::RemoteSessions>(*address, StoreOptions{});
    client::Scope scope{core_.id, core_.geometry.key_bytes_max, 0};
    scope.hints = &hints_;
    pipeline_ = std::make_unique<client::RingPipeline>(
        sessions_, value_or_throw(sessions_->open_lane(), "no lane"), scope, kInFlight);
  }

  void run() {
    report_.table({{"hint", -12, "target"},
                   {"writes", 6, "write_percent"},
                   {"node ns", 8, "node_cpu_ns_per_op", 1},
                   {"ratio", 6, "node_cpu_ratio", 3},
                   {"admitted", 8, "admitted_share", 1, 100},
                   {"moved", 6, "moved_share", 1, 100},
                   {"refused", 7, "refused_share", 1, 100}});
    std::array<HintedSamples, 2> samples;  // read alone, and beside writes
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t beside = 0; beside < 2; ++beside) {
        if (beside != 0 && options_.write_percent == 0) continue;
        for (std::size_t way = 0; way < kHintedWays.size(); ++way) {
          report_.progress().show(fmt::format("hints: round {} of {}: {}", round + 1,
                                              options_.rounds, kHintedWays[way].name));
          samples[beside][way].push_back(measure(
              kHintedWays[way], beside != 0 ? options_.write_percent : 0, options_.seed + round));
        }
      }
    }
    for (std::size_t beside = 0; beside < 2; ++beside) {
      for (std::size_t way = 0; way < kHintedWays.size(); ++way) {
        if (!samples[beside][way].empty()) print(samples[beside], way, beside != 0);
      }
    }
  }

 private:
  static constexpr std::uint32_t kInFlight = 64;

  class Answers final : public Handler {
   public:
    void done(const Completion& completion) override { wrong += completion.ok ? 0 : 1; }
    std::uint64_t wrong = 0;
  };

  HintedSample measure(const HintedWay& way, std::uint32_t write_percent, std::uint64_t seed) {
    base::Random random(seed);
    const std::string value(options_.value_bytes, 'w');
    Answers answers;
    double cpu_ns = 0;
    const Counts before = counts();
    std::uint64_t done = 0;
    while (done < options_.ops) {
      std::vector<std::string> keys(std::min<std::uint64_t>(kHintAge, options_.ops - done));
      std::vector<Request> requests(keys.size());
      for (std::size_t i = 0; i < keys.size(); ++i) {
        // Hot keys are scattered over the map.
        keys[i] = fmt::format("user{:012}", base::mix64(zipf_(random) + 1) % options_.keys);
        requests[i].op = random.below(100) < write_percent ? Op::put : Op::get;
        requests[i].tag = i;
        requests[i].key = keys[i];
        if (requests[i].op == Op::put) requests[i].value = value;
      }
      hints_.forget();
      if (way.hints) hints_.look_up(requests, way.level);
      const WorkerMeter meter(node_);
      for (std::span<const Request> left(requests); !left.empty();) {
        const auto batch = left.first(std::min<std::size_t>(left.size(), kInFlight));
        pipeline_->run(batch, answers);
        left = left.subspan(batch.size());
      }
      cpu_ns += meter.cpu_ns();
      done += keys.size();
    }
    if (answers.wrong != 0) throw std::runtime_error("requests were refused");
    const Counts after = counts();
    const double hints = std::max<double>(1, static_cast<double>(after.all() - before.all()));
    const auto share = [&](std::uint64_t Counts::*of) {
      return static_cast<double>(after.*of - before.*of) / hints;
    };
    return {cpu_ns / static_cast<double>(done), share(&Counts::admitted), share(&Counts::moved),
            share(&Counts::refused)};
  }

  struct Counts {
    std::uint64_t admitted;
    std::uint64_t moved;
    std::uint64_t refused;
    [[nodiscard]] std::uint64_t all() const { return admitted + moved + refused; }
  };
  [[nodiscard]] Counts counts() const {
    return {core_.hints.admitted.sum(), core_.hints.moved.sum(), core_.hints.refused.sum()};
  }

  // By round, since other load during a round slows both.
  void print(const HintedSamples& samples, std::size_t way, bool writes) {
    const std::vector<HintedSample>& own = samples[way];
    std::vector<double> ratios;
    for (std::size_t i = 0; i < own.size(); ++i) {
      ratios.push_back(own[i].cpu_ns / samples[0][i].cpu_ns);
    }
    const double ratio = median_of(std::move(ratios));
    const std::uint32_t write_percent = writes ? options_.write_percent : 0;
    Json line;
    line["target"] = kHintedWays[way].name;
    line["workload"] = "hints";
    line["keys"] = options_.keys;
    line["node_bytes"] = options_.node_bytes;
    line["value_bytes"] = options_.value_bytes;
    line["write_percent"] = write_percent;
    line["in_flight"] = kInFlight;
    line["threads"] = 1;
    line["seed"] = options_.seed;
    line["ops"] = options_.ops;
    line["rounds"] = own.size();
    line["node_cpu_ns_per_op"] = median_of(own, &HintedSample::cpu_ns);
    line["node_cpu_ratio"] = ratio;
    if (kHintedWays[way].hints) {
      line["admitted_share"] = median_of(own, &HintedSample::admitted);
      line["moved_share"] = median_of(own, &HintedSample::moved);
      line["refused_share"] = median_of(own, &HintedSample::refused);
    }
    report_.line(line);
  }

  const SwitchRunOptions& options_;
  Report& report_;
  const node::Node& node_;
  tree::MapCore& core_;
  KnownHints hints_;
  const base::Zipf zipf_;
  std::shared_ptr<client::RemoteSessions> sessions_;
  std::unique_ptr<client::RingPipeline> pipeline_;
};

}  // namespace

void run_switch_hints(const SwitchRunOptions& options, Report& report) {
  OwnNodeMap map(options);
  HintsRun run(options, report, map);
  run.run();
}

}  // namespace espalier::bench
