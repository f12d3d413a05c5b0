// SPDX-License-Identifier: Apache-2.0
#include "kinds/region/region_files.hpp"

#include <dirent.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <new>
#include <optional>
#include <string_view>

#include "base/durable_mark.hpp"
#include "base/number_text.hpp"
#include "base/system_error.hpp"
#include "catalog/redo_sink.hpp"

namespace espalier::region {
namespace {

using base::refused_by_system;

std::optional<std::uint32_t> id_in(std::string_view name) {
  return base::parse_digits<std::uint32_t>(name);
}

}  // namespace

FileMemory::~FileMemory() {
  if (at_ != nullptr && !mark_.is_copy()) ::munmap(at_, bytes_);
}

Result<void> RegionFiles::open(const std::string& path, bool is_model) {
  if (::mkdir(path.c_str(), 0700) != 0 && errno != EEXIST) return refused_by_system();
  path_ = path;
  is_model_ = is_model;
  return {};
}

std::string RegionFiles::path_of(std::uint32_t id) const {
  return path_ + "/" + std::to_string(id);
}

Result<FileMemory> RegionFiles::make(std::uint32_t id, std::uint64_t bytes) {
  remove_due();
  const std::string path = path_of(id);
  ::unlink(path.c_str());  // left by a region whose record was never durable
  const memory::Descriptor file(::open(path.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600));
  if (!file) return refused_by_system();
  // A store to a page for which there is no space would end the process.
  const int refused = ::posix_fallocate(file.number(), 0, static_cast<off_t>(bytes));
  auto mapped = refused == 0 ? map(file, bytes) : refused_by_system(refused);
  if (mapped && ::fsync(file.number()) != 0) mapped = refused_by_system();
  if (mapped) {
    if (auto synced = sync_folder(); !synced) mapped = std::unexpected(synced.error());
  }
  if (!mapped) ::unlink(path.c_str());
  return mapped;
}

Result<FileMemory> RegionFiles::find(std::uint32_t id, std::uint64_t bytes) {
  const memory::Descriptor file(::open(path_of(id).c_str(), O_RDWR | O_CLOEXEC));
  if (!file) return errno == ENOENT ? Result<FileMemory>(FileMemory()) : refused_by_system();
  struct stat facts {};
  if (::fstat(file.number(), &facts) != 0) return refused_by_system();
  if (static_cast<std::uint64_t>(facts.st_size) != bytes) return fail(Code::corrupt, id);
  return map(file, bytes);
}

Result<FileMemory> RegionFiles::map(const memory::Descriptor& file, std::uint64_t bytes) const {
  const int flags = is_model_ ? MAP_SHARED : MAP_SHARED_VALIDATE | MAP_SYNC;
  void* const at = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, flags, file.number(), 0);
  if (at == MAP_FAILED) return refused_by_system();
  FileMemory memory(static_cast<std::byte*>(at), bytes);
  if (::madvise(at, bytes, MADV_DONTFORK) != 0) return refused_by_system();
  return memory;
}

Result<void> RegionFiles::sync_folder() const {
  const memory::Descriptor folder(::open(path_.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!folder || ::fsync(folder.number()) != 0) return refused_by_system();
  return {};
}

void RegionFiles::remove(std::uint32_t id, catalog::RedoSink& sink,
                         std::uint64_t sequence) noexcept {
  try {
    const std::lock_guard lock(mutex_);
    removals_.push_back({id, &sink, sequence});
  } catch (const std::bad_alloc&) {  // keep_only() of a later start removes it
  }
  remove_due();
}

void RegionFiles::remove_due() noexcept {
  const std::lock_guard lock(mutex_);
  std::erase_if(removals_, [&](const Removal& each) {
    if (each.sink->mark().durable() < each.sequence) return false;
    return ::unlink(path_of(each.id).c_str()) == 0 || errno == ENOENT;
  });
}

Result<void> RegionFiles::keep_only(const std::set<std::uint32_t>& ids, Leftover others) {
  DIR* const folder = ::opendir(path_.c_str());
  if (folder == nullptr) return refused_by_system();
  while (const dirent* const entry = ::readdir(folder)) {
    const auto id = id_in(entry->d_name);
    if (!id || ids.contains(*id)) continue;
    const std::string path = path_of(*id);
    if (others == Leftover::removed) {
      ::unlink(path.c_str());
    } else if (::rename(path.c_str(), (path + ".lost").c_str()) != 0) {
      const auto refused = refused_by_system();
      ::closedir(folder);
      return refused;
    }
  }
  ::closedir(folder);
  return {};
}

}  // namespace espalier::region
