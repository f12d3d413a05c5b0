// SPDX-License-Identifier: Apache-2.0
#include "base/private_folder.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "base/system_error.hpp"

namespace espalier::base {

Result<void> make_private_folder(const std::string& path) {
  // With a wider umask the mode would still be no wider than this.
  if (::mkdir(path.c_str(), S_IRWXU) != 0 && errno != EEXIST) return refused_by_system();
  struct stat found{};
  if (::lstat(path.c_str(), &found) != 0) return refused_by_system();
  const bool is_private = (found.st_mode & ALLPERMS) == S_IRWXU;
  const bool is_ours = S_ISDIR(found.st_mode) && found.st_uid == ::geteuid();
  return is_ours && is_private ? Result<void>() : fail(Code::not_permitted);
}

}  // namespace espalier::base
