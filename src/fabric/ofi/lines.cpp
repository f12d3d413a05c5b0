// SPDX-License-Identifier: Apache-2.0
#include "fabric/ofi/lines.hpp"

#include <utility>

#include "fabric/ofi/connections.hpp"
#include "fabric/ofi/datagrams.hpp"

namespace espalier::fabric::ofi {

Result<std::unique_ptr<Lines>> open_lines(std::shared_ptr<const Library> library,
                                          std::string_view provider, Hall& hall) {
  if (!library->connects(provider) && library->sends_datagrams(provider)) {
    return Datagrams::open(std::move(library), provider, hall);
  }
  // Which also say what is missing where it can do neither.
  return std::make_unique<Connections>(std::move(library), provider, hall);
}

}  // namespace espalier::fabric::ofi
