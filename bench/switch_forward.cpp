// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch --experiment forward`: frames a second of the switch, with tables and
// without, the same READ requests in turns, all on one core.
//
// One thread sends a burst, has the switch forward it, and takes it at the node's end. The clock
// runs around the switch alone, once for each burst; and around all three, which includes
// generating frames.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <memory>
#include <stdexcept>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "bench/frame_links.hpp"
#include "bench/map_session.hpp"
#include "bench/median.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "bench/switch_frames.hpp"
#include "dataplane/installed_function.hpp"
#include "dataplane/memif_switch.hpp"

namespace espalier::bench {
namespace {

struct Forwarded {
  double switch_rate = 0;  // frames a second of the switch's own time
  double rate = 0;         // of all time
  std::uint64_t lost = 0;
  std::uint64_t misrouted = 0;
};

class ForwardRun {
 public:
  ForwardRun(const SwitchRunOptions& options, Report& report)
      : options_(options),
        report_(report),
        keys_(options.keys, options.seed),
        frames_(ranked_numbers(keys_, options.seed), kRankKeys.keyed),
        links_(path("node")),
        switch_(
            value_or_throw(dataplane::MemifSwitch::open({path("clients"), path("node")}, function_),
                           "no switch")) {
    report_.progress().show("compiling tables");
    const auto compiled = dataplane::compile(
        keys_.tree().tree,
        {.ranges = options.ranges, .sets = options.sets, .nodes_per_set = options.nodes_per_set});
    tables_.add(kRankKeys, compiled.tables);
    for (std::size_t i = 0; i < FrameSet::kFrames; ++i) {
      const std::uint64_t number = FrameSet::address_in(frames_.at(i));
      numbers_.push_back(number);
      addresses_.push_back(dataplane::find(compiled.tables, number).address);
    }
    links_.connect(path("clients"), [this] { switch_->poll(); });
  }

  void run() {
    report_.table({{"switch", -18, "target"},
                   {"its own M/s", 11, "switch_frames_per_second", 2, 1e-6},
                   {"all M/s", 8, "frames_per_second", 2, 1e-6},
                   {"dropped", 8, "dropped"},
                   {"misrouted", 9, "misrouted"}});
    std::array<std::vector<Forwarded>, 2> came;  // without tables, with them
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t turn = 0; turn < 2; ++turn) {
        const std::size_t with = (round + turn) % 2;  // neither is always the first
        report_.progress().show(fmt::format("round {} of {}: {} tables", round + 1, options_.rounds,
                                            with == 1 ? "with" : "without"));
        function_.install(with == 1 ? tables_ : dataplane::PacketFunction{});
        static_cast<void>(forward(FrameSet::kFrames, with == 1));  // into the caches
        came[with].push_back(forward(options_.frames, with == 1));
      }
    }
    print("without-tables", came[0]);
    print("with-tables", came[1]);
    print_ratio(came[0], came[1]);
    if (!right_) report_.fail(kFramesAreWrong);
  }

 private:
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

  Forwarded forward(std::uint64_t count, bool redirected) {
    Forwarded done;
    const std::uint64_t lost_before = switch_->counters().lost;
    std::uint64_t sent = 0;
    std::uint64_t received = 0;
    std::uint64_t switch_ns = 0;
    const base::Stopwatch watch;
    while (sent < count) {
      const std::uint64_t until = std::min(count, sent + FrameLinks::kBurst);
      while (sent < until && links_.send(frames_.at(sent % FrameSet::kFrames))) ++sent;
      links_.publish();
      const base::Stopwatch of_switch;
      switch_->poll();
      switch_ns += of_switch.elapsed_ns();
      received += take(redirected, done.misrouted);
    }
    const std::uint64_t all_ns = watch.elapsed_ns();
    // Receives frames still in flight, for a second at most.
    const base::Stopwatch rest;
    while (received < sent && rest.elapsed_ns() < 1'000'000'000) {
      switch_->poll();
      received += take(redirected, done.misrouted);
    }
    done.lost = sent - received;
    if (switch_->counters().lost - lost_before != done.lost) {
      throw std::runtime_error("the switch counts its losses wrong");
    }
    done.switch_rate = static_cast<double>(count) * 1e9 / static_cast<double>(switch_ns);
    done.rate = static_cast<double>(count) * 1e9 / static_cast<double>(all_ns);
    right_ = right_ && done.lost == 0 && done.misrouted == 0;
    return done;
  }
  std::uint64_t take(bool redirected, std::uint64_t& misrouted) {
    const auto frames = links_.receive();
    for (const auto frame : frames) {
      const std::uint32_t place = FrameSet::psn_in(frame) % FrameSet::kFrames;
      const std::uint64_t wanted = redirected ? addresses_[place] : numbers_[place];
      const std::uint32_t key = redirected ? kRankKeys.redirect : kRankKeys.keyed;
      if (FrameSet::address_in(frame) != wanted || FrameSet::key_in(frame) != key) ++misrouted;
    }
    return frames.size();
  }

  void print(const char* name, const std::vector<Forwarded>& came) {
    std::uint64_t lost = 0;
    std::uint64_t misrouted = 0;
    for (const Forwarded& each : came) {
      lost += each.lost;
      misrouted += each.misrouted;
    }
    const double switch_rate = median_of(came, &Forwarded::switch_rate);
    const double rate = median_of(came, &Forwarded::rate);
    Json line = line_of_frames(options_, name, "forward");
    line["switch_frames_per_second"] = switch_rate;
    line["frames_per_second"] = rate;
    line["dropped"] = lost;
    line["misrouted"] = misrouted;
    report_.line(line);
  }
  void print_ratio(const std::vector<Forwarded>& without, const std::vector<Forwarded>& with) {
    std::vector<double> of_switch;
    std::vector<double> of_all;
    for (std::size_t round = 0; round < without.size(); ++round) {
      of_switch.push_back(with[round].switch_rate / without[round].switch_rate);
      of_all.push_back(with[round].rate / without[round].rate);
    }
    Json line;
    line["target"] = "with/without-tables";
    line["workload"] = "forward";
    line["rounds"] = without.size();
    line["switch_frames_per_second_ratio"] = median_of(of_switch);
    line["frames_per_second_ratio"] = median_of(of_all);
    report_.ratios(line, "switch_frames_per_second_ratio");
  }

  const SwitchRunOptions& options_;
  Report& report_;
  const RankedKeys keys_;
  const FrameSet frames_;
  std::vector<std::uint64_t> numbers_;    // of each frame, in order
  std::vector<std::uint64_t> addresses_;  // where the tables lead it
  dataplane::PacketFunction tables_;
  base::TemporaryFolder folder_;
  dataplane::InstalledFunction function_;
  FrameLinks links_;
  std::unique_ptr<dataplane::MemifSwitch> switch_;
  bool right_ = true;
};

}  // namespace

void run_switch_forward(const SwitchRunOptions& options, Report& report) {
  ForwardRun(options, report).run();
}

}  // namespace espalier::bench
