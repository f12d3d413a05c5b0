// SPDX-License-Identifier: Apache-2.0
#include "tests/support/node_fixture.hpp"

#include <malloc.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <future>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "base/random.hpp"
#include "kinds/map/write/audit.hpp"
#include "shards/sharding.hpp"

namespace espalier::test {

std::size_t resident_bytes() {
  std::ifstream file("/proc/self/statm");
  std::size_t all = 0;
  std::size_t resident = 0;
  file >> all >> resident;
  return resident * static_cast<std::size_t>(::sysconf(_SC_PAGESIZE));
}

std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

NodeFixture::~NodeFixture() {
  if (!config_.clients.secrets.empty()) unsetenv("ESPALIER_SECRET_FILE");
}

void NodeFixture::start() {
  device_.reset();
  controller_.reset();
  switch_.reset();
  node_.reset();
  auto node = node::Node::start(config_, options_);
  ASSERT_TRUE(node) << message(node.error());
  node_ = std::move(*node);
  // The next one listens where this one did.
  if (!node_->fabric_addresses().empty()) config_.node.fabric = node_->fabric_addresses().front();
  if (is_device()) start_device();
  if (is_sharded()) start_others();
  if (way_ == "in_network") start_switch();
  descriptors_ = open_descriptors();
}

void NodeFixture::start_device() {
  node::Config config = node_config(folder_, config_.node.cores);
  config.node.socket = (folder_ / "device").string();
  config.node.place = node::Place::device;
  config.node.host = config_.node.fabric;
  config.node.balance = way_ == "device_balanced" ? 1 : 0;
  auto host = device::host_options(config);
  ASSERT_TRUE(host);
  // A machine that tests may be so busy that nothing moves for seconds.
  host->timeout_ns = 20'000'000'000;
  host->silence_ns = 60'000'000'000;
  node::NodeOptions options;
  options.own_kinds = options_.own_kinds;
  auto device =
      device::Device::start(config, {.host = *host, .node = options, .begun_anew = [] {}});
  ASSERT_TRUE(device) << message(device.error());
  device_ = std::move(*device);
}

void NodeFixture::start_others() {
  others_.clear();
  const std::size_t more = way_ == "sharded_three" ? 2 : 1;
  for (std::size_t i = 1; i <= more; ++i) {
    node::Config config = node_config(folder_, config_.node.cores);
    config.node.socket = socket() + std::to_string(i);
    if (!config_.node.fabric.empty()) config.node.fabric = fabric_of_other(i);
    config.node.one_sided = config_.node.one_sided;
    config.node.datagrams = config_.node.datagrams;
    auto node = node::Node::start(config, options_);
    ASSERT_TRUE(node) << message(node.error());
    others_.push_back(std::move(*node));
    other_configs_.push_back(std::move(config));
  }
}

// The first node's address ends with the number of its service, if there is one.
std::string NodeFixture::fabric_of_other(std::size_t number) const {
  const std::string path = (folder_ / "fabric").string();
  const std::string_view first = config_.node.fabric;
  return std::string(first.substr(0, first.find(path))) + path + std::to_string(number);
}

std::vector<std::string> NodeFixture::shard_addresses() const {
  std::vector<std::string> addresses{address()};
  for (std::size_t i = 1; i <= others_.size(); ++i) {
    addresses.push_back(address() + std::to_string(i));
  }
  return addresses;
}

void NodeFixture::make_sharded(const std::string& name, const MapOptions& options,
                               const std::vector<std::string>& borders) {
  const std::vector<std::string> addresses = shard_addresses();
  ASSERT_EQ(borders.size() + 1, addresses.size());
  std::vector<wire::Shard> shards{{"", addresses.front()}};
  for (std::size_t i = 0; i < borders.size(); ++i) {
    shards.push_back({borders[i], addresses[i + 1]});
  }
  const auto made = client::create_shards(name, options, shards);
  ASSERT_TRUE(made) << message(made.error().error) << made.error().words;
}

void NodeFixture::open_switch() {
  switch_.reset();
  dataplane::MemifSwitch::Options links{(folder_ / "clients").string(),
                                        (folder_ / "fabric").string()};
  for (std::size_t i = 1; i <= others_.size(); ++i) {
    const std::string number = std::to_string(i);
    links.more.push_back(
        {links.clients + number, links.node + number, static_cast<std::uint16_t>(i)});
  }
  auto opened = dataplane::RunningSwitch::open({links, control()});
  ASSERT_TRUE(opened) << message(opened.error());
  switch_ = std::move(*opened);
}

void NodeFixture::open_switches() {
  switch_.reset();
  behind_.reset();
  const std::string middle = (folder_ / "middle").string();
  auto behind = dataplane::RunningSwitch::open(
      {{middle, (folder_ / "fabric").string(), false, true}, control_behind()});
  ASSERT_TRUE(behind) << message(behind.error());
  behind_ = std::move(*behind);
  auto opened = dataplane::RunningSwitch::open(
      {{(folder_ / "clients").string(), middle, true, false}, control()});
  ASSERT_TRUE(opened) << message(opened.error());
  switch_ = std::move(*opened);
}

void NodeFixture::start_switch() {
  open_switch();
  client::IndexController::Options options;
  options.node = *client::parse_node_address(config_.node.fabric);
  options.map = "tested";
  options.controls = {control()};
  controller_ =
      std::make_unique<client::ControllerThread>(std::move(options), std::chrono::milliseconds(2));
}

void NodeFixture::reach_by(const std::string& way) {
  way_ = way;
  if (way.ends_with("datagram")) config_.node.datagrams = "127.0.0.1:0";
  config_.node.one_sided = way.ends_with("_one_sided") || is_device() || way == "in_network";
  if (way.starts_with("shm") || is_device() || way == "sharded_one_sided")
    config_.node.fabric = "shm:" + (folder_ / "fabric").string();
  if (way.starts_with("memif") || way == "in_network") {
    config_.node.fabric = "roce+memif:" + (folder_ / "fabric").string();
  }
  if (way.starts_with("ofi")) config_.node.fabric = "ofi://tcp/127.0.0.1:0";
  if (way.starts_with("roce")) config_.node.fabric = "roce://127.0.0.1:0/1";
  if (way.ends_with("_known")) ask_for_secrets();
}

void NodeFixture::ask_for_secrets() {
  const std::string path = (folder_ / "clients.secrets").string();
  std::ofstream(path) << "client admin 0" << std::string(62, 'a') << "0\n";
  ASSERT_EQ(::chmod(path.c_str(), 0600), 0);
  config_.clients.secrets = path;
  ASSERT_EQ(setenv("ESPALIER_SECRET_FILE", path.c_str(), 1), 0);
}

std::string NodeFixture::address() const {
  const bool by_fabric = way_ == "sharded_one_sided";
  if (way_.starts_with("unix") || way_ == "datagram" || (is_sharded() && !by_fabric)) {
    return "unix:" + socket();
  }
  if (is_device()) return device_address();
  if (way_ == "in_network") return "roce+memif:" + (folder_ / "clients").string();
  return config_.node.fabric + (way_.ends_with("_send") ? "?rings=send" : "");
}

Store NodeFixture::connect() const {
  const Access access = way_ == "in_network"           ? Access::in_network
                        : way_.ends_with("_one_sided") ? Access::one_sided
                        : way_.ends_with("datagram")   ? Access::datagram
                                                       : Access::rpc;
  auto store = Store::connect(address(), {.access = access});
  EXPECT_TRUE(store) << message(store.error());
  return std::move(*store);
}

std::uint64_t NodeFixture::held_snapshots() {
  std::uint64_t held = 0;
  for (const std::string& name : node_->catalog().names(ObjectKind::map)) {
    const auto core = node_->catalog().open<tree::MapCore>(name);
    if (core) held += (*core)->store.reclaimer.waiting(**core, false).snapshots;
  }
  return held;
}

std::uint32_t NodeFixture::in_flight() const {
  std::uint32_t sum = 0;
  for (const auto& worker : node_->workers()) {
    sum += worker->scheduler_counts().in_flight + worker->client_counts().connections;
  }
  return sum;
}

// Workers give a dropped map to the helper, which takes it from the list before it frees it.
void NodeFixture::await_dropped_maps() {
  const std::size_t maps = node_->catalog().list(ObjectKind::map).size();
  while (node_->store().objects.list<tree::MapCore>().size() != maps) std::this_thread::yield();
  std::promise<void> freed;
  node_->services().helpers.run([&freed] { freed.set_value(); });
  freed.get_future().wait();
}

void NodeFixture::expect_all_came_back() {
  // A test that fails here hangs, and the watchdog of all tests ends it.
  while (node_->connections() != 0 || in_flight() != 0) std::this_thread::yield();
  while (open_descriptors() != descriptors_) std::this_thread::yield();
  while (node_->services().budget.used() != 0) std::this_thread::yield();
  await_dropped_maps();
  EXPECT_EQ(held_snapshots(), 0u);
  EXPECT_EQ(tree::audit_store(node_->store()), std::vector<std::string>{});
}

Witness::Witness(const std::string& socket)
    : thread_([this, socket] {
        work(socket);
        ended_ = true;
      }) {}

Witness::~Witness() {
  stopping_ = true;
  thread_.join();
  EXPECT_FALSE(failed_);
}

void Witness::wait_for(std::uint64_t rounds) const {
  const std::uint64_t until = this->rounds() + rounds;
  while (this->rounds() < until && !ended_) std::this_thread::yield();
}

void Witness::work(const std::string& socket) {
  // So long that no other client writes such keys by chance, and distinct for each witness.
  static std::atomic<int> number{0};
  const std::string name = "witness " + std::to_string(++number) + ' ';
  failed_ = true;
  auto store = Store::connect("unix:" + socket);
  ASSERT_TRUE(store) << message(store.error());
  auto map = store->open_map("default");
  ASSERT_TRUE(map) << message(map.error());
  base::Random random(base::seed_from_environment(1));
  std::map<std::string, std::string> model;
  failed_ = false;
  for (std::uint64_t round = 0; !stopping_; ++round, ++rounds_) {
    const bool failed_before = testing::Test::HasFailure();
    const std::string key = name + std::to_string(random.below(50));
    const std::string value(random.below(random.below(8) == 0 ? 5000 : 100), 'a');
    const auto put = map->put(key, value);
    EXPECT_TRUE(put) << message(put.error());
    model[key] = value;
    const auto& [asked, expected] =
        *std::next(model.begin(), static_cast<std::ptrdiff_t>(random.below(model.size())));
    const auto got = map->get(asked);
    EXPECT_TRUE(got && *got && (*got)->value == expected) << asked;
    if (round % 16 == 0) {
      const auto count = map->count(name, name + '~');
      EXPECT_TRUE(count && *count == model.size());
    }
    if (!failed_before && testing::Test::HasFailure()) {
      failed_ = true;
      return;
    }
  }
}

}  // namespace espalier::test
