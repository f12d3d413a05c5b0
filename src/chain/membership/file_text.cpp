// SPDX-License-Identifier: Apache-2.0
#include "chain/membership/file_text.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <filesystem>
#include <system_error>

namespace espalier::chain {
namespace {

bool write_and_flush(int file, std::string_view text) {
  while (!text.empty()) {
    const ssize_t wrote = ::write(file, text.data(), text.size());
    if (wrote < 0 && errno == EINTR) continue;
    if (wrote <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(wrote));
  }
  return ::fsync(file) == 0;
}

}  // namespace

TextFile::TextFile(const std::string& path, int flags)
    : descriptor_(::open(path.c_str(), flags | O_CLOEXEC, 0600)) {}

TextFile::~TextFile() {
  if (descriptor_ >= 0) ::close(descriptor_);
}

std::unexpected<std::string> cannot(std::string_view what, const std::string& path) {
  return std::unexpected("cannot " + std::string(what) + " '" + path +
                         "': " + std::system_category().message(errno));
}

std::expected<std::optional<std::string>, std::string> read_text(const std::string& path,
                                                                 std::size_t bytes_max) {
  const TextFile file(path, O_RDONLY);
  if (!file && errno == ENOENT) return std::nullopt;
  if (!file) return cannot("open", path);
  std::string text(bytes_max + 1, '\0');
  std::size_t used = 0;
  while (used < text.size()) {
    const ssize_t got = ::read(file.number(), text.data() + used, text.size() - used);
    if (got < 0 && errno == EINTR) continue;
    if (got < 0) return cannot("read", path);
    if (got == 0) break;
    used += static_cast<std::size_t>(got);
  }
  text.resize(used);
  return text;
}

std::expected<void, std::string> replace_text(const std::string& path, std::string_view text) {
  const std::string beside = path + ".new";
  {
    const TextFile file(beside, O_WRONLY | O_CREAT | O_TRUNC);
    if (!file || !write_and_flush(file.number(), text)) return cannot("write", beside);
  }
  if (std::rename(beside.c_str(), path.c_str()) != 0) return cannot("rename", beside);
  const std::filesystem::path parent = std::filesystem::path(path).parent_path();
  const TextFile folder(parent.empty() ? "." : parent.string(), O_RDONLY | O_DIRECTORY);
  if (!folder || ::fsync(folder.number()) != 0) return cannot("flush the folder of", path);
  return {};
}

}  // namespace espalier::chain
