// SPDX-License-Identifier: Apache-2.0
// Files of query lists and groups, as `espalier embedding build` reads them:
//
//   lists       a list of ids a line, from 0
//   merci       MERCI's, of which the first line says which it is:
//     train       "1 <items> <lists> <pins> 2", then "<weight> id id ..." a line, ids from 1
//     test        "# <items>", then the same
//     evaluation  "# <items> <rows> # <classes + 1>", then "first size clusters" for each class of
//                 clusters of one size, "end -1 -1", then a list of remapped ids a line, from 0;
//                 or "# 2 0 1 <end>" and "<end> -1 -1", which has no clusters
//   groups      a group of ids a line, from 0
//   partition   for each item the number of its part, in MERCI's order
//
// The files are untrusted: ids are checked against the number of rows, counts against the data.
// Memory: 4 bytes for each id.
//
// Thread: plain functions.
#pragma once

#include <cstdint>
#include <expected>
#include <functional>
#include <string>

#include "base/byte_source.hpp"
#include "kinds/embedding/communities.hpp"
#include "kinds/embedding/query_lists.hpp"

namespace espalier::tools {

enum class QueryFormat : std::uint8_t { lists, merci };

struct QueryFile {
  embedding::QueryLists lists;
  embedding::GroupLists groups;  // of an evaluation file
};

/// Progress callback with the bytes and lists read so far.
using ReadProgress = std::function<void(std::uint64_t bytes, std::uint64_t lists)>;

// Errors: the mistake in the file, in words, with its line; why it cannot be read.

/// `rows`: bound on ids.
[[nodiscard]] std::expected<QueryFile, std::string> read_query_lists(
    base::ByteSource& source, QueryFormat format, std::uint64_t rows,
    const ReadProgress& progress = {});
[[nodiscard]] std::expected<embedding::GroupLists, std::string> read_groups(
    base::ByteSource& source, std::uint64_t rows);
/// Parts have at most 128 items; of no part are rows that the file does not name.
[[nodiscard]] std::expected<embedding::Communities, std::string> read_partition(
    base::ByteSource& source, std::uint64_t rows);

}  // namespace espalier::tools
