// SPDX-License-Identifier: Apache-2.0
#include "chain/file_membership.hpp"

#include <fcntl.h>
#include <sys/file.h>
#include <unistd.h>

#include <cerrno>
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <system_error>
#include <thread>
#include <utility>

#include "base/clock.hpp"

namespace espalier::chain {
namespace {

class OpenFile {
 public:
  OpenFile(const std::string& path, int flags)
      : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}
  OpenFile(const OpenFile&) = delete;
  OpenFile& operator=(const OpenFile&) = delete;
  ~OpenFile() {
    if (descriptor_ >= 0) ::close(descriptor_);
  }
  [[nodiscard]] int number() const { return descriptor_; }
  explicit operator bool() const { return descriptor_ >= 0; }

 private:
  int descriptor_;
};

std::unexpected<std::string> cannot(const char* what, const std::string& path) {
  return std::unexpected("cannot " + std::string(what) + " '" + path +
                         "': " + std::system_category().message(errno));
}

std::expected<std::optional<View>, std::string> read_view(const std::string& path) {
  const OpenFile file(path, O_RDONLY);
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return cannot("open", path);
  std::string text(kViewBytesMax + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(file.number(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read", path);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  auto view = parse_view(text);
  if (!view) return std::unexpected("'" + path + "' has no chain: " + view.error());
  return std::move(*view);
}

bool write_all(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return ::fsync(file) == 0;
}

std::expected<void, std::string> write_view(const std::string& path, const View& view) {
  const std::string beside = path + ".new";
  {
    const OpenFile file(beside, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file || !write_all(file.number(), print(view))) return cannot("write", beside);
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) return cannot("rename", beside);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const OpenFile folder(parent.empty() ? "." : parent.string(), O_RDONLY | O_DIRECTORY);
  if (!folder || ::fsync(folder.number()) != 0) return cannot("flush the folder of", path);
  return {};
}

}  // namespace

std::expected<std::optional<View>, std::string> FileMembership::read() { return read_view(path_); }

std::expected<bool, std::string> FileMembership::replace(const View& next) {
  const std::string lock_path = path_ + ".lock";
  const OpenFile lock(lock_path, O_RDWR | O_CREAT);
  if (!lock) return cannot("open", lock_path);
  for (const base::Stopwatch watch; ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0;) {
    if (errno != EWOULDBLOCK && errno != EINTR) return cannot("lock", lock_path);
    if (watch.elapsed_ns() > kLockNs) {
      return std::unexpected("another process holds the lock '" + lock_path + "'");
    }
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  const auto found = read_view(path_);
  if (!found) return std::unexpected(found.error());
  const bool goes_on =
      *found ? (*found)->chain == next.chain && (*found)->epoch + 1 == next.epoch : next.epoch == 1;
  if (!goes_on) return false;
  if (auto written = write_view(path_, next); !written) return std::unexpected(written.error());
  return true;
}

std::expected<std::unique_ptr<Membership>, std::string> open_membership(const std::string& place) {
  if (place.empty()) return std::unexpected("a chain is kept in a file: give its path");
  if (place.find("://") != std::string::npos) {
    return std::unexpected("'" + place + "' is no path of a file, and chains are kept in files");
  }
  return std::make_unique<FileMembership>(place);
}

}  // namespace espalier::chain
