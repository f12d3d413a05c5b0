// SPDX-License-Identifier: Apache-2.0
#include "fabric/xdp/library.hpp"

#include "base/loaded_library.hpp"

namespace espalier::fabric::xdp {
std::string_view explain(Unsupported unsupported_reason) {
  switch (unsupported_reason) {
    case Unsupported::library:
      return "libxdp.so.1 and libbpf.so.1 cannot be loaded; Debian's packages libxdp1 and libbpf1 "
             "have them.";
    case Unsupported::rights:
      return "AF_XDP needs the capabilities CAP_NET_ADMIN, CAP_NET_RAW and CAP_BPF, outside of "
             "user namespaces, and CAP_IPC_LOCK where ulimit -l is too little for its frames; "
             "roce:// needs none of them.";
    case Unsupported::program:
      return "The interface has an XDP program already, another's or that of another port here: "
             "there is one port for each interface. ip link show tells the program.";
    case Unsupported::socket:
      return "A queue of the interface has an AF_XDP socket already, of another program.";
    case Unsupported::kernel:
      return "The kernel has no AF_XDP (CONFIG_XDP_SOCKETS), or is before 5.11.";
    case Unsupported::mtu:
      return "The MTU of the interface is too small for packets of 1024 bytes.";
    case Unsupported::ethernet: return "The interface is none of Ethernet.";
  }
  return {};
}

Result<std::shared_ptr<const Library>> Library::load(const char* xdp_name, const char* bpf_name) {
  const base::LoadedLibrary xdp(xdp_name);
  const base::LoadedLibrary bpf(bpf_name);
  Library made;
  const bool whole = xdp.find("xsk_umem__create", made.create_frames) &&
                     xdp.find("xsk_umem__delete", made.delete_frames) &&
                     xdp.find("xsk_socket__create_shared", made.create_socket) &&
                     xdp.find("xsk_socket__delete", made.delete_socket) &&
                     xdp.find("xsk_socket__fd", made.descriptor_of) &&
                     bpf.find("bpf_map_create", made.create_map) &&
                     bpf.find("bpf_map_update_elem", made.set_in_map) &&
                     bpf.find("bpf_prog_load", made.load_program) &&
                     bpf.find("bpf_link_create", made.attach) &&
                     bpf.find("bpf_link_detach", made.detach);
  if (!whole) return is_unsupported(Unsupported::library);
  return std::make_shared<const Library>(made);
}

}  // namespace espalier::fabric::xdp
