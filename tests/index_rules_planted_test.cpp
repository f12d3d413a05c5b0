// SPDX-License-Identifier: Apache-2.0
// Tables in switches hold no memory of the node. So there are two rules: the key that they write is
// void once their controller has lost its lease, and readers check what an entry names. Each is
// broken once, and a check detects it.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <string>

#include "base/random.hpp"
#include "dataplane/key_number.hpp"
#include "dataplane/planted_dataplane_bugs.hpp"
#include "dataplane/process_switch.hpp"
#include "engine/one_sided_host.hpp"
#include "fabric/sim/testing/two_ends.hpp"
#include "index/index_follower.hpp"
#include "kinds/map/offload/index_host.hpp"
#include "kinds/map/offload/indexed_reads.hpp"
#include "kinds/map/offload/map_reads.hpp"
#include "kinds/map/testing/map_objects.hpp"
#include "tests/support/forged_leaf.hpp"

namespace espalier::test {
namespace {

constexpr const char* kPrefix = "user";

memory::Region shared_region() {
  constexpr std::uint64_t kBytes = std::uint64_t{256} << 20;
  return std::move(
      *memory::Region::reserve({.bytes_max = kBytes, .huge_pages = false, .shared = true}));
}

/// A node, a client whose READs carry keys, a switch between them, and the session of the
/// controller that filled its tables, over the simulated fabric.
class LeaseScene {
 public:
  explicit LeaseScene(std::uint64_t seed) : world_(seed) {
    for (int i = 0; i < 2000; ++i) user_.put(key(i), "value");
    map_ = *index_.offer(core_, key(0), key(1999));
    for (Session* const session : {&controller_, &reader_}) {
      EXPECT_TRUE(session->memory.offer());
      EXPECT_TRUE(session->memory.grant(world_.now_ns()));
      EXPECT_TRUE(session->maps.admit(map_));
    }
    fill_tables();
    world_.middle = [this](fabric::RegionKey& key, std::uint64_t& address) {
      through_.process(key, address);
    };
    there_.options.domain = kReader;
    EXPECT_TRUE(host_->listen("host"));
    EXPECT_TRUE(fabric::sim::connect(world_, here_, there_, "host"));
  }
  ~LeaseScene() {
    here_.pair.reset();
    there_.pair.reset();
    world_.middle = nullptr;
  }

  /// The node that a READ of a key brings; nothing: it brought zeros. False: the READ failed.
  bool read(int i, std::optional<wire::Ref>& node) {
    alignas(8) std::array<std::byte, 512> bytes{};
    const std::uint64_t number = dataplane::key_number(map_->prefix(), key(i));
    here_.completions.clear();
    here_.pair->post(fabric::WorkRequest::read(1, bytes, map_->keyed_key(), number));
    if (!here_.wait_completed(world_, 1)) return false;
    if (here_.completions[0].status != fabric::Status::success) return false;
    const tree::NodeView view(bytes.data(), core_->geometry);
    const bool zeros = std::ranges::all_of(bytes, [](std::byte b) { return b == std::byte{0}; });
    node = zeros ? std::nullopt : std::optional(view.self_ref());
    return true;
  }
  /// As the node's sweep of leases does when a session was not heard of.
  void lose_lease() {
    controller_.memory.fence();
    controller_.maps.fence();
  }
  [[nodiscard]] bool begin_generation() {
    return controller_.maps.begin_generation(core_->id).has_value();
  }
  [[nodiscard]] bool end_generations_before() {
    return controller_.maps.end_generations_before(core_->id).has_value();
  }
  void empty_switch() { function_.install({}); }
  [[nodiscard]] std::uint64_t redirected() const { return through_.counters().redirected; }

  void fill_tables() {
    const auto redirect = controller_.maps.open_redirect(map_);
    ASSERT_TRUE(redirect);
    const dataplane::MapKeys keys{map_->keyed_key(), redirect->key};
    place::IndexFollower follower(keys, map_->prefix(), redirect->base, {.ranges = 500});
    place::LocalRegion region(store_.region.at(0));
    ASSERT_TRUE(follower.follow(*core_, region));
    dataplane::PacketFunction with;
    with.add(keys, follower.tables());
    function_.install(with);
  }

 private:
  static constexpr fabric::Domain kController = 1;
  static constexpr fabric::Domain kReader = 2;

  static std::string key(int i) { return kPrefix + std::to_string(10'000 + i); }

  tree::StoreCore store_{shared_region(), 16};
  tree::ThreadContext context_{store_, *store_.epochs.join(), 0};
  std::shared_ptr<tree::MapCore> core_ = *tree::create_map(store_, "map", {.node_bytes = 512});
  tree::MapUser user_{context_, core_};
  fabric::sim::World world_;
  std::unique_ptr<fabric::Endpoint> host_ = world_.add_node("host");
  std::unique_ptr<fabric::Endpoint> client_ = world_.add_node("client");
  offload::IndexHost index_{store_, host_->regions()};
  std::shared_ptr<offload::IndexedMap> map_;
  struct Session {
    Session(LeaseScene& scene, fabric::Domain domain, std::uint64_t number)
        : memory(scene.store_, scene.host_->regions(), domain, number),
          maps(memory, scene.host_->regions(), &scene.index_) {}
    offload::OneSidedHost memory;
    offload::IndexedReads maps;
  };
  Session controller_{*this, kController, 1};
  Session reader_{*this, kReader, 2};
  dataplane::InstalledFunction function_;
  dataplane::ProcessSwitch through_{function_};
  fabric::sim::End here_{*client_};
  fabric::sim::End there_{*host_};
};

/// Checks READs whose controller loses its lease. Returns what is wrong; empty: nothing.
std::string reads_beyond_a_lease(std::uint64_t seed) {
  LeaseScene scene(seed);
  std::optional<wire::Ref> node;
  if (!scene.read(77, node) || !node || scene.redirected() != 1) return "no table led to a leaf";
  scene.lose_lease();
  for (const int i : {77, 1234}) {
    if (!scene.read(i, node)) return "a READ by old tables was refused";
    if (node) return "an entry led to a node after its lease";
  }
  scene.empty_switch();
  if (!scene.read(77, node) || !node) return "the node did not find the leaf by itself";
  return "";
}

/// Checks READs by tables of a generation that ends. Returns what is wrong; empty: nothing.
std::string reads_beyond_a_generation(std::uint64_t seed) {
  LeaseScene scene(seed);
  std::optional<wire::Ref> node;
  if (!scene.end_generations_before()) return "there were none to end, which is no fault";
  if (!scene.read(77, node) || !node) return "no table led to a leaf";
  // The switch has not got the tables of the new one yet.
  if (!scene.begin_generation()) return "none was begun";
  if (!scene.read(77, node) || !node) return "the generation before ended early";
  if (!scene.end_generations_before() || !scene.read(77, node)) return "a READ was refused";
  if (node) return "an entry led to a node after its generation";
  scene.fill_tables();
  if (!scene.read(77, node) || !node) return "the tables of the new one led to no leaf";
  // Two are good, and no third.
  for (int i = 0; i < 2; ++i) {
    if (!scene.begin_generation() || !scene.read(77, node)) return "a READ was refused";
  }
  if (node) return "three generations were good";
  scene.fill_tables();
  scene.lose_lease();
  if (scene.begin_generation()) return "one began without a lease";
  if (!scene.read(77, node) || node) return "an entry led to a node after its lease";
  return scene.redirected() == 7 ? "" : "the switch let READs pass";
}

/// Checks READs that tables send into a value whose bytes are leaves. Returns what is wrong.
std::string reads_into_a_value() {
  constexpr std::size_t kBytes = 65'536;
  Scene scene({.node_bytes = 512, .log_bytes = 128});
  scene.a.put("k", "honest");
  const std::string image = forged_leaf(scene, "k", "honest", "forged");
  if (image.empty()) return "no image was made";
  scene.a.put("large", value_of_leaves(image, 7, kBytes));
  const std::shared_ptr<const tree::MapCore> map(scene.map.get(), [](const tree::MapCore*) {});
  const auto reads = *offload::MapReads::create(scene.store, map, "");
  alignas(8) std::array<std::byte, 512> bytes{};
  const std::uint64_t leaf = scene.leaf_of("k").offset();
  reads->read_at(leaf, bytes);
  if (tree::NodeView(bytes.data(), scene.map->geometry).self_ref().offset() != leaf) {
    return "a leaf did not come";
  }
  const std::uint64_t value = value_of(scene, "large").offset();
  for (std::uint64_t at = 0; at + bytes.size() <= kBytes; at += wire::kBlockBytes) {
    reads->read_at(value + at, bytes);
    if (std::ranges::any_of(bytes, [](std::byte b) { return b != std::byte{0}; })) {
      return "an entry led into a value";
    }
  }
  return "";
}

TEST(IndexRules, AnEntryThatOutlivesItsLeaseIsNoticed) {
  const base::Planted planted(dataplane::Bug::entry_outlives_lease);
  EXPECT_EQ(reads_beyond_a_lease(base::seed_from_environment(1)),
            "an entry led to a node after its lease");
}

TEST(IndexRules, AnEntryThatOutlivesItsGenerationIsNoticed) {
  const base::Planted planted(dataplane::Bug::entry_outlives_lease);
  EXPECT_EQ(reads_beyond_a_generation(base::seed_from_environment(1)),
            "an entry led to a node after its generation");
}

TEST(IndexRules, AnEntryThatIsTakenAtItsWordIsNoticed) {
  const base::Planted planted(dataplane::Bug::entry_taken_at_its_word);
  EXPECT_EQ(reads_into_a_value(), "an entry led into a value");
}

TEST(IndexRules, WithoutABugNothingIsNoticed) {
  EXPECT_EQ(reads_beyond_a_lease(base::seed_from_environment(1)), "");
  EXPECT_EQ(reads_beyond_a_generation(base::seed_from_environment(1)), "");
  EXPECT_EQ(reads_into_a_value(), "");
}

}  // namespace
}  // namespace espalier::test
