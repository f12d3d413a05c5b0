// SPDX-License-Identifier: Apache-2.0
#include "base/peer_user.hpp"

#include <pwd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <charconv>
#include <fstream>
#include <iterator>
#include <sstream>
#include <string>

namespace espalier::base {
namespace {

constexpr std::uint32_t kNoUser = ~std::uint32_t{0};  // of a socket without a peer
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
  return mapped >= kNoUser;  // extents do not overlap, and this number is no user's
}

KnownUsers known_users() {
  KnownUsers known{::geteuid()};
  if (maps_all_users(text_of("/proc/self/uid_map"))) return known;
  std::istringstream overflow(text_of("/proc/sys/kernel/overflowuid"));
  std::uint32_t user = 0;
  known.unmapped = overflow >> user ? user : kUnmappedUser;
  return known;
}

bool is_own_or_root(std::uint32_t user, const KnownUsers& known) {
  return user == 0 || (user == known.own && user != known.unmapped);
}

std::optional<std::uint32_t> user_named(std::string_view name_or_number) {
  std::uint32_t number = 0;
  const char* const end = name_or_number.data() + name_or_number.size();
  const auto read = std::from_chars(name_or_number.data(), end, number);
  if (read.ec == std::errc() && read.ptr == end && number != kNoUser) return number;
  char bytes[16384];  // of a line of the lists
  passwd entry{};
  passwd* found = nullptr;
  const std::string name(name_or_number);
  if (::getpwnam_r(name.c_str(), &entry, bytes, sizeof bytes, &found) != 0) return std::nullopt;
  return found != nullptr ? std::optional(found->pw_uid) : std::nullopt;
}

}  // namespace espalier::base
