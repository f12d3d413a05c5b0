// SPDX-License-Identifier: Apache-2.0
#pragma once

#include "memory/size_class.hpp"

namespace espalier::memory {

/// The class of most buffers of a store.
inline constexpr SizeClass kNode = node_class_of(8192);

}  // namespace espalier::memory
