// SPDX-License-Identifier: Apache-2.0
#include "kinds/map/offload/reads.hpp"

#include <utility>

#include "kinds/map/offload/held_snapshots.hpp"
#include "kinds/map/offload/snapshot.hpp"

namespace espalier::offload {

ReadSource read_source(Call& call, std::optional<std::uint64_t> number,
                       std::shared_ptr<HeldSnapshot> holds) {
  if (!number) return {};
  if (!holds) holds = HeldSnapshots::of(call.connection()).find(*number);
  const bool found = holds != nullptr && holds->map() == call.map_number();
  return {std::move(holds), found};
}

}  // namespace espalier::offload
