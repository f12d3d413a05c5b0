// SPDX-License-Identifier: Apache-2.0
// All items of a hash map, of this process or of a node, as HashMap::walk delivers them.
//
// Thread: any.
#pragma once

#include <cstdint>

#include "channel/channel.hpp"
#include "channel/reached_object.hpp"
#include "espalier/map.hpp"

namespace espalier::hash {
class HashMap;
}

namespace espalier::client {

// Errors of both: as HashMap::walk; std::bad_alloc.
[[nodiscard]] Result<std::uint64_t> walk_own(hash::HashMap& map, const ItemSink& sink);
/// Asks for one piece after the other, and for each long value by itself.
[[nodiscard]] Result<std::uint64_t> walk_of_node(channel::Channel& channel,
                                                 const channel::Reached<hash::HashMap>& object,
                                                 const ItemSink& sink);

}  // namespace espalier::client
