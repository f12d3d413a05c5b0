// SPDX-License-Identifier: Apache-2.0
#include "fabric/types.hpp"

namespace espalier::fabric {

std::string_view name(Status status) {
  switch (status) {
    case Status::success: return "success";
    case Status::local_length: return "local_length";
    case Status::remote_invalid: return "remote_invalid";
    case Status::remote_access: return "remote_access";
    case Status::remote_operation: return "remote_operation";
    case Status::retry_exceeded: return "retry_exceeded";
    case Status::no_receive: return "no_receive";
    case Status::flushed: return "flushed";
  }
  return "unknown status";
}

std::string_view name(Opcode opcode) {
  switch (opcode) {
    case Opcode::invalid: return "invalid";
    case Opcode::read: return "read";
    case Opcode::write: return "write";
    case Opcode::write_immediate: return "write_immediate";
    case Opcode::fetch_add: return "fetch_add";
    case Opcode::compare_swap: return "compare_swap";
    case Opcode::send: return "send";
    case Opcode::send_immediate: return "send_immediate";
    case Opcode::receive: return "receive";
    case Opcode::receive_write: return "receive_write";
  }
  return "unknown opcode";
}

}  // namespace espalier::fabric
