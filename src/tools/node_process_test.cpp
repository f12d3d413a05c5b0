// SPDX-License-Identifier: Apache-2.0
// A node in this process as run_node() runs it, with a clock of the test's own: what it says each
// hour, and what its audit log has. The clock is read by the thread that waits for signals, and is
// what sends them, so nothing is waited for.
#include "tools/node_process.hpp"

#include <arpa/inet.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <ifaddrs.h>
#include <net/if.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>
#include <expected>
#include <fstream>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <sstream>
#include <string>
#include <vector>

#include "base/temporary_folder.hpp"
#include "espalier/map.hpp"
#include "node/config_settings.hpp"
#include "tools/hourly.hpp"
#include "tools/testing/memory_files.hpp"

namespace espalier::tools {
namespace {

using ::testing::HasSubstr;
using ::testing::Not;

std::size_t occurrences(const std::string& text, const std::string& part) {
  std::size_t found = 0;
  for (std::size_t at = text.find(part); at != std::string::npos; at = text.find(part, at + 1)) {
    ++found;
  }
  return found;
}

class NodeProcess : public testing::Test {
 protected:
  NodeProcess() {
    loaded_.config.node.socket = (folder_ / "s").string();
    loaded_.config.memory.limit = std::uint64_t{64} << 20;
    loaded_.config.memory.huge_pages = false;
    loaded_.origins.assign(node::settings().size(), "test");
    loaded_.map_origins.assign(1, std::vector<std::string>(node::map_settings().size(), "test"));
  }
  /// Runs the node; an hour goes by with each reading of the clock, and what `at` has for that
  /// reading is done then. The last one ends the node.
  std::string run(std::map<int, std::function<void()>> at) {
    at.rbegin()->second = [] { ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0); };
    int readings = 0;
    std::uint64_t now_ns = 0;
    MemorySource input("");
    MemoryFiles files;
    std::ostringstream out;
    std::ostringstream err;
    Environment environment{.input = input, .out = out, .err = err, .files = files, .now_ns = [&] {
                              if (const auto act = at.find(++readings); act != at.end()) {
                                act->second();
                              }
                              return now_ns += Hourly::kHourNs;
                            }};
    const auto ended = run_node(environment, loaded_, [this] { return again_.value_or(loaded_); });
    EXPECT_TRUE(ended) << ended.error().what;
    return err.str();
  }
  std::string write(const std::string& name, const std::string& text, mode_t mode = 0600) {
    const std::string path = (folder_ / name).string();
    std::ofstream(path) << text;
    EXPECT_EQ(::chmod(path.c_str(), mode), 0);
    return path;
  }

  const base::TemporaryFolder folder_;
  node::Loaded loaded_;
  /// What it finds when it loads its configuration again; nothing: the same.
  std::optional<std::expected<node::Loaded, std::vector<node::Problem>>> again_;
};

/// Where others may reach this machine; empty: nowhere, it has its loopback interface alone.
std::string address_in_a_network() {
  ifaddrs* all = nullptr;
  if (::getifaddrs(&all) != 0) return {};
  const std::unique_ptr<ifaddrs, decltype(&freeifaddrs)> owned(all, freeifaddrs);
  for (const ifaddrs* each = all; each != nullptr; each = each->ifa_next) {
    if (each->ifa_addr == nullptr || each->ifa_addr->sa_family != AF_INET) continue;
    if ((each->ifa_flags & IFF_UP) == 0 || (each->ifa_flags & IFF_LOOPBACK) != 0) continue;
    sockaddr_in address{};
    std::memcpy(&address, each->ifa_addr, sizeof address);
    char text[INET_ADDRSTRLEN] = {};
    ::inet_ntop(AF_INET, &address.sin_addr, text, sizeof text);
    return "roce://" + std::string(text) + ":0/1";
  }
  return {};
}

// The first reading begins the hours; then each time that none is left there are two.
TEST_F(NodeProcess, WarnsEachHourWhileANetworkIsOpen) {
  loaded_.config.clients.open = true;
  loaded_.config.node.fabric = address_in_a_network();
  // A machine without a network has loopback alone; tests/skips.txt lists this.
  if (loaded_.config.node.fabric.empty()) GTEST_SKIP() << "no address but those of loopback";
  const std::string warning =
      "clients.open is set: whoever reaches " + loaded_.config.node.fabric + " may do";
  EXPECT_EQ(occurrences(run({{10, {}}}), warning), 5u);
}

TEST_F(NodeProcess, DoesNotWarnOfWhatIsNotOpen) {
  loaded_.config.clients.open = true;  // of a loopback address it says nothing
  loaded_.config.node.fabric = "roce://127.0.0.1:0/1";
  EXPECT_THAT(run({{1, {}}}), Not(HasSubstr("clients.open is set")));
  if (const std::string reached = address_in_a_network(); !reached.empty()) {
    loaded_.config.node.fabric = reached;
  }
  loaded_.config.clients.secrets = write("secrets", "");
  EXPECT_THAT(run({{1, {}}}), Not(HasSubstr("clients.open is set")));
}

TEST(Hourly, IsDueOnceInEachHour) {
  constexpr std::uint64_t kHour = Hourly::kHourNs;
  Hourly hourly(5);
  EXPECT_EQ(hourly.left_ns(5), kHour);
  EXPECT_FALSE(hourly.take(4 + kHour));
  EXPECT_EQ(hourly.left_ns(4 + kHour), 1u);
  EXPECT_TRUE(hourly.take(5 + kHour));
  EXPECT_FALSE(hourly.take(5 + kHour));
  EXPECT_TRUE(hourly.take(5 + 9 * kHour)) << "hours that nobody asked in are one";
  EXPECT_FALSE(hourly.take(4 + 10 * kHour));
}

TEST_F(NodeProcess, LogsWhatAdministratorsDoAndWhatReloadsCameTo) {
  const std::string me =
      "process " + std::to_string(::getpid()) + " of user " + std::to_string(::geteuid());
  // Of letters, for a number of a process may have any digits.
  const std::string line = "a read 0" + std::string(62, 'c') + "0\n";
  loaded_.config.clients.secrets = write("secrets", line);
  const auto work = [this] {
    auto store = Store::connect("unix:" + loaded_.config.node.socket);
    ASSERT_TRUE(store) << message(store.error());
    EXPECT_TRUE(store->create_map("a \"b\""));
    EXPECT_EQ(store->create_map("a \"b\"").error().code, Code::already_exists);
    EXPECT_TRUE(store->drop_map("a \"b\""));
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGHUP), 0);
  };
  // It does not warn, so the clock is read once: SIGHUP comes first, for its number is lower.
  const std::string good = run({{1,
                                 [&] {
                                   work();
                                   ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);
                                 }},
                                {2, {}}});
  EXPECT_THAT(good, HasSubstr("info: audit act=map_create outcome=done name=\"user " +
                              std::to_string(::geteuid()) + "\" role=admin from=\"unix " + me +
                              "\" object=\"a \\\"b\\\"\"\n"));
  EXPECT_THAT(good, HasSubstr("audit act=map_create outcome=already_exists"));
  EXPECT_THAT(good, HasSubstr("audit act=object_drop outcome=done"));
  EXPECT_THAT(good, HasSubstr("audit act=reload_configuration outcome=done name=SIGHUP role=admin "
                              "from=\"" +
                              me + "\""));
  EXPECT_THAT(good, HasSubstr("audit act=reload_secrets outcome=done name=SIGHUP role=admin"));
  const std::string bad = run({{1,
                                [&] {
                                  write("secrets", line + "damaged\n");
                                  work();
                                  ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);
                                }},
                               {2, {}}});
  EXPECT_THAT(bad, HasSubstr("audit act=reload_secrets outcome=invalid_argument"));
  EXPECT_THAT(bad, Not(HasSubstr("cccc"))) << "of the secret";
}

// An operator who removes a name from the secrets relies on its sessions ending.
TEST_F(NodeProcess, ReadsSecretsAgainWhereTheConfigurationIsWrong) {
  const std::string line = "a read 0" + std::string(62, '1') + "0\n";
  loaded_.config.clients.secrets = write("secrets", line);
  again_ = std::unexpected(std::vector<node::Problem>(1));
  const auto end = [] {
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGHUP), 0);
    ASSERT_EQ(::pthread_kill(::pthread_self(), SIGTERM), 0);
  };
  const std::string good = run({{1, end}, {2, {}}});
  EXPECT_THAT(good, HasSubstr("audit act=reload_configuration outcome=invalid_argument"));
  EXPECT_THAT(good, HasSubstr("audit act=reload_secrets outcome=done name=SIGHUP role=admin"));
  EXPECT_THAT(good, HasSubstr("the configuration is wrong"));
  const std::string bad = run({{1,
                                [&] {
                                  write("secrets", line + "damaged\n");
                                  end();
                                }},
                               {2, {}}});
  EXPECT_THAT(bad, HasSubstr("audit act=reload_configuration outcome=invalid_argument"));
  EXPECT_THAT(bad, HasSubstr("audit act=reload_secrets outcome=invalid_argument"));
  EXPECT_THAT(bad, HasSubstr("line 2"));
  EXPECT_THAT(bad, HasSubstr("clients.secrets stays as it was"));
}

}  // namespace
}  // namespace espalier::tools
