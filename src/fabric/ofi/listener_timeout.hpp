// SPDX-License-Identifier: Apache-2.0
// A guard around libfabric's provider for TCP (1.17.0): when it lets somebody in, it reads a header
// and as many bytes as that promises, and waits for them in the kernel (rx_cm_data(), on a socket
// that blocks). Whoever promises and sends nothing would hold up the endpoint for ever. Sockets
// inherit from the one that listens how long they wait, so that is told to the listening one.
//
// Thread: any.
#pragma once

#include "fabric/roce/port.hpp"

namespace espalier::fabric::ofi {

/// Lets whatever socket of this process listens at an address wait for a moment only, and those
/// that it accepts. Does nothing where there is none, as with providers that have no sockets.
void shorten_receive_timeout(const roce::PortAddress& listens_at);

}  // namespace espalier::fabric::ofi
