// SPDX-License-Identifier: Apache-2.0
// Fills a map from files, in this process or on a node: the first step of every command that works
// on data.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "espalier/hash_map.hpp"
#include "espalier/map.hpp"
#include "tools/environment.hpp"
#include "tools/record_reader.hpp"

namespace CLI {
class Option;
}

namespace espalier::tools {

/// The data, how to read it, and the kind of map.
struct SourceOptions {
  std::vector<std::string> files;  ///< "-": standard input
  std::optional<Format> format;    ///< nullopt: detected by each file's name, then its content
  ReaderOptions reader;            ///< its format is not used
  bool strict = false;             ///< any bad line makes the command fail
  std::optional<std::uint64_t> bad_lines_max;  ///< stop when there are more
  MapOptions map;
  bool hashed = false;                  ///< a hash map
  HashMapOptions hash;                  ///< its options; versions as in `map`
  std::uint64_t memory_bytes_max = 0;   ///< 0: the environment's
  std::optional<std::string> at;        ///< the address of a node, as given
  std::optional<std::string> map_name;  ///< a map of that node, as given
  Access access = Access::rpc;          ///< how a node's map is read
  /// Options about reading files, and options of a new map: without meaning for a map on a node.
  std::vector<const CLI::Option*> reading;
  std::vector<const CLI::Option*> making;
};

/// A bad line, and its file.
struct BadLine {
  std::string file;
  BadRecord record;
};

/// Results of filling the map.
struct LoadReport {
  static constexpr std::uint64_t kShownMax = 20;  ///< bad lines shown and kept

  std::uint64_t records = 0;     ///< good ones, duplicates included
  std::uint64_t duplicates = 0;  ///< records whose key was there already; the last one stays
  std::uint64_t bad_lines = 0;
  std::uint64_t blank_lines = 0;
  std::uint64_t input_bytes = 0;
  std::uint64_t key_bytes = 0;  ///< of all good records
  std::uint64_t value_bytes = 0;
  std::uint64_t elapsed_ns = 0;
  std::vector<BadLine> shown;  ///< the first bad lines
  bool stopped_early = false;  ///< there were more bad lines than allowed
  bool has_values = false;     ///< some file had values
  // Of the last file, to write it back:
  Format format = Format::lines;
  std::string header;
  std::size_t columns = 0;
};

/// Sizes of a map's contents, from one scan or walk.
struct Payload {
  std::uint64_t items = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
};

/// A map in memory, owned by this.
template <class AMap>
struct LoadedMap {
  Store store;
  AMap map;
  LoadReport report;
};
using Dataset = LoadedMap<Map>;
using HashDataset = LoadedMap<HashMap>;

/// How to read the records of one file: by the options, else by its name.
[[nodiscard]] ReaderOptions reader_options_for(const SourceOptions& options,
                                               const std::string& file);

/// Reads all files into one new map. Reports bad lines on `err` as they come, the first ones by
/// line, and continues. Cost: one put per record; memory for the map, not for the file. Fails if a
/// file cannot be read or the map is out of memory; not for bad lines (see check_clean).
[[nodiscard]] Outcome<Dataset> load(Environment& environment, const SourceOptions& options);
/// The same for a hash map.
[[nodiscard]] Outcome<HashDataset> load_hashed(Environment& environment,
                                               const SourceOptions& options);

/// Reads all files into a map of a node, with many records in flight; otherwise as load().
[[nodiscard]] Outcome<LoadReport> load_into_node(Environment& environment,
                                                 const SourceOptions& options, const Map& map);
[[nodiscard]] Outcome<LoadReport> load_into_node(Environment& environment,
                                                 const SourceOptions& options, const HashMap& map);

/// Fails if the options do not allow the bad lines found.
[[nodiscard]] Outcome<void> check_clean(const SourceOptions& options, const LoadReport& report);

/// load, then check_clean.
[[nodiscard]] Outcome<Dataset> load_clean(Environment& environment, const SourceOptions& options);

[[nodiscard]] Outcome<Payload> measure(const Map& map);
[[nodiscard]] Outcome<Payload> measure(const HashMap& map);

}  // namespace espalier::tools
