// SPDX-License-Identifier: Apache-2.0
#include "bench/run_memory.hpp"

#include <fmt/ostream.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <stdexcept>
#include <vector>

#include "bench/memory_probe.hpp"
#include "bench/probe.hpp"
#include "bench/progress.hpp"
#include "bench/report.hpp"
#include "bench/resident.hpp"

namespace espalier::bench {
namespace {

constexpr std::uint64_t kBytesMin = std::uint64_t{1} << 18;
constexpr std::uint64_t kChainsBlockBytes = std::uint64_t{256} << 20;  // far above any cache

std::string size_name(std::uint64_t bytes) {
  if (bytes >= (std::uint64_t{1} << 30)) return fmt::format("{} GiB", bytes >> 30);
  if (bytes >= (std::uint64_t{1} << 20)) return fmt::format("{} MiB", bytes >> 20);
  return fmt::format("{} KiB", bytes >> 10);
}

// Runs the measurements and prints each, with the probes around it.
class MemoryRun {
 public:
  MemoryRun(const MemoryOptions& options, const Output& output)
      : options_(options),
        out_(output.out),
        progress_(output),
        table_(output.out, {{"measure", -10},
                            {"block", 8},
                            {"chains", 6},
                            {"ns", 8},
                            {"M lines/s", 9},
                            {"GB/s", 7},
                            {"probe ns", 11},
                            {"pages", -30}}) {}

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
    print_bandwidth("read", block, pages, read_sequentially);
    print_bandwidth("copy", block, pages, copy_sequentially);
  }

  [[nodiscard]] std::uint64_t measurements() const { return measurements_; }
  [[nodiscard]] std::uint64_t checksum() const { return checksum_; }

 private:
  void chain(const char* workload, std::uint64_t bytes, std::uint32_t chains) {
    progress_.show(fmt::format("{}: {}, {} chains", workload, size_name(bytes), chains));
    const Resident before = resident();
    const ChaseBlock block(bytes, options_.seed);
    const std::string pages = page_message(before, resident());
    const auto probe_before = probe_ns(options_.probe_rounds);
    // One pass of warming, so that small blocks are in the cache that they fit.
    chase(block, chains, 0);
    const ChaseResult result = chase(block, chains, options_.seconds);
    Json line = new_line(workload, bytes);
    line["in_flight"] = chains;
    line["ops_per_s"] = std::round(result.lines_per_s);
    line["ns_per_line"] = std::round(result.ns_per_line * 100) / 100;
    print(line, probe_before, pages, result.checksum,
          {workload, size_name(bytes), std::to_string(chains),
           fmt::format("{:.1f}", result.ns_per_line),
           fmt::format("{:.1f}", result.lines_per_s * 1e-6), "-"});
  }

  template <class Measure>
  void print_bandwidth(const char* workload, const HugeBuffer& block, const std::string& pages,
                       Measure measure) {
    progress_.show(workload);
    const auto probe_before = probe_ns(options_.probe_rounds);
    const BandwidthResult result = measure(block, options_.seconds);
    Json line = new_line(workload, block.bytes());
    line["bytes_per_s"] = std::round(result.bytes_per_s);
    print(line, probe_before, pages, result.checksum,
          {workload, size_name(block.bytes()), "-", "-", "-",
           fmt::format("{:.1f}", result.bytes_per_s * 1e-9)});
  }

  Json new_line(const char* workload, std::uint64_t bytes) const {
    Json line;
    line["bench"] = "memory";
    line["target"] = "machine";
    line["workload"] = workload;
    line["block_bytes"] = bytes;
    line["threads"] = 1;
    line["seed"] = options_.seed;
    return line;
  }

  void print(Json& line, std::optional<double> probe_before, const std::string& pages,
             std::uint64_t checksum, std::vector<std::string> cells) {
    const auto probe_after = probe_ns(options_.probe_rounds);
    progress_.clear();
    ++measurements_;
    checksum_ += checksum;
    if (options_.json) {
      line["pages"] = pages;
      line["probe_ns"] = probes_json(probe_before, probe_after);
      line["result_hash"] = fmt::format("{:016x}", checksum);
      return print_line(out_, line);
    }
    cells.push_back(probes_text(probe_before, probe_after));
    cells.push_back(pages);
    table_.row(cells);
  }

  const MemoryOptions& options_;
  std::ostream& out_;
  Progress progress_;
  Table table_;
  std::uint64_t measurements_ = 0;
  std::uint64_t checksum_ = 0;
};

}  // namespace

std::optional<std::string> problem_of(const MemoryOptions& options) {
  if (options.bytes_max < kBytesMin || options.bytes_max > (std::uint64_t{1} << 40)) {
    return "--bytes must be 262144 (256 KiB) to 1099511627776 (1 TiB)";
  }
  if (!(options.seconds >= 0)) return "--seconds must not be negative";
  return std::nullopt;
}

int run_memory(const MemoryOptions& options, const Output& output) {
  if (const auto problem = problem_of(options)) throw std::runtime_error(*problem);
  MemoryRun run(options, output);
  run_pinned([&run] {
    run.latency();
    run.in_flight();
    run.bandwidth();
  });
  print_measurements(output.out, "memory", run.measurements(), options.json);
  return 0;
}

}  // namespace espalier::bench
