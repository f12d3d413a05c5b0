// SPDX-License-Identifier: Apache-2.0
#include "engine/principal.hpp"

#include <algorithm>
#include <cstring>

#include "base/assert.hpp"
#include "base/bytes.hpp"

namespace espalier::offload {
std::string bytes_of(const PrincipalView& principal) {
  const std::string_view name = principal.name.substr(0, wire::kPrincipalNameBytesMax);
  ESPALIER_ASSERT(principal.prefix.size() <= wire::kPrincipalPrefixBytesMax);
  const wire::PrincipalHeader header{static_cast<std::uint8_t>(principal.role),
                                     static_cast<std::uint8_t>(name.size()),
                                     static_cast<std::uint16_t>(principal.prefix.size())};
  const auto bytes =
      static_cast<std::uint32_t>(wire::kPrincipalBytesMin + name.size() + principal.prefix.size());
  std::string text;
  text.reserve(bytes);
  text += base::bytes_of(header);
  text += name;
  text += principal.prefix;
  text += base::bytes_of(bytes);
  return text;
}

std::optional<PrincipalView> read_principal(std::string_view bytes) {
  std::uint32_t all = 0;
  if (bytes.size() < wire::kPrincipalBytesMin) return std::nullopt;
  std::memcpy(&all, bytes.data() + bytes.size() - sizeof all, sizeof all);
  if (all < wire::kPrincipalBytesMin || all > bytes.size()) return std::nullopt;
  std::string_view left = bytes.substr(bytes.size() - all);
  wire::PrincipalHeader header{};
  std::memcpy(&header, left.data(), sizeof header);
  left = left.substr(sizeof header, all - wire::kPrincipalBytesMin);
  const bool good = wire::is_right(header.role) && header.name_bytes >= 1 &&
                    header.name_bytes <= wire::kPrincipalNameBytesMax &&
                    header.prefix_bytes <= wire::kPrincipalPrefixBytesMax &&
                    left.size() == std::size_t{header.name_bytes} + header.prefix_bytes;
  if (!good) return std::nullopt;
  const PrincipalView principal{static_cast<Right>(header.role), left.substr(0, header.name_bytes),
                                left.substr(header.name_bytes)};
  const auto printable = [](char c) { return c >= ' ' && c <= '~'; };
  if (!std::ranges::all_of(principal.name, printable)) return std::nullopt;
  return principal;
}

}  // namespace espalier::offload
