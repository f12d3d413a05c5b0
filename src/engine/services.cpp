// SPDX-License-Identifier: Apache-2.0
#include "engine/services.hpp"

#include <sys/random.h>

#include "base/clock.hpp"
#include "store/store_core.hpp"

namespace espalier::offload {

Services::Services(tree::StoreCore& store_in, std::uint64_t message_bytes_max,
                   std::span<const Kind> own, const HelperOptions& helper_options,
                   const OffloadTable* instead)
    : store(store_in),
      budget(message_bytes_max),
      offloads(instead != nullptr ? *instead : offload_table_with(own)),
      at_device(instead != nullptr),
      helpers(helper_options),
      catalog_(store_in.catalog) {
  for (const auto kinds : {all_kinds(), own}) {
    for (const Kind& kind : kinds) {
      if (kind.make_part != nullptr) kind.make_part(parts);
    }
  }
  store.dropped.free_in_steps(true);
}

Services::~Services() { store.dropped.free_in_steps(false); }

// Without the system's random numbers the seed still differs each time, but is not secret.
std::uint64_t Services::draw() {
  std::uint64_t drawn = 0;
  if (::getrandom(&drawn, sizeof drawn, GRND_NONBLOCK) != sizeof drawn) {
    drawn = base::monotonic_ns();
  }
  return drawn;
}

}  // namespace espalier::offload
