// SPDX-License-Identifier: Apache-2.0
// Queries of a model as they arrive: as text, which a helper of a node parses, or as words.
//
//   0.5 -1 3 | 17 99 3 | 4 | 8 8        a query a line: dense features, then of each table its ids
//
// Numbers are separated by spaces, features and tables by bars; a table may have no ids. An empty
// line, and one that begins with #, is no query. Words may have renumbered ids, text has none.
//
// Thread: plain values.
#pragma once

#include <cstdint>
#include <expected>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "espalier/embedding_types.hpp"
#include "kinds/embedding/model/model_format.hpp"

namespace espalier::embedding {

struct ModelQueries {
  std::uint32_t queries = 0;
  std::vector<float> dense;  // query by query
  struct Bags {
    std::vector<std::uint32_t> ids;
    std::vector<std::uint32_t> offsets;  // one for each query
    std::uint32_t grouping = 0;          // by which the ids are renumbered; 0: they are not
  };
  std::vector<Bags> tables;
};

/// Parses queries of text. Errors: in words that name the line. Cost: some ns for each byte.
[[nodiscard]] std::expected<ModelQueries, std::string> parse_queries(const ModelShape& shape,
                                                                     std::string_view text);
/// Parses queries in the format of InferShape. Errors: in words.
[[nodiscard]] std::expected<ModelQueries, std::string> read_queries(const ModelShape& shape,
                                                                    std::uint32_t queries,
                                                                    std::string_view words);
/// The reverse. Requires: the bags of each table are as many as queries.
[[nodiscard]] std::string words_of(std::span<const float> dense,
                                   std::span<const EmbeddingBags> tables);
/// Why one request cannot have so many queries; nothing: it can.
[[nodiscard]] std::optional<std::string> fault_of_count(const ModelShape& shape,
                                                        std::uint64_t queries);

}  // namespace espalier::embedding
