// SPDX-License-Identifier: Apache-2.0
// libxdp and libbpf, loaded when they are first wanted: nothing links against them, so a program
// runs where they are not installed, and says what is missing where this port is asked for.
//
// libxdp makes the sockets, their rings and the memory of frames; libbpf hands our program to the
// kernel. Neither loads a program of its own: that would be an object file and a dispatcher, which
// stay when a process is killed.
//
// Thread: any; no state that changes.
#pragma once

#include <bpf/bpf.h>
#include <xdp/xsk.h>

#include <cstdint>
#include <memory>
#include <string_view>

#include "espalier/error.hpp"

namespace espalier::fabric::xdp {

/// Why this port cannot be had here: the detail of an error with Code::unsupported. The numbers are
/// none of ofi::Unsupported.
enum class Unsupported : std::uint32_t {
  library = 0x101,   // libxdp.so.1 or libbpf.so.1 is not there, or has not what is wanted
  rights = 0x102,    // the process may not do such things
  program = 0x103,   // the interface has an XDP program, ours or another
  socket = 0x104,    // a queue of the interface has another program's socket
  kernel = 0x105,    // it knows no AF_XDP, or no links of programs
  mtu = 0x106,       // of the interface: packets of 1024 bytes do not fit
  ethernet = 0x107,  // the interface carries other frames
};
/// A sentence that says what is missing and what to do; empty if the number is none of these.
[[nodiscard]] std::string_view explain(Unsupported unsupported_reason);
[[nodiscard]] inline std::unexpected<Error> is_unsupported(Unsupported what) {
  return fail(Code::unsupported, static_cast<std::uint32_t>(what));
}

struct Library {
  static constexpr const char* kXdpName = "libxdp.so.1";
  static constexpr const char* kBpfName = "libbpf.so.1";

  /// Errors: unsupported (detail: Unsupported::library).
  static Result<std::shared_ptr<const Library>> load(const char* xdp_name = kXdpName,
                                                     const char* bpf_name = kBpfName);

  decltype(&xsk_umem__create) create_frames = nullptr;
  decltype(&xsk_umem__delete) delete_frames = nullptr;
  decltype(&xsk_socket__create_shared) create_socket = nullptr;
  decltype(&xsk_socket__delete) delete_socket = nullptr;
  decltype(&xsk_socket__fd) descriptor_of = nullptr;
  decltype(&bpf_map_create) create_map = nullptr;
  decltype(&bpf_map_update_elem) set_in_map = nullptr;
  decltype(&bpf_prog_load) load_program = nullptr;
  decltype(&bpf_link_create) attach = nullptr;
  decltype(&bpf_link_detach) detach = nullptr;
};

}  // namespace espalier::fabric::xdp
