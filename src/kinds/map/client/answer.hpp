// SPDX-License-Identifier: Apache-2.0
// Runs single requests synchronously, on any Runner, and returns their answers.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kinds/map/client/map_impl.hpp"

namespace espalier::client {

/// Stores the answer of one request, copying what points into the map.
class Answer final : public Handler {
 public:
  void done(const Completion& done) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  Completion completion;
  std::string key;
  std::string* value = nullptr;  // where to copy a found value
  const ItemSink* sink = nullptr;
};

/// Reads one item whose key the caller has. Errors: as Runner::run, and those of the request.
Result<std::optional<Found>> find(Runner& runner, Op op, std::string_view key);
/// Reads one item and its key. Errors: as find().
Result<std::optional<FoundItem>> find_item(Runner& runner, Op op, std::string_view key);

/// The condition that a key's item is still as found. Points into `found`.
[[nodiscard]] Condition unchanged(const std::optional<Found>& found, bool versions);

/// Errors: key_too_long, for bounds longer than the map's keys may be.
[[nodiscard]] inline Result<void> check_bounds(std::string_view low, std::string_view high,
                                               std::uint32_t key_bytes_max) {
  if (low.size() <= key_bytes_max && high.size() <= key_bytes_max) return {};
  return fail(Code::key_too_long, key_bytes_max);
}

/// Builds the request of a scan; a limit above the largest count is no limit. Errors:
/// invalid_argument (see ScanOptions).
Result<Request> scan_request(std::string_view low, std::string_view high, ScanOptions options);
/// Runs a request of scan_request(), in parts if `parts` > 1, and returns the number of items.
/// Errors: as find().
Result<std::uint64_t> run_scan(Runner& runner, const Request& request, const ItemSink& sink,
                               std::uint32_t parts = 1);

}  // namespace espalier::client
