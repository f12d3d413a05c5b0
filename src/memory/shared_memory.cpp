// SPDX-License-Identifier: Apache-2.0
#include "memory/shared_memory.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <utility>

#include "base/assert.hpp"
#include "base/system_error.hpp"
#include "base/uninherited.hpp"
#include "memory/address_range.hpp"
#include "memory/sealed_file.hpp"

namespace espalier::memory {
namespace {

constexpr std::uint64_t kHugePageBytes = std::uint64_t{2} << 20;

}  // namespace

Descriptor::Descriptor(Descriptor&& other) noexcept
    : number_(std::exchange(other.number_, -1)),
      inherited_(other.inherited_),
      mark_(other.mark_) {}

Descriptor& Descriptor::operator=(Descriptor&& other) noexcept {
  std::swap(number_, other.number_);
  std::swap(inherited_, other.inherited_);
  std::swap(mark_, other.mark_);
  return *this;
}

void Descriptor::close() {
  const int number = std::exchange(number_, -1);
  if (number < 0) return;
  if (!inherited_ && mark_.is_copy()) return;  // its number may be that of another one here
  if (!inherited_) base::inherit_again(number);
  ::close(number);
}

void Descriptor::close_in_children() {
  inherited_ = false;
  mark_ = base::ForkMark();
  base::close_in_children(number_);
}

SharedMemory::SharedMemory(SharedMemory&& other) noexcept
    : descriptor_(std::move(other.descriptor_)),
      base_(std::exchange(other.base_, nullptr)),
      bytes_(std::exchange(other.bytes_, 0)),
      mark_(other.mark_) {}

SharedMemory& SharedMemory::operator=(SharedMemory&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  std::swap(base_, other.base_);
  std::swap(bytes_, other.bytes_);
  std::swap(mark_, other.mark_);
  return *this;
}

Result<SharedMemory> SharedMemory::create(const char* name, std::uint64_t bytes) {
  auto file = create_sealed(name, bytes);
  if (!file) return std::unexpected(file.error());
  SharedMemory made;
  made.descriptor_ = std::move(*file);
  made.bytes_ = bytes;
  if (const auto mapped = made.map(Rights::write); !mapped) {
    return std::unexpected(mapped.error());
  }
  return made;
}

Result<SharedMemory> SharedMemory::attach(Descriptor descriptor, std::uint64_t bytes,
                                          Rights rights) {
  if (const auto sealed = check_sealed(descriptor, bytes); !sealed) {
    return std::unexpected(sealed.error());
  }
  SharedMemory attached;
  attached.descriptor_ = std::move(descriptor);
  attached.bytes_ = bytes;
  if (const auto mapped = attached.map(rights); !mapped) return std::unexpected(mapped.error());
  return attached;
}

// By way of /proc, for a duplicate would have the rights of the original.
Result<Descriptor> copy_descriptor(const Descriptor& descriptor, Rights rights) {
  const std::string path = "/proc/self/fd/" + std::to_string(descriptor.number());
  const int mode = rights == Rights::write ? O_RDWR : O_RDONLY;
  Descriptor opened(::open(path.c_str(), mode | O_CLOEXEC));
  if (!opened) return base::refused_by_system();
  return opened;
}

Result<void> SharedMemory::map(Rights rights) {
  const int protection = rights == Rights::write ? PROT_READ | PROT_WRITE : PROT_READ;
  // What is long enough for huge pages begins where they can.
  if (bytes_ >= kHugePageBytes && bytes_ % kHugePageBytes == 0) {
    base_ = map_aligned(bytes_, descriptor_.number());
    if (base_ == nullptr) return base::refused_by_system();
    if (rights == Rights::write && ::mprotect(base_, bytes_, protection) != 0) {
      return base::refused_by_system();
    }
  } else {
    void* const at = ::mmap(nullptr, bytes_, protection, MAP_SHARED, descriptor_.number(), 0);
    if (at == MAP_FAILED) return base::refused_by_system();
    base_ = static_cast<std::byte*>(at);
  }
  if (::madvise(base_, bytes_, MADV_DONTFORK) != 0) return base::refused_by_system();
  return {};
}

void SharedMemory::discard() const {
  // Of our own file, which lies in memory, the system refuses no hole.
  const int punched = ::fallocate(descriptor_.number(), FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                                  0, static_cast<off_t>(bytes_));
  ESPALIER_ASSERT(punched == 0);
}

void SharedMemory::unmap() {
  if (base_ != nullptr && !mark_.is_copy()) ::munmap(base_, bytes_);
  base_ = nullptr;
}

}  // namespace espalier::memory
