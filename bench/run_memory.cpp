// SPDX-License-Identifier: Apache-2.0
#include "bench/run_memory.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <string>
#include <vector>

#include "bench/benchmark.hpp"
#include "bench/memory_probe.hpp"
#include "bench/probe.hpp"
#include "bench/resident.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kBytesMin = std::uint64_t{1} << 18;
constexpr std::uint64_t kChainsBlockBytes = std::uint64_t{256} << 20;  // far above any cache

// Runs the measurements and prints each, with the probes around it.
class MemoryRun {
 public:
  MemoryRun(const MemoryOptions& options, Report& report) : options_(options), report_(report) {
    report_.table({{"measure", -10, "workload"},
                   {"block", 12, "block_bytes"},
                   {"chains", 6, "in_flight"},
                   {"ns", 8, "ns_per_line", 1},
                   {"M lines/s", 9, "ops_per_s", 1, 1e-6},
                   {"GB/s", 7, "bytes_per_s", 1, 1e-9},
                   {"probe ns", 11, "probe_ns", 0},
                   {"pages", -30, "pages"}});
  }

  void latency() {
    for (std::uint64_t bytes = kBytesMin; bytes <= options_.bytes_max; bytes *= 2) {
      chain("latency", bytes, 1);
    }
  }

  void in_flight() {
    const std::uint64_t bytes = std::min(options_.bytes_max, kChainsBlockBytes);
    for (std::uint32_t chains = 1; chains <= kChainsMax; chains *= 2) {
      chain("in-flight", bytes, chains);
    }
  }

  void bandwidth() {
    const Resident before = resident();
    HugeBuffer block(options_.bytes_max);
    std::memset(block.data(), 1, block.bytes());
    const std::string pages = page_message(before, resident());
    bandwidth_of("read", block, pages, read_sequentially);
    bandwidth_of("copy", block, pages, copy_sequentially);
  }

 private:
  void chain(const char* workload, std::uint64_t bytes, std::uint32_t chains) {
    const Resident before = resident();
    const ChaseBlock block(bytes, options_.seed);
    const std::string pages = page_message(before, resident());
    print(workload, bytes, pages, [&](Json& line) {
      // One pass of warming, so that small blocks are in the cache that they fit.
      chase(block, chains, 0);
      const ChaseResult result = chase(block, chains, options_.seconds);
      line["in_flight"] = chains;
      line["ops_per_s"] = std::round(result.lines_per_s);
      line["ns_per_line"] = rounded(result.ns_per_line);
      return result.checksum;
    });
  }

  template <class Measure>
  void bandwidth_of(const char* workload, const HugeBuffer& block, const std::string& pages,
                    Measure measure) {
    print(workload, block.bytes(), pages, [&](Json& line) {
      const BandwidthResult result = measure(block, options_.seconds);
      line["bytes_per_s"] = std::round(result.bytes_per_s);
      return result.checksum;
    });
  }

  template <class Measure>
  void print(const char* workload, std::uint64_t bytes, const std::string& pages, Measure measure) {
    report_.progress().show(fmt::format("{}: {} bytes", workload, bytes));
    Json line{{"target", "machine"},
              {"workload", workload},
              {"block_bytes", bytes},
              {"threads", 1},
              {"seed", options_.seed}};
    const auto probe_before = probe_ns(options_.probe_rounds);
    const std::uint64_t checksum = measure(line);
    line["pages"] = pages;
    line["probe_ns"] = probes_json(probe_before, probe_ns(options_.probe_rounds));
    line["result_hash"] = hex(checksum);
    report_.line(line);
  }

  const MemoryOptions& options_;
  Report& report_;
};

}  // namespace

void MemoryOptions::declare(OptionRows& rows) {
  rows.number("--bytes", bytes_max, {kBytesMin, std::uint64_t{1} << 40}, "the largest block");
  rows.number("--seconds", seconds, {}, "for each measurement");
  rows.number("--seed", seed, {}, "of the random chains");
  rows.of_output(*this);
}

std::vector<ExperimentRow> MemoryOptions::experiment_rows() const {
  return {{"memory", {}, [this](Report& report) {
             run_pinned([&] {
               MemoryRun run(*this, report);
               run.latency();
               run.in_flight();
               run.bandwidth();
             });
           }}};
}

}  // namespace espalier::bench
