// SPDX-License-Identifier: Apache-2.0
#include "base/trusted_server.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <deque>
#include <filesystem>
#include <string>

namespace espalier::base {
namespace {

constexpr int kLinksMax = 40;  // as many as the kernel follows

/// Follows a path as the kernel does, and checks of each name on it which users could redirect it.
class PathWalk {
 public:
  PathWalk(std::uint32_t server, std::uint32_t own) : server_(server), own_(own) {}

  /// Whether only root and the two users could. False for what is not there.
  [[nodiscard]] bool leads_where_it_must(const std::filesystem::path& path) {
    push(path);
    while (!ahead_.empty()) {
      const std::string name = ahead_.front().string();
      ahead_.pop_front();
      if (name.empty() || name == "." || name == "/") continue;
      if (name == "..") {
        folder_ = folder_.parent_path();
      } else if (!enter(name)) {
        return false;
      }
    }
    return true;
  }

 private:
  void push(const std::filesystem::path& path) {
    if (path.is_absolute()) folder_ = "/";
    ahead_.insert(ahead_.begin(), path.begin(), path.end());
  }

  [[nodiscard]] bool enter(const std::string& name) {
    const std::filesystem::path path = folder_ / name;
    struct stat folder{};
    struct stat entry{};
    if (::stat(folder_.c_str(), &folder) != 0 || ::lstat(path.c_str(), &entry) != 0) return false;
    if (!is_kept(folder, entry)) return false;
    if (!S_ISLNK(entry.st_mode)) {
      folder_ = path;
      return true;
    }
    std::error_code failed;
    const auto target = std::filesystem::read_symlink(path, failed);
    if (failed || ++links_ > kLinksMax) return false;
    push(target);
    return true;
  }

  // In a sticky folder that all may write, an entry is its owner's to replace. There the server's
  // own entry proves nothing: the first user to make it could be the server.
  [[nodiscard]] bool is_kept(const struct stat& folder, const struct stat& entry) const {
    const bool of_known = folder.st_uid == 0 || folder.st_uid == own_ || folder.st_uid == server_;
    if (!of_known) return false;
    if ((folder.st_mode & (S_IWGRP | S_IWOTH)) == 0) return true;
    return (folder.st_mode & S_ISVTX) != 0 && (entry.st_uid == 0 || entry.st_uid == own_);
  }

  const std::uint32_t server_;
  const std::uint32_t own_;
  std::filesystem::path folder_ = "/";
  std::deque<std::filesystem::path> ahead_;
  int links_ = 0;
};

}  // namespace

bool is_trusted_server(std::uint32_t server, std::string_view path,
                       std::optional<std::uint32_t> expected, const KnownUsers& known) {
  if (is_own_or_root(server, known) || server == expected) return true;
  if (server == known.unmapped) return false;  // many users have this number
  std::error_code failed;
  const auto absolute = std::filesystem::absolute(path, failed);
  return !failed && PathWalk(server, known.own).leads_where_it_must(absolute);
}

Result<void> check_server(int socket, std::string_view path,
                          std::optional<std::uint32_t> expected) {
  const auto peer = peer_user(socket);
  if (!peer) return std::unexpected(peer.error());
  if (is_trusted_server(peer->user, path, expected, known_users())) return {};
  return fail(Code::not_permitted, kServerNotTrusted);
}

}  // namespace espalier::base
