// SPDX-License-Identifier: Apache-2.0
#include "memory/sealed_file.hpp"

#include <fcntl.h>
#include <linux/magic.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/vfs.h>
#include <unistd.h>

#include "base/system_error.hpp"

namespace espalier::memory {

Result<Descriptor> create_sealed(const char* name, std::uint64_t bytes) {
  Descriptor made(::memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING));
  if (!made) return base::refused_by_system();
  const int file = made.number();
  if (::ftruncate(file, static_cast<off_t>(bytes)) != 0) return base::refused_by_system();
  // The system creates it with mode 0777: a process of another user with a read-only descriptor
  // could open it again for writing, through /proc.
  if (::fchmod(file, S_IRUSR | S_IWUSR) != 0) return base::refused_by_system();
  if (::fcntl(file, F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_GROW | F_SEAL_SEAL) != 0) {
    return base::refused_by_system();
  }
  return made;
}

Result<void> check_sealed(const Descriptor& descriptor, std::uint64_t bytes) {
  const int file = descriptor.number();
  const int seals = ::fcntl(file, F_GET_SEALS);
  if (seals < 0 || (seals & F_SEAL_SHRINK) == 0) return fail(Code::corrupt);
  // Reading a hole in memory of huge pages kills the reader if the system has no page to spare.
  struct statfs kind {};
  if (::fstatfs(file, &kind) != 0) return base::refused_by_system();
  if (kind.f_type == HUGETLBFS_MAGIC) return fail(Code::corrupt);
  struct stat facts {};
  if (::fstat(file, &facts) != 0) return base::refused_by_system();
  if (facts.st_size < 0 || static_cast<std::uint64_t>(facts.st_size) < bytes) {
    return fail(Code::corrupt);
  }
  return {};
}

}  // namespace espalier::memory
