// SPDX-License-Identifier: Apache-2.0
// What `espalier serve` makes of its options. That the program serves is tested in
// tests/commands/serve_test.cpp.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <filesystem>
#include <string>

#include "base/child_process.hpp"
#include "base/temporary_folder.hpp"
#include "node/config_file.hpp"
#include "node/config_load.hpp"
#include "node/config_settings.hpp"
#include "tools/node_process.hpp"
#include "tools/os_files.hpp"
#include "tools/testing/tool_fixture.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

const std::string kFile(node::kDefaultFile);

class ServeCommand : public ::testing::Test {
 protected:
  ServeCommand() {
    tool.serve = [this](Environment&, const node::Loaded& loaded,
                        const LoadAgain& load_again) -> Outcome<int> {
      served.push_back(loaded.config);
      if (meanwhile) meanwhile(load_again);
      return kOk;
    };
  }
  Tool tool;
  std::vector<node::Config> served;
  std::function<void(const LoadAgain&)> meanwhile;  // while the node runs; nothing: nothing
};

TEST_F(ServeCommand, TakesEverySettingAsAnOption) {
  for (const node::Setting& setting : node::settings()) {
    std::string text(setting.fallback);
    if (setting.rule.kind == node::Kind::path) text = "/s";
    if (setting.rule.kind == node::Kind::fabric) text = "shm:/s";
    EXPECT_EQ(tool.run({"serve", node::flag_name(setting.key), text, "--check-config"}), kOk)
        << setting.key << tool.err();
    EXPECT_EQ(tool.out(), "the configuration is good\n");
    EXPECT_EQ(tool.run({"serve", "--print-config", node::flag_name(setting.key), text}), kOk);
    EXPECT_THAT(tool.out(), HasSubstr("# flag " + node::flag_name(setting.key)));
  }
  EXPECT_TRUE(served.empty());
}

TEST_F(ServeCommand, FlagsVariablesAndTheFileComeTogether) {
  tool.files.contents[kFile] = "[node]\ncores = 2\nspin_us = 7\n[[map]]\nname = \"filed\"\n";
  tool.variables = {{"ESPALIER_NODE_CORES", "3"},
                    {"ESPALIER_AT", "unix:/elsewhere"},
                    {"XDG_RUNTIME_DIR", "/run/user/1000"}};
  EXPECT_EQ(tool.run({"serve", "--map", "a", "--map", "b", "--node-socket-mode", "0666"}), kOk)
      << tool.err();
  ASSERT_EQ(served.size(), 1U);
  EXPECT_EQ(served[0].node.cores, 3U);
  EXPECT_EQ(served[0].node.spin_us, 7U);
  EXPECT_EQ(served[0].node.socket, "/run/user/1000/espalier.sock");
  EXPECT_EQ(served[0].node.socket_mode, 0666U);
  EXPECT_EQ(served[0].memory.limit, std::uint64_t{6} << 30);
  ASSERT_EQ(served[0].maps.size(), 2U);
  EXPECT_EQ(served[0].maps[1].name, "b");
}

TEST_F(ServeCommand, LoadsAgainWhatTheFileSaysByThen) {
  std::string& file = tool.files.contents["n.toml"];
  file = "[node]\ncores = 2\nspin_us = 7\n";
  meanwhile = [&](const LoadAgain& load_again) {
    file = "[node]\ncores = 3\nspin_us = 8\n";
    const auto loaded = load_again();
    ASSERT_TRUE(loaded);
    EXPECT_EQ(loaded->config.node.cores, 4U);  // the flag's
    EXPECT_EQ(loaded->config.node.spin_us, 8U);
    file = "[node]\ncores = 65\n";
    const auto wrong = load_again();
    ASSERT_FALSE(wrong);
    EXPECT_EQ(wrong.error().at(0).where, "file n.toml:2");
  };
  EXPECT_EQ(tool.run({"serve", "--config", "n.toml", "--node-cores", "4"}), kOk) << tool.err();
  ASSERT_EQ(served.size(), 1U);
  EXPECT_EQ(served[0].node.spin_us, 7U);
}

TEST_F(ServeCommand, TellsAllThatIsWrongAndServesNothing) {
  tool.files.contents["n.toml"] = "[node]\ncores = 65\n";
  tool.variables = {{"ESPALIER_CORES", "1"}};
  EXPECT_EQ(tool.run({"serve", "--config", "n.toml", "--node-socket-mode", "rw", "--check-config"}),
            kUsage);
  EXPECT_EQ(tool.err(),
            "espalier: error: file n.toml:2: node.cores cannot be 65; give a whole number from 1 "
            "to 64\n"
            "espalier: error: environment ESPALIER_CORES: there is no variable 'ESPALIER_CORES'; "
            "did you mean ESPALIER_NODE_CORES?\n"
            "espalier: error: flag --node-socket-mode: node.socket_mode cannot be 'rw'; give octal "
            "permissions from 0000 to 0777\n");
  EXPECT_EQ(tool.run({"serve", "--config", "n.toml"}), kUsage);
  EXPECT_EQ(tool.run({"serve", "--config", "gone.toml"}), kUsage);
  EXPECT_EQ(tool.run({"serve", "--check-config", "--print-config"}), kUsage);
  EXPECT_EQ(tool.run({"serve", "--node-core", "2"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("Did you mean --node-cores?"));
  EXPECT_TRUE(served.empty());
}

TEST_F(ServeCommand, AFileWithoutEndIsGivenUp) {
  tool.files.contents["large"] = std::string(node::kFileBytesMax + 1, '\n');
  EXPECT_EQ(tool.run({"serve", "--config", "large"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("file large: is longer than "));
  tool.files.contents["large"].pop_back();
  EXPECT_EQ(tool.run({"serve", "--config", "large", "--check-config"}), kOk) << tool.err();
}

TEST_F(ServeCommand, AFifoIsNotWaitedFor) {
  const base::TemporaryFolder folder;
  const std::string path = folder / "fifo";
  ASSERT_EQ(::mkfifo(path.c_str(), 0600), 0);
  OsFiles files;
  const auto info = files.info(path);
  ASSERT_TRUE(info);
  EXPECT_TRUE(info->is_fifo);
  tool.files.fifos.insert("pipe");
  EXPECT_EQ(tool.run({"serve", "--config", "pipe"}), kUsage);
  EXPECT_THAT(tool.err(), HasSubstr("cannot read the file 'pipe': it is a FIFO"));
}

enum FolderUse : int {
  as_it_should,
  is_not_that_user,
  is_not_made,
  is_accepted_too_wide,
  says_other
};

/// Uses the folder of a user's default socket as that user, with a mode for it alone and with a
/// wider one.
FolderUse use_default_folder(uid_t user, const std::string& folder) {
  if (::setuid(user) != 0) return is_not_that_user;
  node::Config config;
  config.node.socket = folder + "/espalier.sock";
  if (!check_socket_folder(config) || !check_socket_folder(config)) return is_not_made;
  const bool widened = ::chmod(folder.c_str(), 0755) == 0;
  const auto checked = check_socket_folder(config);
  if (::rmdir(folder.c_str()) != 0 || !widened) return is_not_made;
  if (checked) return is_accepted_too_wide;
  const bool says_why =
      checked.error().what.ends_with("is no folder of this user's alone (mode 0700)");
  return says_why ? as_it_should : says_other;
}

// Where any user may create a folder of that name first.
TEST_F(ServeCommand, TheFolderOfTheDefaultSocketIsItsUsersAlone) {
  if (::geteuid() != 0) GTEST_SKIP() << "only root can be a user who has no such folder";
  auto user = static_cast<uid_t>(20'000 + ::getpid() % 20'000);
  while (std::filesystem::exists(node::own_folder(user))) ++user;
  const pid_t child = ::fork();
  if (child == 0) ::_exit(use_default_folder(user, node::own_folder(user)));
  EXPECT_EQ(base::wait_for_child(child), as_it_should);
}

TEST_F(ServeCommand, ItsFailuresSayWhatToDo) {
  node::Config config;
  config.node.socket = "/no/such/folder/s";
  const auto folder = check_socket_folder(config);
  ASSERT_FALSE(folder);
  EXPECT_EQ(folder.error().what, "the folder '/no/such/folder' of the socket does not exist");
  EXPECT_THAT(folder.error().hint, HasSubstr("--node-socket"));
  config.node.socket = "s";
  EXPECT_TRUE(check_socket_folder(config));
  for (const Error& error : {Error{Code::already_exists, 0, 0}, Error{Code::out_of_memory, 0, 0},
                             Error{Code::system, 0, EADDRINUSE}, Error{Code::system, 0, EACCES},
                             Error{Code::system, 0, ENOMEM}}) {
    const Failure failure = start_failure(config, error);
    EXPECT_EQ(failure.exit_code, kFailed);
    EXPECT_THAT(failure.hint, HasSubstr("--")) << failure.what;
  }
  EXPECT_THAT(start_failure(config, {Code::system, 0, EMFILE}).what,
              HasSubstr("Too many open files"));
}

}  // namespace
}  // namespace espalier::tools
