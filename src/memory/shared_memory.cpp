// SPDX-License-Identifier: Apache-2.0
#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/system_error.hpp"

namespace espalier::memory {
Descriptor::Descriptor(Descriptor&& other) noexcept : number_(std::exchange(other.number_, -1)) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  return *this;
}

void Descriptor::close() {
  if (number_ >= 0) ::close(number_);
  number_ = -1;
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  return *this;
}

Result<SharedMemory> SharedMemory::create(const char* name, std::uint64_t bytes) {
  SharedMemory made;
  made.descriptor_ = Descriptor(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made.descriptor_) return base::refused_by_system();
  made.bytes_ = bytes;
  const int file = made.descriptor_.number();
  if (ftruncate(file, static_cast<off_t>(bytes)) != 0) return base::refused_by_system();
  // The system makes it a file that anybody may read and write: who got a descriptor to read could
  // open it again, by way of /proc, to write.
  if (fchmod(file, S_IRUSR | S_IWUSR) != 0) return base::refused_by_system();
  if (fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0)
    return base::refused_by_system();
  if (const auto mapped = made.map(Rights::write); !mapped) {
    return std::unexpected(mapped.error());
  }
  return made;
}

Result<SharedMemory> SharedMemory::attach(Descriptor descriptor, std::uint64_t bytes,
                                          Rights rights) {
  SharedMemory attached;
  attached.descriptor_ = std::move(descriptor);
  attached.bytes_ = bytes;
  const int file = attached.descriptor_.number();
  const int seals = fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return fail(Code::corrupt);
  // Holes in memory of huge pages end whoever reads them, if the system has no page to spare.
  struct statfs kind {};
  if (fstatfs(file, &kind) != 0) return base::refused_by_system();
  if (kind.f_type == HUGETLBFS_MAGIC) return fail(Code::corrupt);
  struct stat facts {};
  if (fstat(file, &facts) != 0) return base::refused_by_system();
  if (facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) < bytes) {
    return fail(Code::corrupt);
  }
  if (const auto mapped = attached.map(rights); !mapped) return std::unexpected(mapped.error());
  return attached;
}

// By way of /proc, for a duplicate would have the rights of the original.
Result<Descriptor> copy_descriptor(const Descriptor& descriptor, Rights rights) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor.number());
  const int mode = rights == Rights::write ? O_RDWR : O_RDONLY;
  Descriptor opened(open(path.c_str(), mode | O_CLOEXEC));
  if (!opened) return base::refused_by_system();
  return opened;
}

Result<void> SharedMemory::map(Rights rights) {
  const int protection = rights == Rights::write ? PROT_READ | PROT_WRITE : PROT_READ;
  void* const at = mmap(nullptr, bytes_, protection, MAP_SHARED, descriptor_.number(), 0);
  if (at == MAP_FAILED) return base::refused_by_system();
  base_ = static_cast<std::byte*>(at);
  return {};
}

void SharedMemory::unmap() {
  if (base_ != nullptr) munmap(base_, bytes_);
  base_ = nullptr;
}

}  // namespace espalier::memory
