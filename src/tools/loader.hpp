// SPDX-License-Identifier: Apache-2.0
// Fills a map from files, one of this process or one of a node: the first step of every command
// that works on data.
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

/// Which data, how to read it, and into what kind of map.
struct SourceOptions {
  std::vector<std::string> files;  ///< "-": standard input
  std::optional<Format> format;    ///< nullopt: told from each file's name, then its content
  ReaderOptions reader;            ///< its format is not used
  bool strict = false;             ///< any bad line makes the command fail
  std::optional<std::uint64_t> bad_lines_max;  ///< stop when there are more
  MapOptions map;
  bool hashed = false;                  ///< it is to be a hash map
  HashMapOptions hash;                  ///< of one; its versions are as `map` says
  std::uint64_t memory_bytes_max = 0;   ///< 0: as the environment says
  std::optional<std::string> at;        ///< the address of a node, as given
  std::optional<std::string> map_name;  ///< a map of that node, as given
  Access access = Access::rpc;          ///< of a node: whether it is asked, or read
  /// Options that say how files are read, and those that say what map is made of them: without
  /// meaning for a map that lies on a node.
  std::vector<const CLI::Option*> reading;
  std::vector<const CLI::Option*> making;
};

/// A bad line, and the file that it stands in.
struct BadLine {
  std::string file;
  BadRecord record;
};

/// What filling the map brought to light.
struct LoadReport {
  static constexpr std::uint64_t kShownMax = 20;  ///< bad lines that are shown and kept

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
  bool has_values = false;     ///< some file had more than keys
  // Of the last file, for whoever writes it back:
  Format format = Format::lines;
  std::string header;
  std::size_t columns = 0;
};

/// Sizes of what is in a map, from one scan or walk of it.
struct Payload {
  std::uint64_t items = 0;
  std::uint64_t key_bytes = 0;
  std::uint64_t value_bytes = 0;
};

/// A map in memory that lives as long as this does.
template <class AMap>
struct LoadedMap {
  Store store;
  AMap map;
  LoadReport report;
};
using Dataset = LoadedMap<Map>;
using HashDataset = LoadedMap<HashMap>;

/// How to read the records of one file: what the options say, else what its name asks for.
[[nodiscard]] ReaderOptions reader_options_for(const SourceOptions& options,
                                               const std::string& file);

/// Reads all files into one new map. Bad lines are told on `err` as they come, the first ones by
/// line, and do not stop it. Cost: one put per record; memory for the map, not for the file.
/// Fails if a file cannot be read or the map is out of memory; not for bad lines (see check_clean).
[[nodiscard]] Outcome<Dataset> load(Environment& environment, const SourceOptions& options);
/// The same of a hash map.
[[nodiscard]] Outcome<HashDataset> load_hashed(Environment& environment,
                                               const SourceOptions& options);

/// Reads all files into a map of a node, with many records in flight, and goes on as load() does.
[[nodiscard]] Outcome<LoadReport> load_into_node(Environment& environment,
                                                 const SourceOptions& options, const Map& map);
[[nodiscard]] Outcome<LoadReport> load_into_node(Environment& environment,
                                                 const SourceOptions& options, const HashMap& map);

/// Fails if the options do not allow the bad lines that there were.
[[nodiscard]] Outcome<void> check_clean(const SourceOptions& options, const LoadReport& report);

/// load, then check_clean.
[[nodiscard]] Outcome<Dataset> load_clean(Environment& environment, const SourceOptions& options);

[[nodiscard]] Outcome<Payload> measure(const Map& map);
[[nodiscard]] Outcome<Payload> measure(const HashMap& map);

}  // namespace espalier::tools
