// SPDX-License-Identifier: Apache-2.0
// The transport `ofi`: network cards through libfabric, which is loaded when an endpoint is opened.
//
// It uses providers with connections (FI_EP_MSG: verbs, tcp), and only their messages: the software
// of each end executes the peer's requests when its endpoint makes progress. So keys, bounds,
// rights, revocation and atomics are the same for every provider, since none handles them.
//
// An address is that of a host and a port, such as 192.0.2.1:7471.
#pragma once

#include <cstdint>
#include <memory>
#include <string_view>

#include "espalier/error.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/ofi/library.hpp"
#include "fabric/region_table.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric::ofi {

/// The port where endpoints listen by default.
inline constexpr std::uint16_t kDefaultPort = 7471;

class OfiEndpoint : public Endpoint {
 public:
  /// Where it listens, with the port that was taken. Requires: listen() has succeeded.
  [[nodiscard]] virtual roce::PortAddress listens_at() const = 0;

 protected:
  using Endpoint::Endpoint;
};

/// Opens an endpoint; connections go through a provider that libfabric knows by this name.
/// connect() and listen() fail with unsupported (detail: an Unsupported) where it does not know it.
/// Errors: unsupported (detail: an Unsupported), system.
Result<std::unique_ptr<OfiEndpoint>> open(std::string_view provider,
                                          std::shared_ptr<RegionTable> regions,
                                          const char* library = Library::kName);

}  // namespace espalier::fabric::ofi
