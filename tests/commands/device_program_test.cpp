// SPDX-License-Identifier: Apache-2.0
// A host and a device as programs: what their clients see when the host is killed, stopped, or
// restarted.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/wait.h>

#include <fstream>
#include <iterator>
#include <memory>
#include <string>
#include <vector>

#include "base/clock.hpp"
#include "base/temporary_folder.hpp"
#include "espalier/map.hpp"
#include "tests/support/node_program.hpp"

namespace espalier::test {
namespace {

using ::testing::HasSubstr;

// Much more than any answer should take, on a machine that does much else.
constexpr std::uint64_t kBoundNs = 30'000'000'000;

class DevicePrograms : public ::testing::Test {
 protected:
  void start_host() {
    host_.reset();
    host_ = start({"--node-socket", "host", "--node-fabric", "shm:fabric", "--node-one-sided", "on",
                   "--memory-limit", "64MiB", "--memory-huge-pages", "no"});
  }
  void start_device() {
    device_ = start({"--place", "device", "--host", "shm:fabric", "--node-socket", "device"});
  }
  void start_both() {
    start_host();
    start_device();
  }
  [[nodiscard]] Store connect(const std::string& name) const {
    auto store = Store::connect("unix:" + (folder_ / name).string());
    EXPECT_TRUE(store) << message(store.error());
    return std::move(*store);
  }
  [[nodiscard]] std::string log() const {
    std::ifstream in(folder_ / "log", std::ios::binary);
    return {std::istreambuf_iterator<char>(in), {}};
  }
  /// Runs a line in which $E is the program. Keeps what it prints.
  int run(const std::string& line) {
    const std::string script = "cd '" + folder_.string() + "' && E='" ESPALIER_PROGRAM "' && { " +
                               line + "\n} > out 2> err";
    const int status = std::system(script.c_str());
    std::ifstream in(folder_ / "out", std::ios::binary);
    out_ = {std::istreambuf_iterator<char>(in), {}};
    std::ifstream of_errors(folder_ / "err", std::ios::binary);
    err_ = {std::istreambuf_iterator<char>(of_errors), {}};
    return WIFEXITED(status) ? WEXITSTATUS(status) : -1;
  }

  /// Repeats the get until there is an answer, through refusals.
  static std::optional<Found> get_when_there(const Map& map, const std::string& key) {
    const base::Stopwatch watch;
    for (;;) {
      const auto found = map.get(key);
      if (found) return *found;
      if (watch.elapsed_ns() > 2 * kBoundNs) {
        ADD_FAILURE() << message(found.error());
        return std::nullopt;
      }
    }
  }

  /// Gets are answered from the host's memory for as long as its last renewal is believed, then
  /// refused.
  static void expect_lost_soon(const Map& map) {
    const base::Stopwatch watch;
    for (;;) {
      const auto found = map.get("key");
      if (!found) {
        EXPECT_EQ(found.error().code, Code::connection_lost);
        return;
      }
      ASSERT_EQ((*found)->value, "value");
      ASSERT_LT(watch.elapsed_ns(), kBoundNs);
    }
  }

  base::TemporaryFolder folder_;
  std::unique_ptr<NodeProgram> host_;
  std::unique_ptr<NodeProgram> device_;
  std::string out_;
  std::string err_;

 private:
  [[nodiscard]] std::unique_ptr<NodeProgram> start(const std::vector<std::string>& more) const {
    std::vector<std::string> words{ESPALIER_PROGRAM, "serve"};
    words.insert(words.end(), more.begin(), more.end());
    auto program = std::make_unique<NodeProgram>(folder_.path(), words);
    EXPECT_EQ(program->next_message(), "READY=1") << log();
    return program;
  }
};

TEST_F(DevicePrograms, CommandsWorkAsAtANode) {
  start_both();
  EXPECT_EQ(run(R"(seq 20000 | sed 's/.*/&\tv&/' | $E load --at unix:device --json -)"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\"items\":20000,"));
  EXPECT_EQ(run("$E get --at unix:device 4711"), 0) << err_;
  EXPECT_EQ(out_, "v4711\n");
  EXPECT_EQ(run("$E scan --at unix:device --keys-only --prefix 1999"), 0) << err_;
  const std::string scanned = out_;
  EXPECT_EQ(run("$E scan --at unix:host --keys-only --prefix 1999"), 0) << err_;
  EXPECT_EQ(out_, scanned);
  EXPECT_EQ(run("$E map create other --at unix:device && $E map list --at unix:host"), 0) << err_;
  EXPECT_THAT(out_, HasSubstr("\nother\n"));
  EXPECT_EQ(run("$E ping --at unix:device --count 3 && $E stats --at unix:device"), 0) << err_;
  EXPECT_EQ(run("$E check --at unix:device"), 0) << err_;
  EXPECT_THAT(log(), HasSubstr("a device before the maps of shm:fabric"));
  device_->send(SIGTERM);
  EXPECT_EQ(device_->next_message(), "STOPPING=1");
  EXPECT_EQ(device_->wait(), 0) << log();
}

TEST_F(DevicePrograms, WithoutAHostThereIsNoDevice) {
  EXPECT_EQ(run("$E serve --place device --host shm:nobody --node-socket d"), 1);
  EXPECT_THAT(err_, HasSubstr("no node listens at shm:nobody"));
  EXPECT_EQ(run("$E serve --place device --node-socket d"), 2);
  EXPECT_THAT(err_, HasSubstr("a device needs one host"));
  NodeProgram host(folder_.path(), {ESPALIER_PROGRAM, "serve", "--node-socket", "host",
                                    "--node-fabric", "shm:fabric", "--memory-limit", "64MiB"});
  ASSERT_EQ(host.next_message(), "READY=1");
  EXPECT_EQ(run("$E serve --place device --host shm:fabric --node-socket d"), 1);
  EXPECT_THAT(err_, HasSubstr("does not offer its memory to be read"));
}

TEST_F(DevicePrograms, AHostThatIsKilledIsSaidToBeGoneAndItsSuccessorIsAnother) {
  start_both();
  Store store = connect("device");
  Map map = *store.open_map("default");
  ASSERT_TRUE(map.put("key", "value"));
  ASSERT_TRUE(*map.get("key"));
  host_->send(SIGKILL);
  host_->wait();
  expect_lost_soon(map);
  EXPECT_EQ(map.put("key", "other").error().code, Code::connection_lost);
  start_host();
  EXPECT_EQ(get_when_there(map, "key"), std::nullopt) << "it was there of the node that is gone";
  ASSERT_TRUE(map.put("key", "new"));
  EXPECT_EQ(get_when_there(map, "key")->value, "new");
}

// Its memory can still be read, but without renewals no answer from it is trusted.
TEST_F(DevicePrograms, AHostThatIsStoppedIsBelievedForAMomentOnly) {
  start_both();
  Store store = connect("device");
  Map map = *store.open_map("default");
  ASSERT_TRUE(map.put("key", "value"));
  ASSERT_TRUE(*map.get("key"));
  host_->stop();
  expect_lost_soon(map);
  // Nor does a command report that there is nothing.
  for (const char* command : {"map list", "map list --json", "list", "stats", "stats --map default",
                              "ping"}) {
    EXPECT_EQ(run("$E " + std::string(command) + " --at unix:device"), 1) << command;
    EXPECT_EQ(out_, "") << command;
    EXPECT_THAT(err_, HasSubstr("espalier: error: cannot ")) << command;
  }
  host_->send(SIGCONT);
  const auto found = get_when_there(map, "key");
  ASSERT_TRUE(found);
  EXPECT_EQ(found->value, "value");
}

}  // namespace
}  // namespace espalier::test
