// SPDX-License-Identifier: Apache-2.0
// Definitions of map types: see espalier/types.hpp.
#include "espalier/types.hpp"

namespace espalier {

bool Handler::items(std::uint64_t, std::span<const Item>) { return true; }

}  // namespace espalier
