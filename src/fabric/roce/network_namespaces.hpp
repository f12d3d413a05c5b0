// SPDX-License-Identifier: Apache-2.0
// Two network namespaces of this process with a cable between them (veth), for tests with packets
// that really leave one network stack and enter another.
//
// Sockets belong to the namespace in which they were opened, whichever thread uses them later; so
// one thread can be at both ends.
//
// Thread: one; requires that it is the only one of the process, where it is not root.
#pragma once

#include <fcntl.h>
#include <sched.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <utility>

#include "base/temporary_folder.hpp"
#include "fabric/roce/format.hpp"
#include "fabric/roce/port.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::roce {

class NetworkNamespaces {
 public:
  /// Side 0 has the address 10.77.0.1, fd77::1 and the interface "veth0"; side 1 the same with 2
  /// and "veth1". Null, and why, where the machine allows no such thing.
  static std::unique_ptr<NetworkNamespaces> open(std::string& why) {
    std::unique_ptr<NetworkNamespaces> made(new NetworkNamespaces);
    if (made->make(why)) return made;
    return nullptr;
  }
  static std::string interface_of(int side) { return "veth" + std::to_string(side); }
  /// A side's address with RoCE's port.
  static PortAddress address_of(int side, bool is_v6) {
    const auto last = static_cast<std::uint8_t>(side + 1);
    if (!is_v6) return {IpAddress::v4(10, 77, 0, last), wire::roce::kUdpPort};
    return {IpAddress::v6({0xFD, 0x77, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, last}),
            wire::roce::kUdpPort};
  }

  NetworkNamespaces(const NetworkNamespaces&) = delete;
  NetworkNamespaces& operator=(const NetworkNamespaces&) = delete;
  ~NetworkNamespaces() {
    if (home_) static_cast<void>(::setns(home_.number(), CLONE_NEWNET));
  }

  /// Does something at one side.
  template <class Work>
  auto at(int side, const Work& work) const {
    enter(sides_[side]);
    auto result = work();
    enter(home_);
    return result;
  }
  /// Runs a command at one side. Returns whether it ended well; what it said stands in said().
  bool run(int side, const std::string& command) const {
    const std::string whole = "PATH=$PATH:/usr/sbin:/sbin; { " + command + "; } >" + out_ + " 2>&1";
    return at(side, [&] { return std::system(whole.c_str()) == 0; });
  }
  [[nodiscard]] std::string said() const {
    std::ifstream file(out_);
    return {std::istreambuf_iterator<char>(file), {}};
  }

 private:
  NetworkNamespaces() = default;

  static void enter(const memory::Descriptor& where) {
    if (::setns(where.number(), CLONE_NEWNET) != 0) std::abort();
  }
  static memory::Descriptor here() {
    return memory::Descriptor(::open("/proc/thread-self/ns/net", O_RDONLY | O_CLOEXEC));
  }
  static bool write(const char* path, const std::string& text) {
    std::ofstream file(path);
    file << text;
    return static_cast<bool>(file.flush());
  }

  /// A user without the right to make namespaces may be allowed to become root of a user namespace,
  /// which has it; and of a network of it, for the way back to the one before would be closed.
  static bool become_root() {
    const std::string user = std::to_string(::geteuid());
    const std::string group = std::to_string(::getegid());
    if (::unshare(CLONE_NEWUSER | CLONE_NEWNET) != 0) return false;
    write("/proc/self/setgroups", "deny");
    return write("/proc/self/uid_map", "0 " + user + " 1") &&
           write("/proc/self/gid_map", "0 " + group + " 1");
  }

  bool make(std::string& why) {
    if (::geteuid() != 0 && !become_root()) {
      why = std::string("neither root nor user namespaces: ") + std::strerror(errno);
      return false;
    }
    memory::Descriptor home = here();
    for (memory::Descriptor& side : sides_) {
      if (::unshare(CLONE_NEWNET) != 0) {
        why = std::string("no network namespaces: ") + std::strerror(errno);
        if (home_) enter(home_);
        return false;
      }
      if (!home_) home_ = std::move(home);
      side = here();
    }
    enter(home_);
    const std::string other =
        "/proc/" + std::to_string(::getpid()) + "/fd/" + std::to_string(sides_[1].number());
    if (!run(0, "ip link add veth0 type veth peer name veth1 netns " + other)) {
      why = "no veth: " + said();
      return false;
    }
    for (const int side : {0, 1}) {
      const std::string name = interface_of(side);
      const std::string last = std::to_string(side + 1);
      // Nothing is to be asked about addresses, and no other address to be sent from.
      if (!run(side, "ip link set lo up && ip addr add 10.77.0." + last + "/24 dev " + name +
                         " && ip addr add fd77::" + last + "/64 dev " + name +
                         " nodad && ip link set " + name + " up")) {
        why = "no addresses: " + said();
        return false;
      }
    }
    // The kernel lets packets through only a while after that.
    for (const int side : {0, 1}) {
      const std::string name = interface_of(side);
      if (!run(side, "for i in $(seq 2000); do ip -o link show " + name +
                         " | grep -q 'state UP' && exit 0; done; echo no carrier; exit 1")) {
        why = said();
        return false;
      }
    }
    return true;
  }

  base::TemporaryFolder folder_;
  std::string out_ = (folder_ / "out").string();
  memory::Descriptor home_;
  memory::Descriptor sides_[2];
};

}  // namespace espalier::fabric::roce
