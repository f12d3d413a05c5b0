// SPDX-License-Identifier: Apache-2.0
// The XDP program that an interface runs for each arriving frame, while a port of ours uses it: it
// passes the port's packets to its sockets, and all else to the kernel, as if there were no
// program.
//
// The port's packets are UDP packets to its address and its UDP port: whole ones, without options
// of IPv4 or extension headers of IPv6, without VLAN. The program checks nothing else; the port
// does. Packets of a queue without a socket of the port go to the kernel.
//
// The program is written here as instructions, for one address: about 30, no loop, no memory.
//
// Invariants
// I1. A program that is attached to the interface is never replaced, neither ours nor another's.
// I2. Ours is attached by a link that only this process holds; so it ends with the process, however
//     that ends.
//
// Thread: one at a time.
#pragma once

#include <linux/bpf.h>

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "espalier/error.hpp"
#include "fabric/roce/port.hpp"
#include "fabric/xdp/library.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::xdp {

/// `sockets`: the descriptor of the map in which they stand, by queue.
[[nodiscard]] std::vector<bpf_insn> filter_program(const roce::PortAddress& address, int sockets);

class Filter {
 public:
  /// Attaches the program, in the driver where that can (`native`), else in front of the kernel's
  /// own stack. Errors: unsupported (detail: Unsupported::rights, program, kernel), system.
  static Result<std::unique_ptr<Filter>> attach(std::shared_ptr<const Library> library,
                                                std::uint32_t interface, std::uint32_t queues,
                                                const roce::PortAddress& address,
                                                bool native = true);
  Filter(const Filter&) = delete;
  Filter& operator=(const Filter&) = delete;
  ~Filter();

  /// Gives a queue's packets to this socket. Errors: system.
  Result<void> set_socket(std::uint32_t queue, int socket);
  [[nodiscard]] bool is_native() const { return is_native_; }

 private:
  explicit Filter(std::shared_ptr<const Library> library) : library_(std::move(library)) {}
  Result<void> load(std::uint32_t queues, const roce::PortAddress& address);
  Result<void> attach_to(std::uint32_t interface, bool native);

  std::shared_ptr<const Library> library_;
  memory::Descriptor sockets_;
  memory::Descriptor program_;
  memory::Descriptor link_;
  bool is_native_ = false;
};

/// What the kernel refused, in words where it is about this port. `number`: of errno.
[[nodiscard]] std::unexpected<Error> refused_by_kernel(int number);

}  // namespace espalier::fabric::xdp
