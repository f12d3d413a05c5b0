// SPDX-License-Identifier: Apache-2.0
// The answer of a node to one_sided_embedding, as its client parses it.
//
// Thread: any.
#pragma once

#include <cstdint>
#include <string_view>

#include "channel/one_sided/opening_fields.hpp"
#include "espalier/error.hpp"
#include "kinds/embedding/remote/embedding_target.hpp"
#include "wire/one_sided.hpp"

namespace espalier::client {

struct EmbeddingOpening {
  /// Parses the fields; skips those of unknown kinds. Errors: corrupt (detail 1: a field is cut or
  /// missing).
  static Result<EmbeddingOpening> read(std::string_view payload);
  /// The location of this table. Errors: corrupt (2: another table, or of another shape, or there
  /// is no lease; 3: its header cannot lie there).
  [[nodiscard]] Result<place::EmbeddingTarget> target_of(std::uint32_t table_id,
                                                         const EmbeddingOptions& options) const;

  wire::OfferedRegion region{};
  embedding::EmbeddingPlace table{};
  wire::LeaseGrant lease{};
};

}  // namespace espalier::client
