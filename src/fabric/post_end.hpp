// SPDX-License-Identifier: Apache-2.0
// The four outcomes of a post (post_queue.hpp), for callers that see no queue.
#pragma once

#include <cstdint>

namespace espalier::fabric {

/// The outcome of a post.
enum class PostEnd : std::uint8_t {
  done,      ///< it took effect, and what it brings is there
  refused,   ///< the peer refused a READ or an atomic: it had no effect
  unknown,   ///< it left: it may have taken effect, or may yet; of a WRITE, a part of it
  not_sent,  ///< it never left this process
};

}  // namespace espalier::fabric
