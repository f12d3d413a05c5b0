// SPDX-License-Identifier: Apache-2.0
#include "kinds/table/offload/loaded_pipelines.hpp"

#include "engine/connection.hpp"

namespace espalier::offload {

LoadedPipelines& LoadedPipelines::of(Connection& connection) {
  return connection.parts.of<LoadedPipelines>(connection.share);
}

}  // namespace espalier::offload
