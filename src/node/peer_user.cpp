// SPDX-License-Identifier: Apache-2.0
#include "node/peer_user.hpp"

#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <vector>

namespace espalier::node {

SocketClass socket_class_of(int socket, std::uint32_t user, const std::string& path) {
  if (user == 0) return SocketClass::any;
  struct stat file{};
  if (::stat(path.c_str(), &file) != 0) {
    return user == ::geteuid() ? SocketClass::owner : SocketClass::others;
  }
  if (user == file.st_uid) return SocketClass::owner;
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  if (::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 &&
      credentials.gid == file.st_gid) {
    return SocketClass::group;
  }
  std::vector<gid_t> groups(64);
  bytes = static_cast<socklen_t>(groups.size() * sizeof(gid_t));
  int got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  if (got != 0 && errno == ERANGE) {
    groups.resize(bytes / sizeof(gid_t));
    got = ::getsockopt(socket, SOL_SOCKET, SO_PEERGROUPS, groups.data(), &bytes);
  }
  if (got != 0) return SocketClass::others;
  groups.resize(std::min(groups.size(), bytes / sizeof(gid_t)));
  return std::ranges::find(groups, file.st_gid) != groups.end() ? SocketClass::group
                                                                : SocketClass::others;
}

bool is_let_in(SocketClass of, std::uint32_t mode) {
  switch (of) {
    case SocketClass::any: return true;
    case SocketClass::owner: return (mode & 0200) != 0;
    case SocketClass::group: return (mode & 0020) != 0;
    case SocketClass::others: break;
  }
  return (mode & 0002) != 0;
}

offload::Access access_of_user(std::uint32_t user, const base::KnownUsers& known) {
  const bool own = base::is_own_or_root(user, known);
  std::string who = "user " + std::to_string(user);
  return own ? offload::Access::everything(std::move(who))
             : offload::Access(std::move(who), offload::Right::write);
}

}  // namespace espalier::node
