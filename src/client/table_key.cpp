// SPDX-License-Identifier: Apache-2.0
#include "client/table_key.hpp"

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <optional>

#include "memory/shared_memory.hpp"

namespace espalier {
namespace {

using client::TableKeyImpl;

static_assert(TableKey::kBytes == table::kKeyBytes);
constexpr std::size_t kDigits = 2 * TableKey::kBytes;

/// The text of a key file, with room to see that it is too long.
struct KeyText {
  char digits[kDigits + 2];
};

std::unexpected<TableError> refuse(Error error, std::string words) {
  return std::unexpected(TableError{error, std::move(words)});
}

std::unexpected<TableError> no_memory(const Error& error) {
  return refuse(error, "no memory may be locked for the key (RLIMIT_MEMLOCK; ulimit -l tells it)");
}

std::unexpected<TableError> wrong_file(const std::string& path, const std::string& what) {
  return refuse({Code::invalid_argument, 0, 0}, "the key file " + path + what);
}

std::unexpected<TableError> unreadable(const std::string& path, int why) {
  return refuse({Code::system, 0, static_cast<std::uint32_t>(why)},
                "cannot read the key file " + path + ": " + std::strerror(why));
}

std::string octal(mode_t mode) {
  std::string digits(4, '0');
  for (std::size_t i = 4; i-- != 0; mode >>= 3) digits[i] = static_cast<char>('0' + (mode & 7));
  return digits;
}

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

}  // namespace

TableResult<TableKey> TableKey::make(std::span<const std::byte, kBytes> bytes) {
  auto key = table::Secret<table::KeyBytes>::make();
  if (!key) return no_memory(key.error());
  std::ranges::copy(bytes, (*key)->begin());
  return TableKeyImpl::handle(*std::move(key));
}

TableResult<TableKey> TableKey::parse(std::string_view digits) {
  auto key = table::Secret<table::KeyBytes>::make();
  if (!key) return no_memory(key.error());
  bool good = digits.size() == kDigits;
  for (std::size_t i = 0; good && i < kBytes; ++i) {
    const auto high = digit(digits[2 * i]);
    const auto low = digit(digits[2 * i + 1]);
    good = high && low;
    if (good) (**key)[i] = static_cast<std::byte>(*high * 16 + *low);
  }
  // The digits themselves are nobody's to see, right or wrong.
  if (!good) return refuse({Code::invalid_argument, 0, 0}, "a key has 32 hexadecimal digits");
  return TableKeyImpl::handle(*std::move(key));
}

TableResult<TableKey> TableKey::read_file(const std::string& path) {
  const memory::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.number(), &info) != 0) return unreadable(path, errno);
  if (!S_ISREG(info.st_mode)) return wrong_file(path, " is no file");
  if (info.st_uid != geteuid()) return wrong_file(path, " belongs to another user");
  const mode_t mode = info.st_mode & 07777;
  if (mode != 0600 && mode != 0400) {
    return wrong_file(path,
                      " has mode " + octal(mode) + ", and others may read it: chmod 600 " + path);
  }
  auto text = table::Secret<KeyText>::make();
  if (!text) return no_memory(text.error());
  const ssize_t bytes = read(file.number(), (*text)->digits, sizeof(KeyText));
  if (bytes < 0) return unreadable(path, errno);
  std::string_view digits((*text)->digits, static_cast<std::size_t>(bytes));
  if (digits.size() == kDigits + 1 && digits.back() == '\n') digits.remove_suffix(1);
  auto key = parse(digits);
  if (!key && key.error().error.code == Code::invalid_argument) {
    return wrong_file(path,
                      " has not 32 hexadecimal digits; for example: (umask 077; openssl "
                      "rand -hex 16 > FILE)");
  }
  return key;
}

}  // namespace espalier
