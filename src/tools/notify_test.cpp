// SPDX-License-Identifier: Apache-2.0
#include "tools/notify.hpp"

#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cerrno>
#include <cstddef>
#include <cstring>
#include <filesystem>

#include "base/unix_address.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::tools {
namespace {

/// A socket that listens as systemd does, and what came to it.
class Listening {
 public:
  explicit Listening(std::string name) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
    const auto address = name.front() == '@' ? base::UnixAddress::abstract(name.substr(1))
                                             : base::UnixAddress::file(name);
    EXPECT_EQ(::bind(socket_.number(), address->get(), address->bytes()), 0);
  }
  std::string receive() {
    char text[64];
    const ssize_t got = ::recv(socket_.number(), text, sizeof text, MSG_DONTWAIT);
    return got < 0 ? "nothing" : std::string(text, static_cast<std::size_t>(got));
  }

 private:
  memory::Descriptor socket_;
};

TEST(Notify, SendsToSocketsInFoldersAndToAbstractOnes) {
  const std::string number = std::to_string(::getpid());
  const std::string path =
      (std::filesystem::temp_directory_path() / ("espalier-notify-" + number)).string();
  for (const std::string& name : {path, "@espalier-notify-" + number}) {
    Listening listening(name);
    EXPECT_TRUE(notify(name, "READY=1")) << name;
    EXPECT_EQ(listening.receive(), "READY=1") << name;
  }
  std::filesystem::remove(path);
}

TEST(Notify, SaysWhenNobodyListens) {
  EXPECT_EQ(notify("/no/such/socket", "READY=1").error(), (Error{Code::system, 0, ENOENT}));
  for (const std::string& bad :
       {std::string(), std::string("/"), std::string("relative"), "/" + std::string(200, 'x')}) {
    EXPECT_EQ(notify(bad, "READY=1").error().code, Code::invalid_argument) << bad;
  }
}

}  // namespace
}  // namespace espalier::tools
