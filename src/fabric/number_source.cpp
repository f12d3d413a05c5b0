// SPDX-License-Identifier: Apache-2.0
#include "fabric/number_source.hpp"

#include <sys/random.h>

#include "base/assert.hpp"
#include "base/system_error.hpp"

namespace espalier::fabric {

Result<NumberSource> NumberSource::of_system() {
  NumberSource made;
  if (!made.ask_system()) return base::refused_by_system();
  return made;
}

bool NumberSource::ask_system() {
  if (::getrandom(batch_.data(), sizeof batch_, 0) != static_cast<ssize_t>(sizeof batch_)) {
    return false;
  }
  left_ = kBatch;
  return true;
}

// Neither interrupted nor refused: so few bytes, and it gave some before [random(4)].
void NumberSource::refill() {
  const bool given = ask_system();
  ESPALIER_ASSERT(given);
}

}  // namespace espalier::fabric
