// SPDX-License-Identifier: Apache-2.0
// memif as DPDK understands it: its testpmd stands between two of our ports and passes on frames,
// listening for one of them and connecting to the other.
#include <fcntl.h>
#include <gtest/gtest.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "base/temporary_folder.hpp"
#include "fabric/memif/port.hpp"
#include "fabric/roce/testing/port_link.hpp"
#include "fabric/testing/mixed_traffic.hpp"

namespace espalier::fabric::memif {
namespace {

constexpr const char* kProgram = "/usr/bin/dpdk-testpmd";

/// A program that ends with this.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words) : number_(::fork()) {
    if (number_ != 0) return;
    ::prctl(PR_SET_PDEATHSIG, SIGKILL);  // it would keep a core busy for ever
    const int nowhere = ::open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {0, 1, 2}) ::dup2(nowhere, stream);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    ::execv(arguments[0], arguments.data());
    ::_exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    ::kill(number_, SIGKILL);
    ::waitpid(number_, nullptr, 0);
  }
  [[nodiscard]] bool lives() const { return ::waitpid(number_, nullptr, WNOHANG) == 0; }

 private:
  pid_t number_;
};

/// testpmd, and a port on either side of it.
struct Testpmd {
  Testpmd()
      : far(*MemifPort::open({path("far"), true, 0})),
        program({kProgram, "--no-huge", "--no-pci", "-m", "128", "--no-telemetry", "--no-shconf",
                 "-l", "0,1",
                 "--vdev=net_memif0,role=server,id=5,socket-abstract=no,socket=" + path("near"),
                 "--vdev=net_memif1,role=client,id=5,socket-abstract=no,bsize=4608,socket=" +
                     path("far"),
                 "--", "--forward-mode=io", "--total-num-mbufs=4096", "--mbuf-size=8192",
                 "--stats-period=3600"}) {
    auto port = MemifPort::open({path("near"), false, 5});
    while (!port && program.lives()) port = MemifPort::open({path("near"), false, 5});
    if (!port) throw std::runtime_error("dpdk-testpmd ended");
    near = std::move(*port);
    while ((near->links() == 0 || far->links() == 0) && program.lives()) {
      static_cast<void>(near->receive());
      static_cast<void>(far->receive());
      far->wait(1'000'000);
    }
  }
  [[nodiscard]] std::string path(const char* name) const { return (folder / name).string(); }

  base::TemporaryFolder folder;
  std::unique_ptr<MemifPort> far;
  Process program;
  std::unique_ptr<MemifPort> near;
};

TEST(MemifDpdkSlow, AllVerbsThroughTestpmd) {
  // DPDK is a peer to be tested with, and no part of us; tests/skips.txt lists this.
  if (::access(kProgram, X_OK) != 0) GTEST_SKIP() << kProgram << " is not installed";
  Testpmd between;
  const MemifCounters& near = between.near->counters();
  const MemifCounters& far = between.far->counters();
  FabricScene scene({"dpdk",
                     [&](std::uint64_t seed) {
                       return std::make_unique<roce::PortLink>(std::move(between.near),
                                                               std::move(between.far), seed);
                     }},
                    base::seed_from_environment(92));
  MixedTraffic(scene).run(60);
  for (const MemifCounters& counters : {near, far}) {
    EXPECT_EQ(counters.links_up, 1u);
    EXPECT_EQ(counters.links_down, 0u);  // testpmd may refuse one before it has started its ports
    EXPECT_EQ(counters.not_ours + counters.wrong_icrc, 0u);
    EXPECT_GT(counters.received, 100u);
  }
}

}  // namespace
}  // namespace espalier::fabric::memif
