// SPDX-License-Identifier: Apache-2.0
#include "fabric/shm/listening_socket.hpp"

#include <fcntl.h>
#include <poll.h>
#include <sys/file.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>

#include "base/system_error.hpp"
#include "base/unix_address.hpp"

namespace espalier::fabric::shm {
namespace {

using SocketFile = ListeningSocket::File;

constexpr int kBacklog = 1024;

std::optional<SocketFile> find_socket(const std::string& path) {
  struct stat found {};
  if (::lstat(path.c_str(), &found) != 0 || !S_ISSOCK(found.st_mode)) return std::nullopt;
  return SocketFile{found.st_dev, found.st_ino};
}

memory::Descriptor make_socket(ListeningSocket::Kind kind) {
  const int type = kind == ListeningSocket::Kind::stream ? SOCK_STREAM : SOCK_SEQPACKET;
  return memory::Descriptor(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
}

// Serialises processes that start at one path: else each could remove the socket that another has
// just made. The lock goes with the descriptor. Any user who may read the folder can keep it
// locked, so the wait is bounded.
memory::Descriptor lock_folder_of(const std::string& path) {
  constexpr int kAttempts = 1000;
  const std::filesystem::path folder = std::filesystem::path(path).parent_path();
  memory::Descriptor lock(
      ::open(folder.empty() ? "." : folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  for (int i = 0; lock && i < kAttempts && ::flock(lock.number(), LOCK_EX | LOCK_NB) != 0; ++i) {
    constexpr int kPauseMs = 1;
    ::poll(nullptr, 0, kPauseMs);
  }
  return lock;
}

}  // namespace

Result<ListeningSocket> ListeningSocket::open(std::string_view path, mode_t mode, Kind kind) {
  const auto address = base::UnixAddress::file(path);
  if (!address) return std::unexpected(address.error());
  const std::string name(path);
  memory::Descriptor alone = lock_folder_of(name);
  {
    const memory::Descriptor probe = make_socket(kind);
    if (!probe) return base::refused_by_system();
    if (::connect(probe.number(), address->get(), address->bytes()) == 0 || errno == EAGAIN ||
        errno == EPROTOTYPE) {  // of the other kind, and alive
      return fail(Code::already_exists);
    }
    // A file that is no socket refuses in the same way, and may be a user's data.
    if (errno == ECONNREFUSED && find_socket(name)) ::unlink(name.c_str());
  }
  ListeningSocket made;
  made.socket_ = make_socket(kind);
  if (!made.socket_) return base::refused_by_system();
  if (::bind(made.number(), address->get(), address->bytes()) != 0) {
    return base::refused_by_system();
  }
  made.path_ = name;
  made.file_ = find_socket(name);
  // No client can connect before listen(), so none connects under the permissions that bind() gave.
  if (::chmod(name.c_str(), mode) != 0 || ::listen(made.number(), kBacklog) != 0) {
    const int why = errno;
    alone.close();  // what is made takes the lock itself when it goes
    return base::refused_by_system(why);
  }
  return made;
}

Result<void> ListeningSocket::set_mode(mode_t mode) {
  if (!file_ || find_socket(path_) != file_) return fail(Code::not_found);
  if (::chmod(path_.c_str(), mode) != 0) return base::refused_by_system();
  return {};
}

// The file goes before the socket closes: until then the system keeps the file's inode for the
// socket, so no other file has its number, and no other process finds a file that does not answer.
// The lock keeps other processes that use open() from taking the path between the check and the
// removal; a process that moves a socket there without the lock can still lose it.
void ListeningSocket::close() {
  if (!path_.empty()) {
    const memory::Descriptor alone = lock_folder_of(path_);
    if (file_ && find_socket(path_) == file_) ::unlink(path_.c_str());
    path_.clear();
  }
  socket_.close();
}

}  // namespace espalier::fabric::shm
