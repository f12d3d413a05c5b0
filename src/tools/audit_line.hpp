// SPDX-License-Identifier: Apache-2.0
// A record of the audit log as a line of the node's log, in fields that a program can read:
//
//     audit act=put outcome=not_permitted reason=takes_write name=shop role=read
//           from="roce 192.0.2.1:4791" object="orders/1"
//
// without the break. Fields that say nothing are left out. What stands in quotes has '"' and '\'
// with a backslash before them, and bytes that are no text as \xNN.
#pragma once

#include <string>

#include "engine/audit_log.hpp"

namespace espalier::tools {

[[nodiscard]] std::string audit_line(const offload::AuditRecord& record);

}  // namespace espalier::tools
