// SPDX-License-Identifier: Apache-2.0
#include "node/peer_user.hpp"

#include <string>

namespace espalier::node {

offload::Access access_of_user(std::uint32_t user, const base::KnownUsers& known) {
  const bool own = base::is_own_or_root(user, known);
  return {"user " + std::to_string(user), own ? offload::Right::admin : offload::Right::write};
}

}  // namespace espalier::node
