// SPDX-License-Identifier: Apache-2.0
#include "node/peer_user.hpp"

#include <sys/socket.h>
#include <unistd.h>

#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace espalier::node {
namespace {

constexpr std::uint32_t kNoUser = ~std::uint32_t{0};  // of a socket that nobody has connected
constexpr std::uint32_t kUnmappedUser = 65534;        // where the system does not say otherwise

std::string text_of(const char* path) {
  std::ifstream file(path);
  return {std::istreambuf_iterator<char>(file), {}};
}

}  // namespace

Result<PeerUser> peer_user(int socket) {
  ucred credentials{};
  socklen_t bytes = sizeof credentials;
  const bool got = ::getsockopt(socket, SOL_SOCKET, SO_PEERCRED, &credentials, &bytes) == 0 &&
                   bytes == sizeof credentials;
  if (!got || credentials.uid == kNoUser) return fail(Code::not_permitted);
  return PeerUser{credentials.pid, credentials.uid};
}

bool maps_all_users(std::string_view uid_map) {
  std::istringstream lines{std::string(uid_map)};
  std::uint64_t mapped = 0;
  std::uint64_t inside = 0;
  std::uint64_t outside = 0;
  std::uint64_t count = 0;
  while (lines >> inside >> outside >> count) mapped += count;
  return mapped >= kNoUser;  // extents do not overlap, and this one is nobody's
}

KnownUsers known_users() {
  KnownUsers known{::geteuid()};
  if (maps_all_users(text_of("/proc/self/uid_map"))) return known;
  std::istringstream overflow(text_of("/proc/sys/kernel/overflowuid"));
  std::uint32_t user = 0;
  known.unmapped = overflow >> user ? user : kUnmappedUser;
  return known;
}

offload::Access access_of_user(std::uint32_t user, const KnownUsers& known) {
  const bool own = user == 0 || (user == known.own && user != known.unmapped);
  return {"user " + std::to_string(user), own ? offload::Right::admin : offload::Right::write};
}

}  // namespace espalier::node
