// SPDX-License-Identifier: Apache-2.0
// Whose file a listening socket removes when it goes.
#include "fabric/shm/listening_socket.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <optional>

#include "base/temporary_folder.hpp"

namespace espalier::fabric::shm {
namespace {

namespace fs = std::filesystem;

class ListeningSocketFile : public testing::Test {
 protected:
  [[nodiscard]] std::optional<ListeningSocket> listen() const {
    auto made = ListeningSocket::open(path.native());
    EXPECT_TRUE(made) << message(made.error());
    return made ? std::optional(std::move(*made)) : std::nullopt;
  }

  base::TemporaryFolder folder;
  fs::path path = folder / "s";
};

TEST_F(ListeningSocketFile, GoesWithTheSocketThatMadeIt) {
  auto first = listen();
  auto moved = std::move(first);
  first.reset();
  EXPECT_TRUE(fs::is_socket(path));
  moved.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ListeningSocketFile, OfAnotherAtTheSamePathStays) {
  auto first = listen();
  ASSERT_TRUE(fs::remove(path));
  auto second = listen();
  first.reset();
  EXPECT_TRUE(fs::is_socket(path));
  EXPECT_EQ(ListeningSocket::open(path.native()).error().code, Code::already_exists);
  second.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ListeningSocketFile, ThatIsNoSocketStays) {
  auto socket = listen();
  ASSERT_TRUE(fs::remove(path));
  std::ofstream(path) << "data";
  socket.reset();
  EXPECT_TRUE(fs::is_regular_file(path));
}

TEST_F(ListeningSocketFile, MayBeGoneAlready) {
  auto socket = listen();
  ASSERT_TRUE(fs::remove_all(folder / "s"));
  socket.reset();
  EXPECT_FALSE(fs::exists(path));
}

TEST_F(ListeningSocketFile, HasThePermissionsAskedFor) {
  for (const mode_t mode : {0600U, 0666U}) {  // whatever the umask
    const auto socket = ListeningSocket::open(path.native(), mode);
    ASSERT_TRUE(socket) << message(socket.error());
    EXPECT_EQ(static_cast<mode_t>(fs::status(path).permissions()), mode);
  }
}

TEST_F(ListeningSocketFile, GetsOtherPermissionsIfItIsStillThere) {
  auto socket = listen();
  EXPECT_TRUE(socket->set_mode(0660));
  EXPECT_EQ(static_cast<mode_t>(fs::status(path).permissions()), 0660U);
  ASSERT_TRUE(fs::remove(path));
  std::ofstream(path) << "data";
  fs::permissions(path, fs::perms::owner_read);
  EXPECT_EQ(socket->set_mode(0666).error().code, Code::not_found);
  EXPECT_EQ(fs::status(path).permissions(), fs::perms::owner_read);
}

}  // namespace
}  // namespace espalier::fabric::shm
