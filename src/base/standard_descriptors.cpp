// SPDX-License-Identifier: Apache-2.0
#include "base/standard_descriptors.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>
#include <cstdlib>

namespace espalier::base {

void open_standard_descriptors() {
  for (int number = STDIN_FILENO; number <= STDERR_FILENO; ++number) {
    if (::fcntl(number, F_GETFD) >= 0 || errno != EBADF) continue;
    // The lowest number that is free is this one.
    const int rights = number == STDIN_FILENO ? O_WRONLY : O_RDONLY;
    if (::open("/dev/null", rights) != number) ::_exit(EXIT_FAILURE);
  }
}

int above_standard_descriptors(int number) {
  if (number < STDIN_FILENO || number > STDERR_FILENO) [[likely]]
    return number;
  const int above = ::fcntl(number, F_DUPFD_CLOEXEC, STDERR_FILENO + 1);
  if (above < 0) return number;
  ::close(number);
  return above;
}

}  // namespace espalier::base
