// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/size_class.hpp"

namespace espalier::memory {

/// That of most buffers that a store has.
inline constexpr SizeClass kNode = node_class_of(8192);

}  // namespace espalier::memory
