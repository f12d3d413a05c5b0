// SPDX-License-Identifier: Apache-2.0
#include "crypto/secret_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

namespace espalier::crypto {
namespace {

class Wording {
 public:
  Wording(const std::string& path, std::string_view what)
      : name_("the " + std::string(what) + " " + path) {}
  [[nodiscard]] std::unexpected<SecretFileError> refuse(Code code, std::string_view why) const {
    return std::unexpected(SecretFileError{{code, 0, 0}, name_ + std::string(why)});
  }
  [[nodiscard]] std::unexpected<SecretFileError> unreadable(int why) const {
    return std::unexpected(SecretFileError{{Code::system, 0, static_cast<std::uint32_t>(why)},
                                           "cannot read " + name_ + ": " + std::strerror(why)});
  }
  [[nodiscard]] std::unexpected<SecretFileError> no_memory(const Error& error) const {
    return std::unexpected(SecretFileError{
        error, "no memory may be locked for " + name_ + " (RLIMIT_MEMLOCK; ulimit -l tells it)"});
  }

 private:
  std::string name_;
};

class File {
 public:
  explicit File(int number) : number_(number) {}
  ~File() { ::close(number_); }
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  [[nodiscard]] int number() const { return number_; }

 private:
  const int number_;
};

std::string octal(mode_t mode) {
  std::string digits(4, '0');
  for (std::size_t i = 4; i-- != 0; mode >>= 3) digits[i] = static_cast<char>('0' + (mode & 7));
  return digits;
}

// Reads until the page is full or the file ends. Returns how much there is; -1: errno says why.
ssize_t fill(int file, SecretText& into) {
  while (into.bytes < SecretText::kBytesMax) {
    const ssize_t got = ::read(file, into.text + into.bytes, SecretText::kBytesMax - into.bytes);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return -1;
    if (got == 0) break;
    into.bytes += static_cast<std::uint64_t>(got);
  }
  return static_cast<ssize_t>(into.bytes);
}

}  // namespace

std::expected<int, SecretFileError> open_secret_file(const std::string& path,
                                                     std::string_view what) {
  const Wording wording(path, what);
  const int file = ::open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return wording.unreadable(errno);
  const auto refuse = [&](std::string_view why) {
    ::close(file);
    return wording.refuse(Code::invalid_argument, why);
  };
  struct stat info {};
  if (::fstat(file, &info) != 0) {
    const int why = errno;
    ::close(file);
    return wording.unreadable(why);
  }
  if (!S_ISREG(info.st_mode)) return refuse(" is no file");
  if (info.st_uid != ::geteuid()) return refuse(" belongs to another user");
  const mode_t mode = info.st_mode & 07777;
  if (mode != 0600 && mode != 0400) {
    return refuse(" has mode " + octal(mode) + ", and others may read it: chmod 600 " + path);
  }
  return file;
}

std::expected<Secret<SecretText>, SecretFileError> read_secret_file(const std::string& path,
                                                                    std::string_view what) {
  const Wording wording(path, what);
  const auto opened = open_secret_file(path, what);
  if (!opened) return std::unexpected(opened.error());
  const File file(*opened);
  auto text = Secret<SecretText>::make();
  if (!text) return wording.no_memory(text.error());
  if (fill(file.number(), **text) < 0) return wording.unreadable(errno);
  if ((*text)->bytes == SecretText::kBytesMax) {
    return wording.refuse(Code::invalid_argument, " is longer than a page");
  }
  return *std::move(text);
}

std::expected<void, SecretFileError> read_secret_lines(
    const std::string& path, std::string_view what,
    const std::function<bool(std::uint32_t number, std::string_view line)>& take) {
  const Wording wording(path, what);
  const auto opened = open_secret_file(path, what);
  if (!opened) return std::unexpected(opened.error());
  const File file(*opened);
  auto page = Secret<SecretText>::make();
  if (!page) return wording.no_memory(page.error());
  SecretText& text = **page;
  for (std::uint32_t number = 1;; ++number) {
    std::size_t end = text.view().find('\n');
    if (end == std::string_view::npos) {
      if (fill(file.number(), text) < 0) return wording.unreadable(errno);
      end = text.view().find('\n');
    }
    const bool last = end == std::string_view::npos;
    if (last && text.bytes == SecretText::kBytesMax) {
      return wording.refuse(
          Code::invalid_argument,
          " has a line that is longer than a page: line " + std::to_string(number));
    }
    if (last && text.bytes == 0) return {};
    if (!take(number, text.view().substr(0, end)) || last) return {};
    const std::size_t rest = text.bytes - (end + 1);
    std::memmove(text.text, text.text + end + 1, rest);
    text.bytes = rest;
  }
}

}  // namespace espalier::crypto
