// SPDX-License-Identifier: Apache-2.0
// The four ends of a post (post_queue.hpp), for those who see no queue.
#pragma once

#include <cstdint>

namespace espalier::fabric {

/// What became of a post.
enum class PostEnd : std::uint8_t {
  done,      ///< it took effect, and what it brings is there
  refused,   ///< the peer said so of a READ or an atomic: it had no effect
  unknown,   ///< it left: it may have taken effect, or may yet; of a WRITE, a part of it
  not_sent,  ///< it never left this process
};

}  // namespace espalier::fabric
