// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/file_membership.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>

#include <cerrno>
#include <utility>

#include "base/clock.hpp"
#include "chain/membership/file_text.hpp"

namespace espalier::chain {
namespace {

std::expected<std::optional<View>, std::string> read_view(const std::string& path) {
  const auto text = read_text(path, kViewBytesMax);
  if (!text) return std::unexpected(text.error());
  if (!*text) return std::nullopt;
  auto view = parse_view(**text);
  if (!view) return std::unexpected("'" + path + "' has no chain: " + view.error());
  return std::move(*view);
}

}  // namespace

std::expected<std::optional<View>, std::string> FileMembership::read() { return read_view(path_); }

std::expected<bool, std::string> FileMembership::replace(const View& next) {
  const std::string lock_path = path_ + ".lock";
  const TextFile lock(lock_path, O_RDWR | O_CREAT);
  if (!lock) return cannot("open", lock_path);
  for (const base::Stopwatch watch; ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) return cannot("lock", lock_path);
    if (watch.elapsed_ns() > kLockNs) {
      return std::unexpected("another process holds the lock '" + lock_path + "'");
    }
    ::poll(nullptr, 0, 1);
  }
  const auto found = read_view(path_);
  if (!found) return std::unexpected(found.error());
  const bool goes_on =
      *found ? (*found)->chain == next.chain && (*found)->epoch + 1 == next.epoch : next.epoch == 1;
  if (!goes_on) return false;
  if (auto written = replace_text(path_, print(next)); !written) {
    return std::unexpected(written.error());
  }
  return true;
}

}  // namespace espalier::chain
