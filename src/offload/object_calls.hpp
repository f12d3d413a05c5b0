// SPDX-License-Identifier: Apache-2.0
// What the offloads on objects share, whatever the kind.
#pragma once

#include <cstdint>

#include "catalog/catalog.hpp"
#include "offload/call.hpp"
#include "offload/registry.hpp"

namespace espalier::offload {

/// Of requests whose key is the name of an object.
inline constexpr Limits kObjectName{.key_bytes_min = 1,
                                    .key_bytes_max = catalog::Catalog::kNameBytesMax};

/// The answer to whoever made or opened an object: its id as version, and its description.
Next answer_object(Call& call, std::uint32_t id, const catalog::Object& object);

}  // namespace espalier::offload
