// SPDX-License-Identifier: Apache-2.0
// Checks a whole embedding table: that its header, page list and pages agree.
//
// Thread: any; appends and replacements wait meanwhile.
#pragma once

#include <string>
#include <vector>

#include "kinds/embedding/embedding_table.hpp"

namespace espalier::embedding {

/// The violations, in words; empty: none. Cost: reads each page's header.
[[nodiscard]] std::vector<std::string> audit(const EmbeddingTable& table);

}  // namespace espalier::embedding
