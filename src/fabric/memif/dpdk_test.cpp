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
#include "fabric/mixed_traffic.hpp"
#include "fabric/roce/endpoint.hpp"
#include "memory/shared_memory.hpp"

namespace espalier::fabric::memif {
namespace {

constexpr const char* kProgram = "/usr/bin/dpdk-testpmd";

/// A program that ends with this.
class Process {
 public:
  explicit Process(const std::vector<std::string>& words) : number_(fork()) {
    if (number_ != 0) return;
    prctl(PR_SET_PDEATHSIG, SIGKILL);  // it would keep a core busy for ever
    const int nowhere = open("/dev/null", O_RDWR | O_CLOEXEC);
    for (const int stream : {0, 1, 2}) dup2(nowhere, stream);
    std::vector<char*> arguments;
    for (const std::string& word : words) arguments.push_back(const_cast<char*>(word.c_str()));
    arguments.push_back(nullptr);
    execv(arguments[0], arguments.data());
    _exit(127);
  }
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;
  ~Process() {
    kill(number_, SIGKILL);
    waitpid(number_, nullptr, 0);
  }
  [[nodiscard]] bool lives() const { return waitpid(number_, nullptr, WNOHANG) == 0; }

 private:
  pid_t number_;
};

class DpdkLink final : public FabricLink {
 public:
  explicit DpdkLink(std::uint64_t seed)
      : listening_(*MemifPort::open({path("far"), true, 0})),
        between_({kProgram, "--no-huge", "--no-pci", "-m", "128", "--no-telemetry", "--no-shconf",
                  "-l", "0,1",
                  "--vdev=net_memif0,role=server,id=5,socket-abstract=no,socket=" + path("near"),
                  "--vdev=net_memif1,role=client,id=5,socket-abstract=no,bsize=4608,socket=" +
                      path("far"),
                  "--", "--forward-mode=io", "--total-num-mbufs=4096", "--mbuf-size=8192",
                  "--stats-period=3600"}) {
    auto near = MemifPort::open({path("near"), false, 5});
    while (!near && between_.lives()) near = MemifPort::open({path("near"), false, 5});
    if (!near) throw std::runtime_error("dpdk-testpmd ended");
    connecting_ = near->get();
    far_port_ = listening_.get();
    while ((connecting_->links() == 0 || far_port_->links() == 0) && between_.lives()) {
      static_cast<void>(connecting_->receive());
      static_cast<void>(far_port_->receive());
      far_port_->wait(1'000'000);
    }
    near_ = std::make_unique<roce::RoceEndpoint>(std::move(*near), *RegionTable::create(seed),
                                                 NumberSource::of_seed(seed));
    far_ = std::make_unique<roce::RoceEndpoint>(
        std::move(listening_), *RegionTable::create(seed + 1), NumberSource::of_seed(seed + 1));
    EXPECT_TRUE(far_->listen("7"));
  }

  Endpoint& near() override { return *near_; }
  Endpoint& far() override { return *far_; }
  std::string address() override { return to_text(listener_address()) + "/7"; }
  std::string nobody() override { return to_text(listener_address()) + "/8"; }
  void turn() override {
    near_->progress();
    far_->progress();
  }
  OfferedMemory memory(std::uint64_t bytes) override {
    memory_ = *memory::SharedMemory::create("fabric-test", bytes);
    return {memory_.at(0), bytes, memory_.descriptor(), 0};
  }
  [[nodiscard]] const MemifCounters& connecting_end() const { return connecting_->counters(); }
  [[nodiscard]] const MemifCounters& listening_end() const { return far_port_->counters(); }

 private:
  [[nodiscard]] std::string path(const char* name) const { return (folder_ / name).string(); }

  base::TemporaryFolder folder_;
  std::unique_ptr<MemifPort> listening_;
  Process between_;
  memory::SharedMemory memory_;
  MemifPort* connecting_ = nullptr;
  MemifPort* far_port_ = nullptr;
  std::unique_ptr<Endpoint> near_;
  std::unique_ptr<Endpoint> far_;
};

TEST(MemifDpdkSlow, AllVerbsThroughTestpmd) {
  if (access(kProgram, X_OK) != 0) GTEST_SKIP() << kProgram << " is not installed";
  DpdkLink* link = nullptr;
  FabricScene scene({"dpdk",
                     [&](std::uint64_t seed) {
                       auto made = std::make_unique<DpdkLink>(seed);
                       link = made.get();
                       return made;
                     }},
                    base::seed_from_environment(92));
  MixedTraffic(scene).run(60);
  for (const MemifCounters& counters : {link->connecting_end(), link->listening_end()}) {
    EXPECT_EQ(counters.links_up, 1u);
    EXPECT_EQ(counters.links_down, 0u);  // testpmd may refuse one before it has started its ports
    EXPECT_EQ(counters.not_ours + counters.wrong_icrc, 0u);
    EXPECT_GT(counters.received, 100u);
  }
}

}  // namespace
}  // namespace espalier::fabric::memif
