// SPDX-License-Identifier: Apache-2.0
// RoCEv2 between two network namespaces: packets that leave one network stack and enter another,
// over a cable that may lose, repeat, reorder and damage them; and what tshark sees on the way.
//
// Needs root or user namespaces, veth, and `ip`; where a machine has them not, the tests are
// skipped and say what was missing.
#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <linux/if_ether.h>
#include <net/if.h>
#include <netpacket/packet.h>
#include <sys/socket.h>

#include <cstdio>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>
#include <vector>

#include "base/bytes.hpp"
#include "fabric/roce/frame.hpp"
#include "fabric/roce/icrc.hpp"
#include "fabric/roce/losing_port.hpp"
#include "fabric/roce/network_namespaces.hpp"
#include "fabric/roce/testing/port_link.hpp"
#include "fabric/roce/udp_port.hpp"
#include "fabric/testing/mixed_traffic.hpp"

namespace espalier::fabric::roce {
namespace {

constexpr std::uint16_t kUdpPort = wire::roce::kUdpPort;

constexpr auto namespace_address = &NetworkNamespaces::address_of;

class RoceNamespacesSlow : public ::testing::Test {
 protected:
  void SetUp() override {
    std::string why;
    network = NetworkNamespaces::open(why);
    // Containers often may make no namespaces; tests/skips.txt lists all of these.
    if (!network) GTEST_SKIP() << why;
  }

  /// All verbs over one version of IP. Returns what both ends counted together.
  EndpointCounters talk(bool is_v6, std::size_t bursts, double loss = 0) {
    PortLink* link = nullptr;
    FabricScene scene({"namespaces",
                       [&](std::uint64_t seed) {
                         auto made = std::make_unique<PortLink>(
                             open(0, is_v6, loss, seed), open(1, is_v6, loss, seed + 4), seed);
                         link = made.get();
                         return made;
                       }},
                      base::seed_from_environment(93));
    MixedTraffic(scene).run(bursts);
    EndpointCounters counted = link->near().counters();
    counted.packets += link->far().counters().packets;
    counted.malformed += link->far().counters().malformed;
    counted.go_back_n_events += link->far().counters().go_back_n_events;
    return counted;
  }

  std::unique_ptr<PacketPort> open(int side, bool is_v6, double loss, std::uint64_t seed) const {
    auto port =
        network->at(side, [&] { return UdpPort::open({namespace_address(side, is_v6), true}); });
    EXPECT_TRUE(port) << message(port.error());
    return std::make_unique<LosingPort>(std::move(*port), loss, seed);
  }

  std::unique_ptr<NetworkNamespaces> network;
};

TEST_F(RoceNamespacesSlow, AllVerbsBetweenTwoNetworkStacks) {
  for (const bool is_v6 : {false, true}) {
    const EndpointCounters counted = talk(is_v6, 300);
    EXPECT_GT(counted.packets, 3000u);
    EXPECT_EQ(counted.malformed, 0u);
  }
}

TEST_F(RoceNamespacesSlow, AllVerbsThoughPacketsGetLost) {
  for (const bool is_v6 : {false, true}) {
    const EndpointCounters counted = talk(is_v6, 60, 0.03);
    EXPECT_EQ(counted.malformed, 0u);
    EXPECT_GT(counted.go_back_n_events, 0u);
  }
}

TEST_F(RoceNamespacesSlow, AllVerbsOverACableThatIsBad) {
  for (const char* const how : {"loss 3%", "duplicate 5%", "delay 200us 150us", "corrupt 2%",
                                "loss 1% duplicate 2% corrupt 1% delay 100us 90us reorder 20%"}) {
    SCOPED_TRACE(how);
    bool bad = true;
    for (const int side : {0, 1}) {
      bad = bad && network->run(side, "tc qdisc replace dev veth" + std::to_string(side) +
                                          " root netem " + how);
    }
    // Bad weather is the kernel's netem, which some are built without.
    if (!bad) GTEST_SKIP() << "no netem: " << network->said();
    for (const bool is_v6 : {false, true}) {
      const EndpointCounters counted = talk(is_v6, 60);
      EXPECT_EQ(counted.malformed, 0u);
      if (std::string(how).starts_with("loss")) {
        EXPECT_GT(counted.go_back_n_events, 0u);
      }
    }
  }
}

// Side 1's interface takes no packet above 1000 bytes and sends none. Those that come to it are
// dropped without a word, those that leave are refused by the kernel; short ones pass both ways.
TEST_F(RoceNamespacesSlow, PacketsTooLongForAnInterfaceEndWhatSendsThem) {
  ASSERT_TRUE(network->run(1, "ip link set veth1 mtu 1000")) << network->said();
  for (const int side : {0, 1}) {
    // Each packet alone: what the kernel is to cut later is longer than any MTU and passes.
    const auto one_by_one = [&](int at) {
      const auto open = [&] { return UdpPort::open({namespace_address(at, false), false}); };
      return std::move(*network->at(at, open));
    };
    PortLink link(one_by_one(side), one_by_one(1 - side), 1);
    CompletionQueue near_queue(link.near(), 16);
    CompletionQueue far_queue(link.far(), 16);
    const OfferedMemory memory = link.memory(1 << 16);
    const auto region = *link.far().regions().offer(memory, RemoteRights::write);
    QueuePairOptions options;
    options.mtu_bytes = 1024;
    options.sends = &near_queue;
    const auto near = *link.near().connect(link.address(), options, {});
    options.sends = &far_queue;
    std::unique_ptr<QueuePair> far;
    while (near->state() == QueuePair::State::connecting) {
      link.turn();
      if (const auto asked = link.far().next_request()) {
        far = *link.far().accept(*asked, options, {});
      }
    }
    ASSERT_EQ(near->state(), QueuePair::State::connected);
    const std::vector<std::byte> bytes(3000);
    const auto& remote = region.remote();
    const std::array requests{
        WorkRequest::write(1, bytes, remote.key, remote.at(0)),
        WorkRequest::write(2, std::span(bytes).first(8), remote.key, remote.at(0))};
    ASSERT_EQ(near->post(requests).taken, 2u);
    while (near->state() == QueuePair::State::connected) link.turn();
    EXPECT_EQ(near->ended_by(), Status::retry_exceeded);
    EXPECT_EQ(near->undelivered_bytes(), 20u + 8 + 12 + 16 + 1024 + 4);
    EXPECT_GT(link.near().counters().sequence_naks, 0u);
    EXPECT_LT(link.near().counters().sequence_naks, 100u);
    while (far->state() == QueuePair::State::connected) link.turn();
    EXPECT_EQ(far->undelivered_bytes(), near->undelivered_bytes());
  }
}

/// All frames that an interface sends and receives, as the kernel shows them to captures.
class Capture {
 public:
  explicit Capture(const NetworkNamespaces& network) {
    socket_ = network.at(1, [] {
      memory::Descriptor made(
          ::socket(AF_PACKET, SOCK_RAW | SOCK_CLOEXEC | SOCK_NONBLOCK, htons(ETH_P_ALL)));
      sockaddr_ll at{};
      at.sll_family = AF_PACKET;
      at.sll_protocol = htons(ETH_P_ALL);
      at.sll_ifindex = static_cast<int>(::if_nametoindex("veth1"));
      constexpr int kRoom = 64 << 20;
      ::setsockopt(made.number(), SOL_SOCKET, SO_RCVBUFFORCE, &kRoom, sizeof kRoom);
      if (::bind(made.number(), reinterpret_cast<const sockaddr*>(&at), sizeof at) != 0)
        made.close();
      return made;
    });
  }
  [[nodiscard]] bool works() const { return static_cast<bool>(socket_); }
  [[nodiscard]] std::vector<std::vector<std::byte>> take() const {
    std::vector<std::vector<std::byte>> frames;
    std::vector<std::byte> room(1 << 17);
    for (;;) {
      const ssize_t bytes = ::recv(socket_.number(), room.data(), room.size(), 0);
      if (bytes <= 0) return frames;
      frames.emplace_back(room.begin(), room.begin() + bytes);
    }
  }

 private:
  memory::Descriptor socket_;
};

/// What the kernel leaves to the card, which is not there: UDP's checksum.
void do_as_cards_do(std::vector<std::byte>& frame) {
  if (frame.size() < kFrameHeaderBytesMax) return;
  const auto type = base::load_be<std::uint16_t>(frame.data() + 12);
  const bool udp = (type == ETH_P_IP && frame[23] == std::byte{IPPROTO_UDP}) ||
                   (type == ETH_P_IPV6 && frame[20] == std::byte{IPPROTO_UDP});
  if (udp) set_udp_checksum(frame);
}

void write_capture(const std::filesystem::path& path,
                   const std::vector<std::vector<std::byte>>& frames) {
  std::ofstream file(path, std::ios::binary);
  const auto words = [&file](std::initializer_list<std::uint32_t> all) {
    for (const std::uint32_t word : all) {
      file.write(reinterpret_cast<const char*>(&word), sizeof word);
    }
  };
  words({0xA1B2C3D4, 0x0004'0002, 0, 0, 1 << 18, 1 /* Ethernet */});
  for (const auto& frame : frames) {
    const auto bytes = static_cast<std::uint32_t>(frame.size());
    words({1, 0, bytes, bytes});
    file.write(reinterpret_cast<const char*>(frame.data()), bytes);
  }
}

// What was on the cable: every frame parsed with its ICRC as it stands there, IPv4's id included,
// and read by tshark as a reliable connection without anything malformed.
TEST_F(RoceNamespacesSlow, OthersReadWhatIsOnTheCable) {
  // Each packet alone, as on a network: else the kernel hands over what it would cut later.
  for (const int side : {0, 1}) {
    const std::string name = "veth" + std::to_string(side);
    ASSERT_TRUE(network->run(side, "ip link set " + name + " gso_max_segs 1 gso_max_size 2000"))
        << network->said();
  }
  const Capture capture(*network);
  // Captures take a right of their own.
  if (!capture.works()) GTEST_SKIP() << "no captures: " << std::strerror(errno);
  for (const bool is_v6 : {false, true}) talk(is_v6, 100);
  std::vector<std::vector<std::byte>> ours;
  std::size_t with_id = 0;
  for (auto& bytes : capture.take()) {
    do_as_cards_do(bytes);
    const auto frame = parse_frame(bytes);
    if (!frame || frame->flow.destination_port != kUdpPort) continue;
    EXPECT_TRUE(Icrc(frame->flow).matches(frame->ib, frame->ip_id));
    with_id += frame->ip_id != 0 ? 1 : 0;
    ours.push_back(std::move(bytes));
  }
  EXPECT_GT(ours.size(), 100u);  // without rights a capture has little room
  EXPECT_GT(with_id, 0u);

  const base::TemporaryFolder folder;
  write_capture(folder / "cable.pcap", ours);
  std::string command = "HOME=" + folder.string() + " tshark -n -r " +
                        (folder / "cable.pcap").string() +
                        " -T fields -E occurrence=f -e _ws.malformed -e infiniband.bth.opcode"
                        " -e ip.checksum.status -o ip.check_checksum:TRUE";
  // They guess at what payloads are.
  for (const char* const guesser : {"drbd", "fcoib", "infiniband.eoib", "infiniband_sdp", "iser",
                                    "lnet", "nvme-rdma", "rpcordma", "smb_direct", "smc"}) {
    command += std::string(" --disable-protocol ") + guesser;
  }
  command += " 2>/dev/null";
  ASSERT_TRUE(network->run(0, command))
      << network->said() << "\nscripts/install-packages.sh --tests installs what this test needs";
  std::istringstream lines(network->said());
  std::size_t read = 0;
  for (std::string line; std::getline(lines, line); ++read) {
    EXPECT_FALSE(line.starts_with("Malformed")) << line;
    const std::size_t tab = line.find('\t');
    ASSERT_NE(tab, std::string::npos) << line;
    // It takes payloads for frames by their first bytes, and calls those malformed.
    for (const char* const layer : {"InfiniBand", "INFINIBAND", "UDP", "RoCE"}) {
      EXPECT_EQ(line.substr(0, tab).find(layer), std::string::npos) << line;
    }
    EXPECT_NE(line.substr(tab + 1, line.rfind('\t') - tab - 1), "") << "no BTH: " << line;
    EXPECT_NE(line.substr(line.rfind('\t') + 1), "0") << "wrong IP checksum: " << line;
  }
  EXPECT_EQ(read, ours.size());
}

}  // namespace
}  // namespace espalier::fabric::roce
