// SPDX-License-Identifier: Apache-2.0
// What is asked of a map: the workloads by name, and the share of each operation in them.
//
// a to f are those of YCSB, with one field. cloud is honeycomb's: SCAN(Kl, Ku) whose bounds were
// chosen to return three items of the initial map, and inserts, which make some of them four.
// [Honeycomb §6]
#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

namespace espalier::bench {

enum class Distribution : std::uint8_t { uniform, zipfian, latest };

enum class Workload : std::uint8_t {
  a,               // 50 % read, 50 % update
  b,               // 95 % read, 5 % update
  c,               // reads
  d,               // 95 % read of what was inserted lately, 5 % insert
  e,               // 95 % scan of 1 to 100 items, 5 % insert
  f,               // 50 % read, 50 % read-modify-write
  cloud,           // scans of 3 to 4 items between two bounds, the rest inserts
  get,             // reads, uniform
  scan,            // scans of a fixed number of items
  mixed,           // reads and updates, uniform
  load,            // inserts of all keys into an empty map, in random order
  load_ascending,  // the same in key order
  erase,           // erases all keys in random order
};

/// What two workloads let choose, as shares of 1.
struct Shares {
  double scans = 0.8;   ///< cloud: scans, the rest are inserts
  double writes = 0.5;  ///< mixed: updates, the rest are reads
};

/// Shares of 1.
struct Mix {
  double read = 0;
  double update = 0;
  double insert = 0;
  double read_modify_write = 0;
  // What is left are scans.
};

/// What a workload consists of.
Mix mix_of(Workload workload, const Shares& shares);

/// Whether the map is empty when the measured part begins.
bool starts_empty(Workload workload);
/// Whether it goes once through all keys, so that their number is the number of operations.
bool covers_keys(Workload workload);
/// Whether it needs the order of keys: it has scans.
bool scans(Workload workload);
/// Whether it leaves the map other than it was.
bool mutates(Workload workload, const Shares& shares);
/// The most items that a scan asks for, 0 if there are no scans.
std::uint32_t scan_items_max(Workload workload, std::uint32_t scan_items);

Distribution default_distribution(Workload workload);
std::uint64_t default_ops(Workload workload, std::uint32_t scan_items);

std::string_view name(Workload workload);
std::string_view name(Distribution distribution);
std::optional<Workload> parse_workload(std::string_view text);
std::optional<Distribution> parse_distribution(std::string_view text);

}  // namespace espalier::bench
