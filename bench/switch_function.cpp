// SPDX-License-Identifier: Apache-2.0
// `espalier-bench switch --experiment function`: the packet function's cost per frame.
//
//   parse        READ requests, without tables: the baseline of the others
//   other        WRITEs, beside all tables
//   miss         READ requests by a key that no map has, beside all tables
//   fat-root     READ requests that the fat root redirects, keys drawn by their ranks
//   hit          the same with the sets of nodes behind it
//   hit-uniform  the same of all keys alike
//   hit-alone    as `hit`, each frame by itself, where all others come in bursts, as in a switch
//
// Each frame is copied before it is processed, which all results include.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <span>
#include <stdexcept>
#include <vector>

#include "base/clock.hpp"
#include "bench/median.hpp"
#include "bench/report.hpp"
#include "bench/switch_experiments.hpp"
#include "bench/switch_frames.hpp"

namespace espalier::bench {
namespace {

struct FrameKind {
  const char* name;
  const dataplane::PacketFunction* function;
  const FrameSet* frames;
  dataplane::Outcome outcome;
  std::size_t together = 32;  // frames of a burst
};

class FunctionRun {
 public:
  FunctionRun(const SwitchRunOptions& options, Report& report)
      : options_(options), report_(report), keys_(options.keys, options.seed) {
    report_.progress().show("compiling tables");
    root_.add(kRankKeys, compile(0));
    full_.add(kRankKeys, tables_ = compile(options.sets));
    check();
  }

  void run() {
    report_.table({{"frames", -18, "target"},
                   {"ns", 7, "ns_per_frame", 1},
                   {"above parsing", 13, "ns_above_parsing", 1}});
    const std::array<FrameKind, 7> kinds{
        {{"parse", &empty_, &ranked_, dataplane::Outcome::read_passed},
         {"other", &full_, &writes_, dataplane::Outcome::passed},
         {"miss", &full_, &missing_, dataplane::Outcome::read_passed},
         {"fat-root", &root_, &ranked_, dataplane::Outcome::redirected},
         {"hit", &full_, &ranked_, dataplane::Outcome::redirected},
         {"hit-uniform", &full_, &even_, dataplane::Outcome::redirected},
         {"hit-alone", &full_, &ranked_, dataplane::Outcome::redirected, 1}}};
    std::array<std::vector<double>, kinds.size()> ns;
    for (std::uint32_t round = 0; round < options_.rounds; ++round) {
      for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
        report_.progress().show(
            fmt::format("round {} of {}: {}", round + 1, options_.rounds, kinds[kind].name));
        ns[kind].push_back(measure(kinds[kind]));
      }
    }
    for (std::size_t kind = 0; kind < kinds.size(); ++kind) {
      std::vector<double> above;
      for (std::size_t round = 0; round < ns[kind].size(); ++round) {
        above.push_back(ns[kind][round] - ns[0][round]);
      }
      print(kinds[kind].name, median_of(ns[kind]), median_of(above));
    }
  }

 private:
  [[nodiscard]] dataplane::IndexTables compile(std::size_t sets) const {
    return dataplane::compile(
               keys_.tree().tree,
               {.ranges = options_.ranges, .sets = sets, .nodes_per_set = options_.nodes_per_set})
        .tables;
  }
  // Checks the results before measuring.
  void check() const {
    std::vector<std::byte> frame(ranked_.frame_bytes());
    for (const FrameSet* const frames : {&ranked_, &even_}) {
      for (std::size_t i = 0; i < FrameSet::kFrames; ++i) {
        const auto came = frames->at(i);
        std::memcpy(frame.data(), came.data(), came.size());
        static_cast<void>(full_.process(frame));
        const auto found = dataplane::find(tables_, FrameSet::address_in(came));
        if (FrameSet::address_in(frame) != found.address ||
            FrameSet::key_in(frame) != kRankKeys.redirect || !FrameSet::is_whole(frame)) {
          throw std::runtime_error("the packet function leads a frame astray");
        }
      }
    }
  }
  [[nodiscard]] double measure(const FrameKind& kind) const {
    const std::size_t frame_bytes = kind.frames->frame_bytes();
    std::vector<std::byte> room(kind.together * frame_bytes);
    std::vector<std::span<std::byte>> burst;
    for (std::size_t i = 0; i < kind.together; ++i) {
      burst.push_back(std::span(room).subspan(i * frame_bytes, frame_bytes));
    }
    std::vector<dataplane::Processed> done(kind.together);
    std::uint64_t as_wanted = 0;
    const auto pass = [&](std::uint64_t count) {
      for (std::uint64_t i = 0; i < count;) {
        const std::size_t some = std::min<std::uint64_t>(kind.together, count - i);
        for (std::size_t j = 0; j < some; ++j) {
          const auto came = kind.frames->at((i + j) % FrameSet::kFrames);
          std::memcpy(burst[j].data(), came.data(), came.size());
        }
        process(*kind.function, std::span(burst).first(some), done);
        for (std::size_t j = 0; j < some; ++j) as_wanted += done[j].outcome == kind.outcome ? 1 : 0;
        asm volatile("" : : "r"(room.data()) : "memory");  // the output is used
        i += some;
      }
    };
    pass(FrameSet::kFrames);  // into the caches
    const base::Stopwatch watch;
    pass(options_.frames);
    const auto ns = static_cast<double>(watch.elapsed_ns());
    if (as_wanted != FrameSet::kFrames + options_.frames) {
      throw std::runtime_error(fmt::format("frames of '{}' fare otherwise", kind.name));
    }
    return ns / static_cast<double>(options_.frames);
  }

  static void process(const dataplane::PacketFunction& function,
                      std::span<const std::span<std::byte>> frames,
                      std::span<dataplane::Processed> done) {
    if (frames.size() == 1) {
      done[0] = function.process(frames[0]);
    } else {
      function.process(frames, done);
    }
  }

  void print(const char* name, double ns, double above) {
    Json line = line_of_frames(options_, name, "function");
    line["ns_per_frame"] = ns;
    line["ns_above_parsing"] = above;
    report_.line(line);
  }

  const SwitchRunOptions& options_;
  Report& report_;
  const RankedKeys keys_;
  const FrameSet ranked_{ranked_numbers(keys_, options_.seed), kRankKeys.keyed};
  const FrameSet even_{even_numbers(keys_, options_.seed), kRankKeys.keyed};
  const FrameSet missing_{ranked_numbers(keys_, options_.seed), kRankKeys.keyed + 9};
  const FrameSet writes_ = FrameSet::of_writes();
  dataplane::IndexTables tables_;
  dataplane::PacketFunction empty_;
  dataplane::PacketFunction root_;
  dataplane::PacketFunction full_;
};

}  // namespace

void run_switch_function(const SwitchRunOptions& options, Report& report) {
  FunctionRun(options, report).run();
}

}  // namespace espalier::bench
