// SPDX-License-Identifier: Apache-2.0
// Host names in addresses of the fabric: their syntax, and their lookup by the system's resolver
// (/etc/hosts, DNS, as nsswitch.conf has it), each time that an endpoint is opened. An attacker who
// controls the resolver decides where clients connect; so connections that must not be redirected
// use secrets, by which both sides authenticate, or numeric addresses.
//
// Thread: any; look_up() waits for the resolver, which may take many seconds.
#pragma once

#include <netdb.h>

#include <optional>
#include <string>
#include <string_view>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"

namespace espalier::fabric {

/// Whether this is a name of letters, digits and '-' in labels apart by dots, the last of which is
/// no number, so that an address with a mistake is no name. At most 253 bytes, each label 63.
[[nodiscard]] bool is_host_name(std::string_view text);

/// The first of IPv4 in a list that one machine can have as its own, or else of IPv6. Of the
/// version that is asked for alone, if one is. Nothing: there is none.
[[nodiscard]] std::optional<roce::IpAddress> pick_address(const addrinfo* list,
                                                          std::optional<bool> is_v6);

/// Errors: system (ENXIO: the name has no such address, or the resolver does not answer).
Result<roce::IpAddress> look_up(const std::string& name, std::optional<bool> is_v6 = {});

}  // namespace espalier::fabric
