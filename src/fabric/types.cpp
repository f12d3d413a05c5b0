// SPDX-License-Identifier: Apache-2.0
#include "fabric/types.hpp"

namespace espalier::fabric {
namespace {

WorkRequest to_remote(Opcode opcode, std::uint64_t work_id, std::span<const std::byte> local,
                      RegionKey key, std::uint64_t remote) {
  WorkRequest request;
  request.work_id = work_id;
  request.opcode = opcode;
  // A length that does not fit is one that no transport carries, and post() will say so.
  request.bytes =
      static_cast<std::uint32_t>(local.size() <= UINT32_MAX ? local.size() : UINT32_MAX);
  request.local = const_cast<std::byte*>(local.data());  // only a READ writes there
  request.key = key;
  request.remote = remote;
  return request;
}

WorkRequest atomic(Opcode opcode, std::uint64_t work_id, RegionKey key, std::uint64_t remote,
                   std::byte* old_value) {
  WorkRequest request = to_remote(opcode, work_id, {}, key, remote);
  request.local = old_value;
  request.bytes = kAtomicBytes;
  return request;
}

}  // namespace

WorkRequest WorkRequest::read(std::uint64_t work_id, std::span<std::byte> into, RegionKey key,
                              std::uint64_t remote) {
  return to_remote(Opcode::read, work_id, into, key, remote);
}

WorkRequest WorkRequest::write(std::uint64_t work_id, std::span<const std::byte> from,
                               RegionKey key, std::uint64_t remote) {
  return to_remote(Opcode::write, work_id, from, key, remote);
}

WorkRequest WorkRequest::write_immediate(std::uint64_t work_id, std::span<const std::byte> from,
                                         RegionKey key, std::uint64_t remote,
                                         std::uint32_t immediate) {
  WorkRequest request = to_remote(Opcode::write_immediate, work_id, from, key, remote);
  request.immediate = immediate;
  return request;
}

WorkRequest WorkRequest::fetch_add(std::uint64_t work_id, RegionKey key, std::uint64_t remote,
                                   std::uint64_t add, std::byte* old_value) {
  WorkRequest request = atomic(Opcode::fetch_add, work_id, key, remote, old_value);
  request.operand = add;
  return request;
}

WorkRequest WorkRequest::compare_swap(std::uint64_t work_id, RegionKey key, std::uint64_t remote,
                                      std::uint64_t compare, std::uint64_t swap,
                                      std::byte* old_value) {
  WorkRequest request = atomic(Opcode::compare_swap, work_id, key, remote, old_value);
  request.operand = swap;
  request.compare = compare;
  return request;
}

WorkRequest WorkRequest::send(std::uint64_t work_id, std::span<const std::byte> message) {
  return to_remote(Opcode::send, work_id, message, 0, 0);
}

WorkRequest WorkRequest::send_immediate(std::uint64_t work_id, std::span<const std::byte> message,
                                        std::uint32_t immediate) {
  WorkRequest request = to_remote(Opcode::send_immediate, work_id, message, 0, 0);
  request.immediate = immediate;
  return request;
}

WorkRequest WorkRequest::unsignalled() const {
  WorkRequest request = *this;
  request.signalled = false;
  return request;
}

WorkRequest WorkRequest::as_inline() const {
  WorkRequest request = *this;
  request.inlined = true;
  return request;
}

WorkRequest WorkRequest::after_fence() const {
  WorkRequest request = *this;
  request.fence = true;
  return request;
}

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
