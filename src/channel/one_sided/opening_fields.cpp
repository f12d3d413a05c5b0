// SPDX-License-Identifier: Apache-2.0
#include "channel/one_sided/opening_fields.hpp"

namespace espalier::client {

std::optional<OpeningField> next_field(std::string_view& payload) {
  wire::FieldHeader header;
  if (payload.size() < sizeof header) return std::nullopt;
  std::memcpy(&header, payload.data(), sizeof header);
  payload.remove_prefix(sizeof header);
  const std::uint64_t padded = (std::uint64_t{header.bytes} + 7) & ~std::uint64_t{7};
  if (padded > payload.size()) return std::nullopt;
  const OpeningField field{static_cast<wire::FieldKind>(header.kind),
                           payload.substr(0, header.bytes)};
  payload.remove_prefix(padded);
  return field;
}

}  // namespace espalier::client
