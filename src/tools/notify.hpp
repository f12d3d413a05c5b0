// SPDX-License-Identifier: Apache-2.0
// Service notification for systemd (Type=notify): one datagram to the socket that NOTIFY_SOCKET
// names. See sd_notify(3).
#pragma once

#include <string>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::tools {

/// Sends `state`, such as "READY=1", to the socket `path`; one that begins with '@' is abstract.
/// Errors: invalid_argument (no path of a socket), system (detail: errno).
Result<void> notify(const std::string& path, std::string_view state);

}  // namespace espalier::tools
