// SPDX-License-Identifier: Apache-2.0
// A workaround for libfabric's provider for TCP (1.17.0). When it accepts a connection, it reads a
// header and as many bytes as that announces, and blocks until they arrive (rx_cm_data(), on a
// blocking socket). A client that announces bytes and sends none would block the endpoint for ever.
// Accepted sockets inherit the receive timeout of the listening one, so it is set there.
//
// Thread: any.
#pragma once

#include "fabric/roce/port.hpp"

namespace espalier::fabric::ofi {

/// Sets a short receive timeout on the socket of this process that listens at an address, and so on
/// those that it accepts. Does nothing if there is none, as with providers that have no sockets.
void shorten_receive_timeout(const roce::PortAddress& listens_at);

}  // namespace espalier::fabric::ofi
