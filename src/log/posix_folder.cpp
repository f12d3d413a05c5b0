// SPDX-License-Identifier: Apache-2.0
#include "log/posix_folder.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <stdio.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <sys/uio.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "base/uninherited.hpp"
#include "log/descriptor.hpp"
#include "log/unit_buffer.hpp"

namespace espalier::log {
namespace {

using base::refused_by_system;

constexpr std::size_t kFillBytes = 1 << 20;
constexpr std::string_view kLockName = "lock";

template <class Call>
auto again_if_interrupted(Call call) {
  while (true) {
    const auto result = call();
    if (result >= 0 || errno != EINTR) return result;
  }
}

class PosixFile final : public LogFile {
 public:
  PosixFile(Descriptor file, bool direct, bool reads_only)
      : file_(std::move(file)), direct_(direct), reads_only_(reads_only) {}

  [[nodiscard]] Result<std::size_t> write(std::uint64_t offset,
                                          std::span<const std::byte> bytes) override {
    ESPALIER_ASSERT(offset % kUnitBytes == 0 && bytes.size() % kUnitBytes == 0);
    const iovec piece{const_cast<std::byte*>(bytes.data()), bytes.size()};
    const auto written = again_if_interrupted([&] {
      return ::pwritev2(file_.number(), &piece, 1, static_cast<off_t>(offset), RWF_DSYNC);
    });
    if (written >= 0) return static_cast<std::size_t>(written);
    if (errno != EOPNOTSUPP && errno != ENOSYS) return refused_by_system();
    const auto plainly = write_once(offset, bytes);
    if (!plainly) return plainly;
    if (const auto flushed = sync(); !flushed) return std::unexpected(flushed.error());
    return plainly;
  }

  // Through the page cache, the first flush may report an error of another write's bytes.
  [[nodiscard]] bool takes_several() const override { return direct_; }
  [[nodiscard]] bool waits_for_disk() const override { return direct_; }

  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset,
                                         std::span<std::byte> bytes) override {
    std::size_t done = 0;
    while (done < bytes.size()) {
      const auto got = again_if_interrupted([&] {
        return ::pread(file_.number(), bytes.data() + done, bytes.size() - done,
                       static_cast<off_t>(offset + done));
      });
      if (got < 0) return refused_by_system();
      done += static_cast<std::size_t>(got);
      if (got == 0 || static_cast<std::size_t>(got) % kUnitBytes != 0) break;  // it ends here
    }
    return done;
  }

  [[nodiscard]] Result<void> fill(std::uint64_t bytes) override {
    if (auto room = check_space(bytes); !room) return room;
    UnitBuffer zeros;
    zeros.reserve(kFillBytes);
    std::ranges::fill(zeros.bytes(), std::byte{0});
    for (std::uint64_t done = 0; done < bytes;) {
      const std::uint64_t left = std::min<std::uint64_t>(bytes - done, kFillBytes);
      const auto wrote = write_once(done, zeros.bytes().first(left));
      if (!wrote) return std::unexpected(wrote.error());
      if (*wrote == 0) return refused_by_system(ENOSPC);
      done += *wrote;
    }
    return sync();
  }

  [[nodiscard]] Result<void> extend(std::uint64_t bytes, std::uint64_t leave) override {
    const auto now = size();
    if (!now) return std::unexpected(now.error());
    if (bytes <= *now) return {};
    if (auto room = check_space(bytes - *now + leave); !room) return room;
    const auto grown = again_if_interrupted(
        [&] { return ::fallocate(file_.number(), 0, 0, static_cast<off_t>(bytes)); });
    if (grown == 0) return {};
    if (errno != EOPNOTSUPP) return refused_by_system();
    if (::ftruncate(file_.number(), static_cast<off_t>(bytes)) != 0) return refused_by_system();
    return {};
  }

  [[nodiscard]] Result<void> sync() override {
    const bool flushed = ::fdatasync(file_.number()) == 0;
    // A read-only file system has no pending writes.
    const bool is_fixed = reads_only_ && (errno == EROFS || errno == EINVAL);
    if (!flushed && !is_fixed) return refused_by_system();
    // What a flush has failed for stays in the page cache, and is taken for clean there.
    if (!direct_) static_cast<void>(::posix_fadvise(file_.number(), 0, 0, POSIX_FADV_DONTNEED));
    return {};
  }

  [[nodiscard]] Result<std::uint64_t> size() override {
    struct stat facts{};
    if (::fstat(file_.number(), &facts) != 0) return refused_by_system();
    return static_cast<std::uint64_t>(facts.st_size);
  }

 private:
  Result<std::size_t> write_once(std::uint64_t offset, std::span<const std::byte> bytes) {
    const auto written = again_if_interrupted([&] {
      return ::pwrite(file_.number(), bytes.data(), bytes.size(), static_cast<off_t>(offset));
    });
    if (written < 0) return refused_by_system();
    return static_cast<std::size_t>(written);
  }

  /// So that others are not without space while what cannot end is tried.
  Result<void> check_space(std::uint64_t bytes) const {
    struct statvfs facts{};
    if (::fstatvfs(file_.number(), &facts) != 0) return {};
    if (facts.f_blocks == 0 || facts.f_frsize == 0) return {};  // it says none
    if (bytes / facts.f_frsize >= facts.f_bavail) return refused_by_system(ENOSPC);
    return {};
  }

  Descriptor file_;
  bool direct_;
  bool reads_only_;
};

/// The lock ends with the last descriptor of its file, so no child may have one.
class PosixLock final : public FolderLock {
 public:
  explicit PosixLock(Descriptor file) : file_(std::move(file)) {
    base::close_in_children(file_.number());
  }
  ~PosixLock() override { base::inherit_again(file_.number()); }

 private:
  Descriptor file_;
};

/// Opens past the page cache where the file system can (tmpfs of older kernels cannot).
Result<std::unique_ptr<LogFile>> open_file(const std::string& path, int flags) {
  for (const int direct : {O_DIRECT, 0}) {
    const int number = ::open(path.c_str(), O_CLOEXEC | flags | direct, 0600);
    if (number >= 0) {
      const bool reads_only = (flags & O_ACCMODE) == O_RDONLY;
      return std::make_unique<PosixFile>(Descriptor(number), direct != 0, reads_only);
    }
    if (errno != EINVAL) break;
    if ((flags & O_CREAT) != 0) ::unlink(path.c_str());  // made, and then refused
  }
  return refused_by_system();
}

}  // namespace

Result<std::unique_ptr<FolderLock>> PosixFolder::lock() {
  const int flags = reads_only() ? O_RDONLY : O_RDWR | O_CREAT;
  Descriptor file(::open(in(kLockName).c_str(), flags | O_CLOEXEC, 0600));
  if (file.number() < 0) return refused_by_system();
  if (::flock(file.number(), LOCK_EX | LOCK_NB) != 0) {
    if (errno == EWOULDBLOCK) return fail(Code::busy);
    return refused_by_system();
  }
  return std::make_unique<PosixLock>(std::move(file));
}

Result<std::vector<std::string>> PosixFolder::names() {
  DIR* const folder = ::opendir(path_.c_str());
  if (folder == nullptr) return refused_by_system();
  std::vector<std::string> found;
  errno = 0;
  while (const dirent* const entry = ::readdir(folder)) found.emplace_back(entry->d_name);
  const int problem = errno;
  ::closedir(folder);
  if (problem != 0) return refused_by_system(problem);
  return found;
}

Result<std::unique_ptr<LogFile>> PosixFolder::create(std::string_view name) {
  if (reads_only()) return refused_by_system(EROFS);
  return open_file(in(name), O_RDWR | O_CREAT | O_EXCL);
}

Result<std::unique_ptr<LogFile>> PosixFolder::open(std::string_view name) {
  return open_file(in(name), reads_only() ? O_RDONLY : O_RDWR);
}

Result<void> PosixFolder::rename(std::string_view from, std::string_view to) {
  if (reads_only()) return refused_by_system(EROFS);
  if (::rename(in(from).c_str(), in(to).c_str()) != 0) return refused_by_system();
  return {};
}

Result<void> PosixFolder::remove(std::string_view name) {
  if (reads_only()) return refused_by_system(EROFS);
  if (::unlink(in(name).c_str()) != 0) return refused_by_system();
  return {};
}

Result<void> PosixFolder::sync() {
  const Descriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (folder.number() < 0) return refused_by_system();
  if (::fsync(folder.number()) != 0) return refused_by_system();
  return {};
}

}  // namespace espalier::log
