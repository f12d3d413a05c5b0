// SPDX-License-Identifier: Apache-2.0
// Formats a record of the audit log as a line of the node's log, in machine-readable fields:
//
//     audit act=put outcome=not_permitted reason=takes_write name=shop role=read
//           from="roce 192.0.2.1:4791" object="orders/1"
//
// all on one line. Empty fields are omitted. Quoted values escape '"' and '\' by a backslash, and
// non-text bytes as \xNN.
#pragma once

#include <string>

#include "engine/audit_log.hpp"

namespace espalier::tools {

[[nodiscard]] std::string audit_line(const offload::AuditRecord& record);

}  // namespace espalier::tools
