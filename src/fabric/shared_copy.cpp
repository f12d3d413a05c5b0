// SPDX-License-Identifier: Apache-2.0
#include "fabric/shared_copy.hpp"

namespace espalier::fabric {

void copy_from_shared(std::byte* to, const std::byte* from, std::size_t bytes) {
  detail::copy<detail::FromShared>(to, from, bytes);
  detail::FromShared::end();
}

void copy_to_shared(std::byte* to, const std::byte* from, std::size_t bytes) {
  detail::copy<detail::ToShared>(to, from, bytes);
}

}  // namespace espalier::fabric
