// SPDX-License-Identifier: Apache-2.0
// The check of a whole embedding table: what its header, page list and pages say of each other.
//
// Thread: any; appends and replacements wait meanwhile.
#pragma once

#include <string>
#include <vector>

#include "kinds/embedding/embedding_table.hpp"

namespace espalier::embedding {

/// What is wrong, in words; nothing: all is well. Cost: a look at each page's header.
[[nodiscard]] std::vector<std::string> audit(const EmbeddingTable& table);

}  // namespace espalier::embedding
