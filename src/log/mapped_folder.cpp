// SPDX-License-Identifier: Apache-2.0
#include "log/mapped_folder.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <span>
#include <utility>

#include "base/assert.hpp"
#include "base/past_cache.hpp"
#include "base/system_error.hpp"
#include "log/descriptor.hpp"
#include "log/format.hpp"

namespace espalier::log {
namespace {

using base::refused_by_system;

/// Bytes of a file, as memory.
class Mapping {
 public:
  Mapping() = default;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { end(); }

  /// Errors: system; EOPNOTSUPP where stores alone are not durable.
  Result<void> begin(int file, std::uint64_t bytes, bool is_model) {
    end();
    if (bytes == 0) return {};
    const int flags = is_model ? MAP_SHARED : MAP_SHARED_VALIDATE | MAP_SYNC;
    void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file, 0);
    if (at == MAP_FAILED) return refused_by_system();
    at_ = static_cast<std::byte*>(at);
    bytes_ = bytes;
    return {};
  }
  /// Null: it has not so many.
  [[nodiscard]] std::byte* find(std::uint64_t offset, std::uint64_t bytes) const {
    return offset <= bytes_ && bytes <= bytes_ - offset ? at_ + offset : nullptr;
  }

 private:
  void end() {
    if (at_ != nullptr) ::munmap(at_, bytes_);
    at_ = nullptr;
    bytes_ = 0;
  }

  std::byte* at_ = nullptr;
  std::uint64_t bytes_ = 0;
};

// Mapped is what fill() has written zeros to, so that a page that is stored to is there: on a file
// system that is full a store to one that is not ends the process. All else the kernel writes.
class MappedFile final : public LogFile {
 public:
  MappedFile(std::unique_ptr<LogFile> file, Descriptor descriptor, bool is_model,
             std::atomic<std::uint64_t>& stored_bytes)
      : file_(std::move(file)),
        descriptor_(std::move(descriptor)),
        is_model_(is_model),
        stored_bytes_(stored_bytes) {}

  [[nodiscard]] Result<std::size_t> write(std::uint64_t offset,
                                          std::span<const std::byte> bytes) override {
    std::byte* const to = mapping_.find(offset, bytes.size());
    if (to == nullptr) return file_->write(offset, bytes);
    base::copy_past_cache(to, bytes.data(), bytes.size());
    base::fence_past_cache();
    stored_bytes_.fetch_add(bytes.size(), std::memory_order_relaxed);
    return bytes.size();
  }
  [[nodiscard]] bool takes_several() const override { return true; }
  [[nodiscard]] Result<std::size_t> read(std::uint64_t offset,
                                         std::span<std::byte> bytes) override {
    return file_->read(offset, bytes);
  }
  [[nodiscard]] Result<void> fill(std::uint64_t bytes) override {
    if (auto filled = file_->fill(bytes); !filled) return filled;
    return mapping_.begin(descriptor_.number(), bytes, is_model_);
  }
  // The kernel writes what is only allocated: no caller waits for such a file.
  [[nodiscard]] Result<void> extend(std::uint64_t bytes, std::uint64_t leave) override {
    return file_->extend(bytes, leave);
  }
  [[nodiscard]] Result<void> sync() override { return file_->sync(); }
  [[nodiscard]] Result<std::uint64_t> size() override { return file_->size(); }

 private:
  const std::unique_ptr<LogFile> file_;
  const Descriptor descriptor_;
  const bool is_model_;
  std::atomic<std::uint64_t>& stored_bytes_;
  Mapping mapping_;
};

// Whether a store there is durable by itself: asked of a file that is made for that.
Result<bool> is_persistent(const std::string& path) {
  const Descriptor probe(::open(path.c_str(), O_TMPFILE | O_RDWR | O_CLOEXEC, 0600));
  if (probe.number() < 0) return refused_by_system();
  if (::ftruncate(probe.number(), kUnitBytes) != 0) return refused_by_system();
  const auto mapped = Mapping().begin(probe.number(), kUnitBytes, false);
  if (mapped) return true;
  const std::uint32_t refusal = mapped.error().detail;
  if (refusal == EOPNOTSUPP || refusal == EINVAL) return false;  // so it does not know MAP_SYNC
  return std::unexpected(mapped.error());
}

}  // namespace

Result<std::unique_ptr<MappedFolder>> MappedFolder::at(const std::string& path) {
  struct statfs facts{};
  if (::statfs(path.c_str(), &facts) != 0) return refused_by_system();
  const bool is_model = facts.f_type == TMPFS_MAGIC;
  if (!is_model) {
    const auto persistent = is_persistent(path);
    if (!persistent) return std::unexpected(persistent.error());
    if (!*persistent) return fail(Code::unsupported);
  }
  return std::unique_ptr<MappedFolder>(new MappedFolder(path, is_model));
}

Result<std::unique_ptr<LogFile>> MappedFolder::map(Result<std::unique_ptr<LogFile>> file,
                                                   std::string_view name) {
  if (!file) return file;
  const std::string path = path_ + "/" + std::string(name);
  Descriptor descriptor(::open(path.c_str(), O_RDWR | O_CLOEXEC));
  if (descriptor.number() < 0) return refused_by_system();
  return std::make_unique<MappedFile>(std::move(*file), std::move(descriptor), is_model_,
                                      stored_bytes_);
}

Result<std::unique_ptr<LogFile>> MappedFolder::create(std::string_view name) {
  return map(files_.create(name), name);
}

Result<std::unique_ptr<LogFile>> MappedFolder::open(std::string_view name) {
  return map(files_.open(name), name);
}

}  // namespace espalier::log
