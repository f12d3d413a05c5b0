// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/client/asked_borders.hpp"

#include <cstdint>

#include "channel/rings/typed_call.hpp"
#include "kinds/map/client/answer.hpp"
#include "kinds/map/item_calls.hpp"
#include "wire/payload_reader.hpp"

namespace espalier::client {

std::vector<std::string> borders_in(std::string_view answer) {
  std::vector<std::string> borders;
  wire::PayloadReader reader(answer);
  while (reader.good() && !reader.rest().empty() && borders.size() < ScanOptions::kPartsMax) {
    const std::string_view key = reader.text(reader.take<std::uint16_t>());
    if (reader.good()) borders.emplace_back(key);
  }
  return borders;
}

Result<std::vector<std::string>> ask_borders(RemoteRequests& requests, const Scope& scope,
                                             const Request& scan, std::uint32_t parts) {
  if (!check_bounds(scan.key, scan.high, scope.max_key_bytes)) return std::vector<std::string>{};
  Reply answer;
  const auto found =
      ask(requests, map_calls::RangeBorders{scope.map, scan.key, parts, scan.high}, answer);
  if (!found) return std::unexpected(found.error());
  return borders_in(found->keys);
}

}  // namespace espalier::client
