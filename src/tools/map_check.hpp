// SPDX-License-Identifier: Apache-2.0
// Examines a map from outside: asks it questions whose answers must agree, while others use it.
//
// The map is gone through in stretches of some thousand items, each as of one version:
//   - an ascending scan delivers keys in strict order, beyond those of the stretch before;
//   - a descending scan of the same range delivers the same keys and values;
//   - the range counts as many items;
//   - gets of some of the keys find these values; gets of keys between them find nothing;
//   - the floor of such keys is the item before.
// At the end the floor of the greatest of all keys must be the last item, and the whole range must
// count as many items as were delivered, if one version lasted for all of it.
//
// No version is held for longer than `hold_ns`, for the map would have to keep what is replaced
// meanwhile. What is kept of a stretch is its keys, and 8 bytes for each value.
//
// What this cannot see: how the tree is built, what memory is lost, and wrong answers that all
// agree.
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

/// Who answers: a map, or a snapshot of it. Errors: as Snapshot's.
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
  /// Whether nobody changes what one Answers tells. If not, only orders can be looked at.
  bool steady = true;
  std::uint64_t hold_ns = 1'000'000'000;
  std::uint32_t stretch_items = 4096;
  /// Keys of a stretch that are asked for one by one; of one with at most four times as many, all.
  std::uint32_t samples = 64;
  std::uint64_t seed = 1;  ///< which ones
};

struct MapCheckReport {
  static constexpr std::size_t kFaultsMax = 20;

  std::uint64_t items = 0;
  std::uint64_t gets = 0;
  std::uint64_t floors = 0;
  std::uint64_t versions = 0;       ///< how many were held, one after the other
  bool counted_in_all = false;      ///< the whole range was counted at the version of all else
  std::vector<std::string> faults;  ///< a sentence each, naming a key; the first ones
  /// What ended the check before its end, and says nothing about the map: the node is gone, ...
  std::optional<Error> stopped_by;
};

/// Runs the check. `open` gets answers as of the newest version; `now_ns` is a clock that goes
/// forward; `progress` is told of the items looked at so far, after each stretch.
/// Cost: three passes over the map. Memory: stretch_items keys, or 8 MiB of values on their way.
[[nodiscard]] MapCheckReport check_map(
    const std::function<Result<std::unique_ptr<Answers>>()>& open, const MapCheckOptions& options,
    const std::function<std::uint64_t()>& now_ns,
    const std::function<void(std::uint64_t items)>& progress = [](std::uint64_t) {});

/// The map itself answers, or snapshots of it if it has versions.
[[nodiscard]] std::function<Result<std::unique_ptr<Answers>>()> answers_of(const Map& map);

}  // namespace espalier::tools
