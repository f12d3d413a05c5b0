// SPDX-License-Identifier: Apache-2.0
// Single requests that are run one at a time, and their answers, whoever runs them.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

#include "kinds/map/client/map_impl.hpp"

namespace espalier::client {

/// Keeps the answer of one request that is run alone, copying what points into the map.
class Answer final : public Handler {
 public:
  void done(const Completion& done) override;
  bool items(std::uint64_t tag, std::span<const Item> items) override;

  Completion completion;
  std::string key;
  std::string* value = nullptr;  // where to copy a found value
  const ItemSink* sink = nullptr;
};

/// Reads one item whose key is known before. Errors: as Runner::run, and those of the request.
Result<std::optional<Found>> find(Runner& runner, Op op, std::string_view key);
/// Reads one item and its key. Errors: the same.
Result<std::optional<FoundItem>> find_item(Runner& runner, Op op, std::string_view key);

/// The condition that a key's item is still as it was found. It points into `found`.
[[nodiscard]] Condition unchanged(const std::optional<Found>& found, bool versions);

/// Errors: key_too_long, of bounds that no key of the map can be.
[[nodiscard]] inline Result<void> check_bounds(std::string_view low, std::string_view high,
                                               std::uint32_t key_bytes_max) {
  if (low.size() <= key_bytes_max && high.size() <= key_bytes_max) return {};
  return fail(Code::key_too_long, key_bytes_max);
}

/// What a scan asks for; a limit that is out of reach is none. Errors: invalid_argument (see
/// ScanOptions).
Result<Request> scan_request(std::string_view low, std::string_view high, ScanOptions options);
/// Runs what scan_request made and returns the number of items; where more than one part is wanted,
/// in parts. Errors: as find.
Result<std::uint64_t> run_scan(Runner& runner, const Request& request, const ItemSink& sink,
                               std::uint32_t parts = 1);

}  // namespace espalier::client
