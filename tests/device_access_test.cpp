// SPDX-License-Identifier: Apache-2.0
// Access control through a device: the device authenticates to its host with its own secret, checks
// its clients as a node does, and has the host check the principal on whose behalf it asks.
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <stdexcept>
#include <string>
#include <utility>
#include <vector>

#include "catalog/testing/some_objects.hpp"
#include "channel/objects.hpp"
#include "channel/rings/remote_pipeline.hpp"
#include "channel/rings/thread_rings.hpp"
#include "client/store_impl.hpp"
#include "espalier/map.hpp"
#include "espalier/sequencer.hpp"
#include "tests/support/role_fixture.hpp"

namespace espalier::test {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Error role_refusal(std::uint32_t detail) { return {Code::not_permitted, 0, detail}; }

template <class T>
Error error_of(const Result<T>& result) {
  return result ? Error{} : result.error();
}
std::string value_or_message(const Map& map) {
  std::string value;
  const auto got = map.get("k", value);
  return got ? value : message(got.error());
}

class DeviceAccess : public RoleFixture {
 protected:
  void SetUp() override {
    const std::string device = line("device", "admin", '1');
    const std::string weak = line("weak", "read", '2');
    write("device", device);
    write("weak", weak);
    write("host.secrets", device + weak);
    write("device.secrets", all_lines());
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
  /// A store through the device, with the secret of this file.
  [[nodiscard]] Store come_as(const std::string& name) const {
    auto store = Store::connect(device_fabric_, {.secret = secret(name)});
    if (!store) throw std::runtime_error(message(store.error()));
    return std::move(*store);
  }
  /// The error of a get by a map's number, by a client with this file's secret.
  [[nodiscard]] Error get_by_number(const std::string& name, std::uint32_t map) const {
    const auto rings = roles::open_rings(device_fabric_, secret(name));
    if (!rings) return rings.error();
    client::RemoteRequests requests(**rings, 1);
    wire::CallMessage get;
    get.offload = wire::OffloadId::get;
    get.map = map;
    get.key = "k";
    return error_of(requests.call(get));
  }
  static std::uint32_t number_of(const Store& store, const std::string& name) {
    const auto maps = channel::list(*client::StoreImpl::of(store).channel(), ObjectKind::map);
    for (const channel::ListedObject& map : maps.value()) {
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
  EXPECT_EQ(error_of(start_device_as("admin")), role_refusal(5)) << "whom the host does not know";
  EXPECT_EQ(error_of(start_device_as("not there")).code, Code::system);
  EXPECT_TRUE(start_device_as("device"));
}

TEST_F(DeviceAccess, ItChecksItsClientsByTheSameRules) {
  ASSERT_TRUE(start_device_as("device"));
  EXPECT_EQ(error_of(Store::connect(device_fabric_)), role_refusal(4));
  EXPECT_EQ(error_of(Store::connect(device_fabric_, {.secret = secret("weak")})), role_refusal(5))
      << "a client of the host is none of the device";
  Store admin = come_as("admin");
  auto made = admin.create_map("m");
  ASSERT_TRUE(made) << message(made.error());
  ASSERT_TRUE(made->put("k", "v"));
  Store reader = come_as("reader");
  auto read = reader.open_map("m");
  ASSERT_TRUE(read);
  EXPECT_EQ(value_or_message(*read), "v");
  EXPECT_EQ(error_of(read->put("k", "w")), role_refusal(2));
  EXPECT_EQ(error_of(reader.drop_map("m")), role_refusal(3));
  EXPECT_EQ(value_or_message(*read), "v");
}

TEST_F(DeviceAccess, ARoleForAPrefixIsGoodForObjectsOfSuchNames) {
  ASSERT_TRUE(start_device_as("device"));
  Store admin = come_as("admin");
  auto people = admin.create_map("people");
  ASSERT_TRUE(people);
  ASSERT_TRUE(people->put("k", "theirs"));
  Store shop = come_as("shop");
  EXPECT_EQ(error_of(shop.open_map("people")), role_refusal(0));
  EXPECT_EQ(error_of(shop.create_map("other")), role_refusal(0));
  auto orders = shop.create_map("orders/new");
  ASSERT_TRUE(orders) << message(orders.error());
  ASSERT_TRUE(orders->put("k", "v"));
  EXPECT_EQ(value_or_message(*orders), "v");
  const auto count = orders->count("", "");
  EXPECT_EQ(count.value_or(0), 1u);
  auto snapshot = orders->snapshot();
  ASSERT_TRUE(snapshot) << message(snapshot.error());
  ASSERT_TRUE(orders->put("k", "w"));
  const auto held = snapshot->get("k");
  ASSERT_TRUE(held && *held);
  EXPECT_EQ((*held)->value, "v");
  EXPECT_THAT(*shop.map_names(), ElementsAre("orders/new"));
  EXPECT_EQ(error_of(shop.create_sequencer("numbers")), role_refusal(0));
  EXPECT_TRUE(shop.create_sequencer("orders/numbers"));
  // By the number of a map that it did not open: any client can guess numbers.
  EXPECT_EQ(get_by_number("shop", number_of(admin, "people")), role_refusal(0));
  EXPECT_EQ(get_by_number("shop", number_of(admin, "orders/new")), Error{});
  EXPECT_EQ(get_by_number("shop", 9999).code, Code::not_found);
}

TEST_F(DeviceAccess, SamplesAreTheHostsAndOfAClientsOwnObjects) {
  static std::atomic<int> living{0};  // outlives the node
  for (const std::string prefix : {"", kPrefix}) {
    make(prefix);
    ASSERT_TRUE(catalog::create_some<catalog::SomeLater>(node_->catalog(), prefix + "l", living));
  }
  ASSERT_TRUE(start_device_as("device"));
  const auto names_for = [this](const std::string& client, const std::string& name = "") {
    wire::SamplesWanted wanted{};
    wanted.objects_max = 256;
    const Store store = come_as(client);
    const auto sampled = channel::samples(*client::StoreImpl::of(store).channel(), wanted, name);
    std::vector<std::string> names;
    if (!sampled) return std::vector<std::string>{message(sampled.error())};
    for (const wire::SampledObject& object : sampled->objects) {
      EXPECT_FALSE(object.samples.empty()) << object.name;
      names.push_back(object.name);
    }
    EXPECT_EQ(sampled->count, names.size());
    std::ranges::sort(names);
    return names;
  };
  const std::string own = kPrefix;
  EXPECT_THAT(names_for("clerk"), ElementsAre(own + "e", own + "g", own + "h", own + "l", own + "m",
                                              own + "r", own + "s", own + "t"));
  EXPECT_THAT(names_for("clerk", "m"), ElementsAre());
  EXPECT_THAT(names_for("clerk", own + "m"), ElementsAre(own + "m"));
  EXPECT_THAT(names_for("reader", "m"), ElementsAre("m"));
  EXPECT_THAT(names_for("reader"),
              ElementsAre("default", "e", "g", "h", "l", "m", own + "e", own + "g", own + "h",
                          own + "l", own + "m", own + "r", own + "s", own + "t", "r", "s", "t"));
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

// Clients with their own secrets; the device passes their names and roles to the host.
TEST_F(DeviceAccess, EachRequestIsRefusedOrDoneAsWritten) {
  for (const std::string prefix : {"", kPrefix}) make(prefix);
  ASSERT_TRUE(start_device_as("device"));
  expect_all_as_written(device_fabric_, "device");
}

// A device does for its clients only what it may do itself.
TEST_F(DeviceAccess, ADeviceThatIsNoAdministratorSpeaksForNobody) {
  ASSERT_TRUE(start_device_as("weak"));
  Store admin = come_as("admin");
  EXPECT_EQ(error_of(admin.create_map("m")), role_refusal(3));
  EXPECT_EQ(error_of(admin.open_map("default")), role_refusal(3));
  EXPECT_EQ(audited("map_create", "weak", Code::not_permitted).outcome.detail, 3u);
}

}  // namespace
}  // namespace espalier::test
