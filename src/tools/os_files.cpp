// SPDX-License-Identifier: Apache-2.0
#include "tools/os_files.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cerrno>
#include <climits>
#include <cstdlib>
#include <utility>

#include "base/system_error.hpp"

namespace espalier::tools {
namespace {

/// Owns a file descriptor.
class FileDescriptor {
 public:
  explicit FileDescriptor(int number = -1) : number_(number) {}
  FileDescriptor(FileDescriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}
  FileDescriptor& operator=(FileDescriptor&& other) noexcept {
    std::swap(number_, other.number_);
    return *this;
  }
  ~FileDescriptor() {
    if (number_ >= 0) ::close(number_);
  }
  [[nodiscard]] int number() const { return number_; }
  explicit operator bool() const { return number_ >= 0; }

  /// Closes now, so that an error which the system kept until the end (NFS, quota) is seen.
  Result<void> close() {
    if (::close(std::exchange(number_, -1)) != 0) return base::refused_by_system();
    return {};
  }

 private:
  int number_;
};

Result<void> write_all(int descriptor, std::string_view bytes) {
  while (!bytes.empty()) {
    const ssize_t count = ::write(descriptor, bytes.data(), bytes.size());
    if (count < 0 && errno != EINTR) return base::refused_by_system();
    if (count > 0) bytes.remove_prefix(static_cast<std::size_t>(count));
  }
  return {};
}

class DescriptorSource : public ByteSource {
 public:
  DescriptorSource(FileDescriptor owned, int descriptor)
      : owned_(std::move(owned)), descriptor_(descriptor) {}

  Result<std::size_t> read(std::span<char> into) override {
    for (;;) {
      const ssize_t count =
          ::read(descriptor_, into.data(), std::min<std::size_t>(into.size(), SSIZE_MAX));
      if (count >= 0) return static_cast<std::size_t>(count);
      if (errno != EINTR) return base::refused_by_system();
    }
  }

 private:
  FileDescriptor owned_;  // empty if borrowed
  int descriptor_;
};

/// The file that a path leads to through symbolic links; the path itself if nothing is there yet.
std::string resolve_links(const std::string& path) {
  char* const resolved = ::realpath(path.c_str(), nullptr);
  if (resolved == nullptr) return path;
  std::string result(resolved);
  std::free(resolved);
  return result;
}

std::string folder_of(const std::string& path) {
  const std::size_t slash = path.rfind('/');
  if (slash == std::string::npos) return ".";
  return slash == 0 ? "/" : path.substr(0, slash);
}

/// A file that is filled under another name and then renamed.
class ReplacingWriter : public FileWriter {
 public:
  ReplacingWriter(FileDescriptor file, std::string temporary, std::string path)
      : file_(std::move(file)), temporary_(std::move(temporary)), path_(std::move(path)) {}
  ReplacingWriter(const ReplacingWriter&) = delete;
  ReplacingWriter& operator=(const ReplacingWriter&) = delete;
  ~ReplacingWriter() override {
    if (!temporary_.empty()) ::unlink(temporary_.c_str());
  }

  Result<void> write(std::string_view bytes) override { return write_all(file_.number(), bytes); }
  Result<void> commit() override {
    if (::fsync(file_.number()) != 0) return base::refused_by_system();
    if (auto closed = file_.close(); !closed) return closed;
    if (::rename(temporary_.c_str(), path_.c_str()) != 0) return base::refused_by_system();
    temporary_.clear();
    // From here on the new content is in place. Some file systems cannot sync a folder; that is no
    // reason to call the replacement failed.
    const FileDescriptor folder(
        ::open(folder_of(path_).c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
    if (folder && ::fsync(folder.number()) != 0 && errno != EINVAL)
      return base::refused_by_system();
    return {};
  }

 private:
  FileDescriptor file_;
  std::string temporary_;
  std::string path_;
};

/// What cannot be renamed over: pipes, terminals, /dev/stdout.
class InPlaceWriter : public FileWriter {
 public:
  explicit InPlaceWriter(FileDescriptor file) : file_(std::move(file)) {}
  Result<void> write(std::string_view bytes) override { return write_all(file_.number(), bytes); }
  Result<void> commit() override { return file_.close(); }

 private:
  FileDescriptor file_;
};

}  // namespace

Result<std::unique_ptr<ByteSource>> OsFiles::open(const std::string& path) {
  FileDescriptor file(::open(path.c_str(), O_RDONLY | O_CLOEXEC));
  if (!file) return base::refused_by_system();
  struct stat status {};
  if (::fstat(file.number(), &status) != 0) return base::refused_by_system();
  if (S_ISDIR(status.st_mode)) return base::refused_by_system(EISDIR);
  const int number = file.number();
  // Advice only: whether the kernel takes it changes nothing but speed.
  static_cast<void>(::posix_fadvise(number, 0, 0, POSIX_FADV_SEQUENTIAL));
  return std::make_unique<DescriptorSource>(std::move(file), number);
}

Result<std::unique_ptr<FileWriter>> OsFiles::replace(const std::string& path) {
  static std::atomic<unsigned> count{0};
  struct stat old {};
  const bool exists = ::stat(path.c_str(), &old) == 0;
  if (!exists && errno != ENOENT) return base::refused_by_system();
  if (exists && S_ISDIR(old.st_mode)) return base::refused_by_system(EISDIR);
  if (exists && !S_ISREG(old.st_mode)) {
    FileDescriptor file(::open(path.c_str(), O_WRONLY | O_CLOEXEC));
    if (!file) return base::refused_by_system();
    return std::make_unique<InPlaceWriter>(std::move(file));
  }
  // A file that may not be written should not be replaced just because its folder may.
  if (exists && ::access(path.c_str(), W_OK) != 0) return base::refused_by_system();

  const std::string target = resolve_links(path);
  std::string temporary =
      fmt::format("{}/.espalier-{}-{}.tmp", folder_of(target), ::getpid(), count.fetch_add(1));
  FileDescriptor file(::open(temporary.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666));
  if (!file) return base::refused_by_system();
  const int number = file.number();
  auto writer = std::make_unique<ReplacingWriter>(std::move(file), std::move(temporary), target);
  if (exists) {
    // The owner first: changing it clears set-id bits. Without the right, it stays.
    if (::fchown(number, old.st_uid, old.st_gid) != 0 && errno != EPERM)
      return base::refused_by_system();
    if (::fchmod(number, old.st_mode & 07777) != 0) return base::refused_by_system();
  }
  return writer;
}

Result<FileInfo> OsFiles::info(const std::string& path) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) {
    if (errno == ENOENT) return FileInfo{};
    return base::refused_by_system();
  }
  FileInfo info{.exists = true, .is_fifo = S_ISFIFO(status.st_mode)};
  if (S_ISREG(status.st_mode)) info.size_bytes = static_cast<std::uint64_t>(status.st_size);
  info.stamp = fmt::format("{}:{}:{}:{}.{}", status.st_dev, status.st_ino, status.st_size,
                           status.st_mtim.tv_sec, status.st_mtim.tv_nsec);
  return info;
}

std::unique_ptr<ByteSource> borrow_descriptor(int descriptor) {
  return std::make_unique<DescriptorSource>(FileDescriptor(), descriptor);
}

}  // namespace espalier::tools
