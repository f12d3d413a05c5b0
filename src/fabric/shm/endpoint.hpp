// SPDX-License-Identifier: Apache-2.0
// The transport `shm`: processes of one machine access each other's memory by loads and stores
// through mappings, which is what CXL offers; the target's processor sleeps meanwhile.
//
// An address is the path of a UNIX socket. Over the socket two endpoints shake hands and exchange
// descriptors of memory: that of their good keys (read-only), that of the connection's messages,
// and that of a region when its key is used for the first time. A thread of the endpoint answers
// such requests, so the application's own may sleep. Closing the socket closes the connection.
//
// Only memory behind a descriptor can be reached (OfferedMemory::descriptor), except by WRITEs that
// go with messages, which the target executes itself. A peer that may write to a region is trusted
// with all the memory behind its descriptor, for as long as it keeps its mapping: revoking a key
// stops only peers that keep to the protocol. Of one peer no more than 8 TiB are mapped at a time
// (MappingCache): a region in longer memory than that is not reached.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>

#include "espalier/error.hpp"
#include "fabric/endpoint.hpp"
#include "fabric/region_table.hpp"

namespace espalier::fabric::shm {

/// The longest message, READ or WRITE.
inline constexpr std::uint32_t kMessageBytesMax = 16u << 20;

/// Opens an endpoint; its thread starts. `server_user`: the user that servers it connects to may
/// run as, beside this user and root (base/trusted_server.hpp). Errors: system.
Result<std::unique_ptr<Endpoint>> open(std::shared_ptr<RegionTable> regions,
                                       std::optional<std::uint32_t> server_user = {});

}  // namespace espalier::fabric::shm
