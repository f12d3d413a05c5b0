// SPDX-License-Identifier: Apache-2.0
// A process of another user listens where a client expects its node: the client sends nothing to
// it, unless the options name that user.
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>

#include "base/child_process.hpp"
#include "base/temporary_folder.hpp"
#include "base/unix_address.hpp"
#include "channel/rings/node_address.hpp"
#include "espalier/map.hpp"

namespace espalier::client {
namespace {

constexpr std::uint32_t kStranger = 65534;
enum Heard : int { nothing = 10, something = 11, no_socket = 12 };

/// Listens at a path as another user, accepts one connection, and reports what arrived.
int listen_as_stranger(const std::string& path, int ready) {
  if (::setgid(kStranger) != 0 || ::setuid(kStranger) != 0) return no_socket;
  const auto address = base::UnixAddress::file(path);
  const int listening = ::socket(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0);
  const bool listens = address && listening >= 0 &&
                       ::bind(listening, address->get(), address->bytes()) == 0 &&
                       ::listen(listening, 1) == 0;
  const char said = listens ? 'y' : 'n';
  if (::write(ready, &said, 1) != 1 || !listens) return no_socket;
  const int client = ::accept(listening, nullptr, nullptr);
  char byte = 0;
  return ::recv(client, &byte, 1, 0) > 0 ? something : nothing;
}

class ServerUser : public ::testing::TestWithParam<const char*> {
 protected:
  void SetUp() override {
    if (::geteuid() != 0) GTEST_SKIP() << "only root can run a server as another user";
    ASSERT_EQ(::chmod(folder_.path().c_str(), 0777), 0);
    ::unsetenv("ESPALIER_NODE_USER");
  }
  void TearDown() override { ::unsetenv("ESPALIER_NODE_USER"); }

  /// Runs the listener of the other user beside a client; returns what the listener received.
  template <class Client>
  int heard_of(const Client& client) {
    const std::string path = folder_ / "s";
    ::unlink(path.c_str());
    int ready[2] = {-1, -1};
    if (::pipe(ready) != 0) return no_socket;
    const pid_t child = ::fork();
    if (child == 0) ::_exit(listen_as_stranger(path, ready[1]));
    ::close(ready[1]);
    char said = 0;
    const bool listens = ::read(ready[0], &said, 1) == 1 && said == 'y';
    ::close(ready[0]);
    if (listens) client(GetParam() + path);
    return base::wait_for_child(child);
  }

  base::TemporaryFolder folder_;
};

TEST_P(ServerUser, AStrangerHearsNothing) {
  EXPECT_EQ(heard_of([](const std::string& address) {
              const auto store = Store::connect(address);
              ASSERT_FALSE(store);
              EXPECT_EQ(store.error(), (Error{Code::not_permitted, 0, 7}));
              EXPECT_NE(message(store.error()).find("node_user"), std::string::npos);
            }),
            nothing);
}

TEST_P(ServerUser, OneThatIsExpectedHearsAHello) {
  // Over memif the listener sends first.
  if (GetParam() == std::string_view("roce+memif:")) return;
  const auto connects = [](const StoreOptions& options) {
    return [options](const std::string& address) {
      const auto store = Store::connect(address, options);
      ASSERT_FALSE(store) << "it answers nothing";
      EXPECT_NE(store.error().code, Code::not_permitted);
    };
  };
  EXPECT_EQ(heard_of(connects({.node_user = kStranger})), something);
  ::setenv("ESPALIER_NODE_USER", "65534", 1);
  EXPECT_EQ(heard_of(connects({})), something);
  ::setenv("ESPALIER_NODE_USER", "424242", 1);
  EXPECT_EQ(heard_of([](const std::string& address) {
              EXPECT_EQ(Store::connect(address).error(), (Error{Code::not_permitted, 0, 7}));
            }),
            nothing);
}

TEST_P(ServerUser, AFolderOfItsOwnProvesThatItIsMeant) {
  ASSERT_EQ(::chmod(folder_.path().c_str(), 0755), 0);
  ASSERT_EQ(::chown(folder_.path().c_str(), kStranger, kStranger), 0);
  // Any user could have made the folder below /tmp, so its owner proves nothing.
  EXPECT_EQ(heard_of([](const std::string& address) {
              EXPECT_EQ(Store::connect(address).error(), (Error{Code::not_permitted, 0, 7}));
            }),
            nothing);
}

INSTANTIATE_TEST_SUITE_P(By, ServerUser, ::testing::Values("unix:", "shm:", "roce+memif:"));

}  // namespace
}  // namespace espalier::client
