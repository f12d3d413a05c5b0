// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/client/embedding_opening.hpp"

#include "kinds/embedding/calls.hpp"

namespace espalier::client {

Result<EmbeddingOpening> EmbeddingOpening::read(std::string_view payload) {
  return read_opening_of(embedding_calls::kEmbeddingField, &EmbeddingOpening::table, payload);
}

Result<place::EmbeddingTarget> EmbeddingOpening::target_of(std::uint32_t table_id,
                                                           const EmbeddingOptions& options) const {
  auto target = place::EmbeddingTarget::read(table, region.bytes);
  if (!target) return fail(Code::corrupt, kOpeningOutside);
  if (target->id != table_id || target->options != options || lease.lease == 0) {
    return fail(Code::corrupt, kOpeningNotAsked);
  }
  return target;
}

}  // namespace espalier::client
