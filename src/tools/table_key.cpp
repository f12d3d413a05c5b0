// SPDX-License-Identifier: Apache-2.0
#include "tools/table_key.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <CLI/CLI.hpp>
#include <cerrno>
#include <cstring>

#include "memory/shared_memory.hpp"

namespace espalier::tools {
namespace {

constexpr std::size_t kDigits = 2 * table::kKeyBytes;
constexpr const char* kHint = "For example: (umask 077; openssl rand -hex 16 > FILE)";

/// The text of a key file, with room to see that it is too long.
struct KeyText {
  char digits[kDigits + 2];
};

std::optional<unsigned> digit(char c) {
  if (c >= '0' && c <= '9') return static_cast<unsigned>(c - '0');
  if (c >= 'a' && c <= 'f') return static_cast<unsigned>(c - 'a' + 10);
  if (c >= 'A' && c <= 'F') return static_cast<unsigned>(c - 'A' + 10);
  return std::nullopt;
}

bool is_key(const char* text, ssize_t bytes, table::KeyBytes& key) {
  const auto count = static_cast<std::size_t>(bytes);
  const bool line = count == kDigits + 1 && text[kDigits] == '\n';
  if (count != kDigits && !line) return false;
  for (std::size_t i = 0; i < key.size(); ++i) {
    const auto high = digit(text[2 * i]);
    const auto low = digit(text[2 * i + 1]);
    if (!high || !low) return false;
    key[i] = static_cast<std::byte>(*high * 16 + *low);
  }
  return true;
}

bool is_memory_of_this_machine(const std::string& address) {
  return address.starts_with("unix:") || address.starts_with("shm:");
}

}  // namespace

void add_key_flags(CLI::App& command, KeyFlags& flags, bool sends) {
  command.add_option("--key-file", flags.file,
                     "File of the key of an encrypted table: 32 hexadecimal digits, mode 0600");
  if (!sends) return;
  command.add_flag("--allow-keys-in-clear", flags.in_clear,
                   "Send the key also where others on the way could read it");
}

Outcome<table::Secret<table::KeyBytes>> read_key_file(const std::string& path) {
  const memory::Descriptor file(open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK));
  struct stat info {};
  if (!file || fstat(file.number(), &info) != 0) {
    return failed(fmt::format("cannot read the key file {}: {}", path, std::strerror(errno)));
  }
  if (!S_ISREG(info.st_mode)) return failed(fmt::format("the key file {} is no file", path));
  if (info.st_uid != geteuid()) {
    return failed(fmt::format("the key file {} belongs to another user", path));
  }
  if ((info.st_mode & 07777) != 0600 && (info.st_mode & 07777) != 0400) {
    return failed(fmt::format("the key file {} has mode {:04o}, and others may read it", path,
                              info.st_mode & 07777u),
                  fmt::format("chmod 600 {}", path));
  }
  auto text = table::Secret<KeyText>::make();
  auto key = table::Secret<table::KeyBytes>::make();
  if (!text || !key) {
    return failed("no memory may be locked for the key", "ulimit -l tells how much may be.");
  }
  const ssize_t bytes = read(file.number(), (*text)->digits, sizeof(KeyText));
  if (bytes < 0) {
    return failed(fmt::format("cannot read the key file {}: {}", path, std::strerror(errno)));
  }
  if (!is_key((*text)->digits, bytes, **key)) {
    return failed(fmt::format("the key file {} has not 32 hexadecimal digits", path), kHint);
  }
  return *std::move(key);
}

Outcome<UserKey> table_key(const Environment&, const KeyFlags& flags, const TablePlace&,
                           const client::TableImpl& table) {
  if (!table.salt() && flags.file) {
    return misused(fmt::format("table '{}' is not encrypted, and takes no key", table.name()));
  }
  if (!table.salt()) return UserKey();
  if (!flags.file) {
    return misused(fmt::format("table '{}' is encrypted", table.name()),
                   "Give its key: --key-file.");
  }
  auto key = read_key_file(*flags.file);
  if (!key) return std::unexpected(key.error());
  return UserKey(*std::move(key));
}

Outcome<UserKey> query_key(const Environment& environment, const KeyFlags& flags,
                           bool encrypts_result, const TablePlace& place,
                           const client::TableImpl& table) {
  const bool wanted = table.salt() || encrypts_result;
  if (wanted && flags.file && !flags.in_clear && !is_memory_of_this_machine(place.address)) {
    return misused(fmt::format("to {} the key would travel in clear", place.address),
                   "Where nobody else can listen, give --allow-keys-in-clear.");
  }
  if (!encrypts_result) return table_key(environment, flags, place, table);
  if (!flags.file) return misused("--encrypt-result needs a key", "Give one: --key-file.");
  auto key = read_key_file(*flags.file);
  if (!key) return std::unexpected(key.error());
  return UserKey(*std::move(key));
}

}  // namespace espalier::tools
