// SPDX-License-Identifier: Apache-2.0
// Access control through a device: it comes to its host with a secret of its own, checks its
// clients as a node does, and has the host check on whose behalf it asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/stat.h>

#include <condition_variable>
#include <fstream>
#include <map>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "client/impl.hpp"
#include "client/known_secret.hpp"
#include "client/node_address.hpp"
#include "client/remote_pipeline.hpp"
#include "client/thread_rings.hpp"
#include "espalier/map.hpp"
#include "espalier/sequencer.hpp"
#include "tests/support/node_fixture.hpp"

namespace espalier::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Error refused(std::uint32_t detail) { return {Code::not_permitted, 0, detail}; }

template <class T>
Error error_of(const Result<T>& result) {
  return result ? Error{} : result.error();
}
std::string value_of(const Map& map) {
  std::string value;
  const auto got = map.get("k", value);
  return got ? value : message(got.error());
}

class DeviceAccess : public NodeFixture {
 protected:
  void SetUp() override {
    write("reader", line("reader", "read", 'a'));
    write("admin", line("admin", "admin", 'c'));
    write("shop", line("shop", "admin", 'd', "orders/*"));
    write("device", line("device", "admin", 'e'));
    write("weak", line("weak", "read", 'f'));
    write("host.secrets", line("device", "admin", 'e') + line("weak", "read", 'f'));
    write("device.secrets", line("reader", "read", 'a') + line("admin", "admin", 'c') +
                                line("shop", "admin", 'd', "orders/*"));
    config_.clients.secrets = path("host.secrets");
    config_.node.one_sided = true;
    config_.node.fabric = "roce://127.0.0.1:0/1";
    options_.audit = [this](const offload::AuditRecord& record) {
      const std::lock_guard lock(audit_mutex_);
      audit_.push_back(record);
      audited_.notify_all();
    };
    start();
  }
  void TearDown() override {
    device_.reset();
    node_.reset();  // which still has records for us
  }

  [[nodiscard]] std::string path(const std::string& name) const {
    return (folder_ / name).string();
  }
  void write(const std::string& name, const std::string& text) const {
    std::ofstream(path(name)) << text;
    ASSERT_EQ(chmod(path(name).c_str(), 0600), 0);
  }
  static std::string line(const std::string& name, const std::string& role, char digit,
                          const std::string& names = "") {
    return name + " " + role + " 0" + std::string(62, digit) + "0" +
           (names.empty() ? "" : " " + names) + "\n";
  }

  /// Starts a device that comes to the node by this file.
  Result<void> start_device_as(const std::string& secret) {
    node::Config config = node_config(folder_);
    config.node.socket = path("device.sock");
    config.node.place = node::Place::device;
    config.node.host = node_->fabric_addresses().front();
    config.node.secret_file = path(secret);
    config.node.fabric = "roce://127.0.0.1:0/1";
    config.clients.secrets = path("device.secrets");
    auto host = device::host_options(config);
    if (!host) return std::unexpected(host.error());
    // A machine that tests may be so busy that nothing moves for seconds.
    host->timeout_ns = 20'000'000'000;
    host->silence_ns = 60'000'000'000;
    auto device = device::Device::start(config, {.host = *host, .node = {}, .begun_anew = [] {}});
    if (!device) return std::unexpected(device.error());
    device_ = std::move(*device);
    device_fabric_ =
        device_->with_node([](const node::Node* node) { return node->fabric_addresses().front(); });
    return {};
  }
  /// A store by way of the device, as this file says.
  [[nodiscard]] Store come_as(const std::string& name) const {
    auto secret = ClientSecret::read_file(path(name));
    EXPECT_TRUE(secret) << message(secret.error());
    auto store = Store::connect(device_fabric_, {.secret = *secret});
    if (!store) throw std::runtime_error(message(store.error()));
    return std::move(*store);
  }
  /// What a get by a map's number comes to, by whoever has this file.
  [[nodiscard]] Error get_by_number(const std::string& name, std::uint32_t map) const {
    const auto secret = ClientSecret::read_file(path(name));
    const auto address = client::parse_node_address(device_fabric_);
    auto connection = client::connect_to(address.value(), client::KnownSecret::of(secret.value()));
    if (!connection) return connection.error();
    const auto rings = client::ThreadRings::open(std::move(*connection));
    if (!rings) return rings.error();
    client::RemoteRequests requests(**rings, 1);
    client::Outgoing get;
    get.offload = wire::OffloadId::get;
    get.map = map;
    get.key = "k";
    return error_of(requests.call(get));
  }
  static std::uint32_t number_of(const Store& store, const std::string& name) {
    const auto maps = client::StoreImpl::of(store).objects(ObjectKind::map);
    for (const client::ObjectInfo& map : maps.value()) {
      if (map.name == name) return map.id;
    }
    return 0;
  }
  /// Waits for a record of the host about this name.
  offload::AuditRecord audited(const std::string& act, const std::string& name, Code outcome) {
    std::unique_lock lock(audit_mutex_);
    std::size_t seen = 0;
    for (;;) {
      for (; seen < audit_.size(); ++seen) {
        const offload::AuditRecord& record = audit_[seen];
        if (record.act == act && record.name == name && record.outcome.code == outcome) {
          return record;
        }
      }
      audited_.wait(lock);
    }
  }

  std::string device_fabric_;
  std::mutex audit_mutex_;  // guards the next two
  std::condition_variable audited_;
  std::vector<offload::AuditRecord> audit_;
};

TEST_F(DeviceAccess, ItProvesItselfToItsHost) {
  EXPECT_EQ(error_of(start_device_as("admin")), refused(5)) << "whom the host does not know";
  EXPECT_EQ(error_of(start_device_as("not there")).code, Code::system);
  EXPECT_TRUE(start_device_as("device"));
}

TEST_F(DeviceAccess, ItChecksItsClientsByTheSameRules) {
  ASSERT_TRUE(start_device_as("device"));
  EXPECT_EQ(error_of(Store::connect(device_fabric_)), refused(4));
  EXPECT_EQ(
      error_of(Store::connect(device_fabric_, {.secret = *ClientSecret::read_file(path("weak"))})),
      refused(5))
      << "a client of the host is none of the device";
  Store admin = come_as("admin");
  auto made = admin.create_map("m");
  ASSERT_TRUE(made) << message(made.error());
  ASSERT_TRUE(made->put("k", "v"));
  Store reader = come_as("reader");
  auto read = reader.open_map("m");
  ASSERT_TRUE(read);
  EXPECT_EQ(value_of(*read), "v");
  EXPECT_EQ(error_of(read->put("k", "w")), refused(2));
  EXPECT_EQ(error_of(reader.drop_map("m")), refused(3));
  EXPECT_EQ(value_of(*read), "v");
}

TEST_F(DeviceAccess, ARoleForAPrefixIsGoodForObjectsOfSuchNames) {
  ASSERT_TRUE(start_device_as("device"));
  Store admin = come_as("admin");
  auto people = admin.create_map("people");
  ASSERT_TRUE(people);
  ASSERT_TRUE(people->put("k", "theirs"));
  Store shop = come_as("shop");
  EXPECT_EQ(error_of(shop.open_map("people")), refused(0));
  EXPECT_EQ(error_of(shop.create_map("other")), refused(0));
  auto orders = shop.create_map("orders/new");
  ASSERT_TRUE(orders) << message(orders.error());
  ASSERT_TRUE(orders->put("k", "v"));
  EXPECT_EQ(value_of(*orders), "v");
  const auto count = orders->count("", "");
  EXPECT_EQ(count.value_or(0), 1u);
  auto snapshot = orders->snapshot();
  ASSERT_TRUE(snapshot) << message(snapshot.error());
  ASSERT_TRUE(orders->put("k", "w"));
  const auto held = snapshot->get("k");
  ASSERT_TRUE(held && *held);
  EXPECT_EQ((*held)->value, "v");
  EXPECT_THAT(shop.map_names(), ElementsAre("orders/new"));
  EXPECT_EQ(error_of(shop.create_sequencer("numbers")), refused(0));
  EXPECT_TRUE(shop.create_sequencer("orders/numbers"));
  // By the number of a map that it was never given, which anybody can guess.
  EXPECT_EQ(get_by_number("shop", number_of(admin, "people")), refused(0));
  EXPECT_EQ(get_by_number("shop", number_of(admin, "orders/new")), Error{});
  EXPECT_EQ(get_by_number("shop", 9999).code, Code::not_found);
}

TEST_F(DeviceAccess, TheHostKnowsOnWhoseBehalfADeviceAsks) {
  ASSERT_TRUE(start_device_as("device"));
  Store shop = come_as("shop");
  ASSERT_TRUE(shop.create_map("orders/new"));
  const auto made = audited("map_create", "shop", Code::invalid);
  EXPECT_EQ(made.via, "device");
  EXPECT_EQ(made.role, offload::Right::admin);
  EXPECT_EQ(made.object, "orders/new");
  EXPECT_THAT(made.address, HasSubstr("roce 127.0.0.1:"));
}

// What a device may not do itself it does for nobody.
TEST_F(DeviceAccess, ADeviceThatIsNoAdministratorSpeaksForNobody) {
  ASSERT_TRUE(start_device_as("weak"));
  Store admin = come_as("admin");
  EXPECT_EQ(error_of(admin.create_map("m")), refused(3));
  EXPECT_EQ(error_of(admin.open_map("default")), refused(3));
  EXPECT_EQ(audited("map_create", "weak", Code::not_permitted).outcome.detail, 3u);
}

}  // namespace
}  // namespace espalier::test
