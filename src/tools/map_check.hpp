// SPDX-License-Identifier: Apache-2.0
// Black-box check of a map while clients use it: queries whose answers must agree.
//
// The map is checked in stretches of some thousand items, each as of one version:
//   - an ascending scan delivers keys in strict order, beyond those of the stretch before;
//   - a descending scan of the same range delivers the same keys and values;
//   - the range counts as many items;
//   - gets of some of the keys find these values; gets of keys between them find nothing;
//   - the floor of such keys is the item before.
// At the end the floor of the greatest of all keys must be the last item, and the whole range must
// count as many items as were delivered, if one version lasted for all of it.
//
// No version is held for longer than `hold_ns`, because the map has to keep replaced values
// meanwhile. Of a stretch it keeps the keys, and 8 bytes for each value.
//
// It cannot detect a wrong structure, lost memory, or wrong answers that all agree.
//
// Thread: one at a time.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/map.hpp"

namespace espalier::tools {

/// Source of answers: a map, or a snapshot of it. Errors: as Snapshot's.
class Answers {
 public:
  virtual ~Answers() = default;
  virtual Result<std::uint64_t> scan(std::string_view low, std::string_view high,
                                     const ItemSink& sink, ScanOptions options) = 0;
  virtual Result<std::uint64_t> count(std::string_view low, std::string_view high) = 0;
  virtual Result<std::optional<Found>> get(std::string_view key) = 0;
  virtual Result<std::optional<FoundItem>> floor(std::string_view key) = 0;
};

struct MapCheckOptions {
  std::uint32_t max_key_bytes = 0;  ///< of the map
  /// Whether answers of one Answers are consistent. If not, only order can be checked.
  bool steady = true;
  std::uint64_t hold_ns = 1'000'000'000;
  std::uint32_t stretch_items = 4096;
  /// Number of keys of a stretch to check by gets; all keys of a stretch of at most four times as
  /// many.
  std::uint32_t samples = 64;
  std::uint64_t seed = 1;  ///< which ones
};

struct MapCheckReport {
  static constexpr std::size_t kFaultsMax = 20;

  std::uint64_t items = 0;
  std::uint64_t gets = 0;
  std::uint64_t floors = 0;
  std::uint64_t versions = 0;       ///< number of versions held in sequence
  bool counted_in_all = false;      ///< the whole range was counted at the same version
  std::vector<std::string> faults;  ///< a sentence each, naming a key; the first ones
  /// An error that ended the check early and is not a fault of the map, e.g. a lost connection.
  std::optional<Error> stopped_by;
};

/// Runs the check. `open` gets answers as of the newest version; `now_ns` is a monotonic clock;
/// `progress` receives the number of items checked, after each stretch.
/// Cost: three passes over the map. Memory: stretch_items keys, or 8 MiB of values on their way.
[[nodiscard]] MapCheckReport check_map(
    const std::function<Result<std::unique_ptr<Answers>>()>& open, const MapCheckOptions& options,
    const std::function<std::uint64_t()>& now_ns,
    const std::function<void(std::uint64_t items)>& progress = [](std::uint64_t) {});

/// Answers from the map itself, or from snapshots of it if it has versions.
[[nodiscard]] std::function<Result<std::unique_ptr<Answers>>()> answers_of(const Map& map);

}  // namespace espalier::tools
