// SPDX-License-Identifier: Apache-2.0
// The identity, the location and the format of an embedding table, which a remote reader knows
// before it begins. Nothing of it changes while the table lives.
//
// Thread: plain values.
#pragma once

#include <cstdint>

#include "espalier/error.hpp"
#include "kinds/embedding/format.hpp"

namespace espalier::place {

struct EmbeddingTarget {
  /// Parses a place that a node answered, in a region of so many bytes. Every field is checked; the
  /// bytes are untrusted. Errors: corrupt (detail: 1 no shape of a table, 2 outside the region).
  [[nodiscard]] static Result<EmbeddingTarget> read(const embedding::EmbeddingPlace& place,
                                                    std::uint64_t region_bytes);

  /// Whether a buffer of so many bytes can begin there.
  [[nodiscard]] bool holds(std::uint64_t offset, std::uint64_t bytes) const {
    return offset % wire::kBlockBytes == 0 && bytes <= region_bytes &&
           offset <= region_bytes - bytes;
  }
  /// Whether a header is this table's, and the table was neither dropped nor renamed after so many
  /// renames.
  [[nodiscard]] bool is_live(const embedding::EmbeddingHeader& header,
                             std::uint32_t renames) const {
    return header.table_id == id && header.generation == generation &&
           header.superseded == wire::kLive && header.rename <= renames;
  }
  /// Whether a page list can begin there: in the header's buffer, or in one of its own.
  [[nodiscard]] bool is_list(std::uint64_t list) const {
    return list == first_list() || (list >= embedding::kListOffset &&
                                    holds(list - embedding::kListOffset, embedding::kPageBytes));
  }
  [[nodiscard]] std::uint64_t first_list() const {
    return header_offset + embedding::kFirstListOffset;
  }
  /// Number of entries that fit the list at this place.
  [[nodiscard]] std::uint64_t room_of(std::uint64_t list) const {
    return list == first_list() ? embedding::kFirstListEntries : embedding::kPagesMax;
  }

  std::uint64_t region_bytes = 0;
  std::uint64_t header_offset = 0;
  std::uint32_t id = 0;
  std::uint32_t generation = 0;
  EmbeddingOptions options;
  std::uint32_t row_bytes = 0;
};

}  // namespace espalier::place
