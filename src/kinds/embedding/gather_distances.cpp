// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/gather_distances.hpp"

#include "base/line_latency.hpp"

namespace espalier::embedding {

const GatherDistances& GatherDistances::of_machine() {
  static const GatherDistances distances = of_latency(base::line_latency_of_machine_ns());
  return distances;
}

}  // namespace espalier::embedding
