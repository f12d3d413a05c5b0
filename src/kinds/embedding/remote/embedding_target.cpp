// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/remote/embedding_target.hpp"

namespace espalier::place {

Result<EmbeddingTarget> EmbeddingTarget::read(const embedding::EmbeddingPlace& place,
                                              std::uint64_t region_bytes) {
  if (!embedding::is_shape(place.shape)) return fail(Code::corrupt, 1);
  EmbeddingTarget target;
  target.region_bytes = region_bytes;
  target.header_offset = place.header_offset;
  target.id = place.table_id;
  target.generation = place.generation;
  target.options = embedding::options_of(place.shape);
  target.row_bytes = embedding::row_bytes_of(target.options.type, target.options.dimension);
  if (!target.holds(place.header_offset, embedding::kHeaderBytes)) return fail(Code::corrupt, 2);
  return target;
}

}  // namespace espalier::place
