// SPDX-License-Identifier: Apache-2.0
// All forms of a walk decide the same, over one corpus: trees of several node sizes and kinds of
// keys, with logs, tombstones, predecessors and superseded nodes, read at the newest and at held
// versions; then with random changes to a node's bytes on the way.
//
// The oracle is the shared step (kinds/map/walk/next_step.hpp) with the scalar kernels, on one node
// at a time.
#include <gtest/gtest.h>

#include <fmt/core.h>

#include <cstring>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "kinds/map/walk/find_point.hpp"
#include "kinds/map/write/change.hpp"
#include "tests/support/copy_walker.hpp"
#include "tests/support/key_set.hpp"
#include "tests/support/scene.hpp"
#include "tests/support/seed.hpp"
#include "tests/support/walk_recorder.hpp"

namespace espalier::test {
namespace {

struct Corpus {
  const char* name;
  MapOptions map;
  KeyPattern keys;
  std::size_t count;
};

const Corpus kCorpora[] = {
    {"dense512", {.node_bytes = 512, .log_bytes = 128}, KeyPattern::dense, 600},
    {"random512", {.node_bytes = 512, .log_bytes = 64}, KeyPattern::random_bytes, 400},
    {"sameFirst8", {.node_bytes = 1024, .log_bytes = 128}, KeyPattern::same_first_8, 600},
    {"sameFirst64", {.node_bytes = 1024, .log_bytes = 128}, KeyPattern::same_first_64, 500},
    {"sameFirst400", {.node_bytes = 8192, .log_bytes = 128}, KeyPattern::longest, 600},
    {"sameEnds", {.node_bytes = 1024, .log_bytes = 0}, KeyPattern::same_ends, 500},
    {"nested", {.node_bytes = 2048, .log_bytes = 256}, KeyPattern::nested, 400},
    {"shortAndLong", {.node_bytes = 8192, .log_bytes = 512}, KeyPattern::short_and_long, 600},
    {"zeros", {.node_bytes = 512, .log_bytes = 128}, KeyPattern::binary_zeros, 400},
};

class StepCorpus : public ::testing::TestWithParam<Corpus> {
 protected:
  // The end of a walk that takes shared steps in sequence. Nothing: it leaves the memory, or
  // returns to the root more often than any form must tolerate.
  std::optional<wire::Ref> leaf_by_steps(tree::Cursor cursor, const tree::SearchKit* kit) {
    const tree::MapView& map = *scene_.map;
    const tree::MapView view{.memory = map.memory,
                             .region_bytes = map.region_bytes,
                             .id = map.id,
                             .header_generation = map.header_generation,
                             .header_offset = map.header_offset,
                             .directory_offset = map.directory_offset,
                             .root = map.root,
                             .versions = map.versions,
                             .geometry = map.geometry,
                             .kit = *kit};
    return leaf_by_steps(view, cursor);
  }

  std::optional<wire::Ref> leaf_by_steps(const tree::MapView& view, tree::Cursor& cursor) {
    int roots = 0;
    wire::Ref ref;
    for (int nodes = 0; nodes < 200; ++nodes) {
      if (!ref) {
        if (++roots > 4) return std::nullopt;
        ref = view.root_ref();
      }
      if (!view.holds_node(ref)) return std::nullopt;
      const tree::NodeView node = view.view(ref);
      const tree::Step step =
          next_step(view, cursor, node, tree::NodeHead::read(node.bytes()), ref);
      if (step.kind == tree::StepKind::leaf) return ref;
      ref = step.kind == tree::StepKind::child ? view.ref(step.lid) : step.ref;
    }
    return std::nullopt;
  }

  tree::Cursor cursor(tree::Goal goal, const std::string& key, std::uint64_t version) {
    tree::Cursor cursor;
    cursor.goal = goal;
    cursor.read_version = version;
    cursor.key.assign(key);
    return cursor;
  }

  // A leaf's answer for a key, as text; `out_of_line`: the text is the value's place.
  std::string answer_of(wire::Ref ref, const std::string& key, std::uint64_t version,
                        bool& out_of_line) {
    tree::SearchKey search;
    search.assign(key);
    const tree::NodeView leaf = scene_.map->view(ref);
    Completion answer;
    answer.found = tree::find_point(search, leaf, tree::probe_leaf(leaf, search, *scalar_), version,
                                    answer, out_of_line);
    return text_of(answer);
  }
  static std::string text_of(const Completion& answer) {
    if (!answer.found) return "nothing";
    return fmt::format("{}@{}", answer.value, answer.version);
  }
  static std::string text_of(const Operation& operation) {
    if (operation.refused) return "refused";
    if (operation.items.empty()) return "nothing";
    return fmt::format("{}@{}", operation.items[0].value, operation.items[0].version);
  }

  // The leaf of each goal, with each kernel.
  void compare_steps(const std::string& key, std::uint64_t version) {
    for (const tree::Goal goal :
         {tree::Goal::point, tree::Goal::write, tree::Goal::forward, tree::Goal::backward}) {
      const std::uint64_t as_of = goal == tree::Goal::write ? tree::kNewest : version;
      const auto expected = leaf_by_steps(cursor(goal, key, as_of), scalar_);
      for (const tree::Isa isa : {tree::Isa::avx2, tree::Isa::avx512}) {
        const tree::SearchKit* kit = tree::search_kit(isa);
        if (kit == nullptr) continue;
        ASSERT_EQ(leaf_by_steps(cursor(goal, key, as_of), kit), expected) << kit->name;
      }
      if (!expected) continue;
      tree::Cursor own = cursor(goal, key, as_of);
      ASSERT_EQ(tree::find_leaf(*scene_.map, own, {}), *expected);
      if (goal != tree::Goal::write) continue;
      tree::Path path;
      tree::SearchKey search;
      search.assign(key);
      const std::byte* leaf = tree::find_leaf(*scene_.map, search, path);
      ASSERT_EQ(leaf, scene_.map->at(expected->offset())) << "the writer's descent";
    }
  }

  // A get of the newest state, in each form.
  void compare_gets(const std::string& key, bool corrupt) {
    const std::uint64_t version = scene_.map->clock.released();
    const auto leaf = leaf_by_steps(cursor(tree::Goal::point, key, version), scalar_);
    if (!leaf) {
      ++undecided_;
      return;
    }
    bool out_of_line = false;
    std::string expected = answer_of(*leaf, key, version, out_of_line);
    if (out_of_line && corrupt) return;  // the host believes its own references to values
    Completion single;
    ASSERT_TRUE(one_.executor.read_one(key, single));
    const std::string got = text_of(single);
    one_.executor.let_go();
    if (out_of_line) expected = got;
    ASSERT_EQ(got, expected) << "a single read";
    const Question question{Op::get, key, {}, {}, 0};
    one_.ask(question);  // not plain: takes a lane
    ASSERT_EQ(text_of(one_.recorder.log().back()), expected) << "a lane";
    const tree::WalkRequest plain = one_.recorder.ask(question);
    one_.executor.run(plain);
    ASSERT_EQ(text_of(one_.recorder.log().back()), expected) << "a request alone";
    grouped_ = {request_of(question, 1)};
    many_.executor.submit(grouped_, sink_);
    many_.executor.drain();
    ASSERT_EQ(sink_.text, expected) << "a group";
    far_.submit(question);
    far_.drain();
    ASSERT_EQ(text_of(far_.recorder.log().back()), expected) << "over copies";
    ++compared_;
  }

  void fill() {
    for (std::size_t round = 0; round < 3; ++round) {
      for (const std::string& key : keys_) {
        if (random_.one_in(3)) continue;
        const std::uint64_t bytes = random_.one_in(30) ? 700 : random_.below(24);
        if (random_.one_in(4)) {
          writer_.ask({Op::erase, key, {}, {}, 0});
        } else {
          writer_.ask({Op::put, key, {}, std::string(bytes, 'v') + std::to_string(++value_), 0});
        }
      }
      if (round < 2) held_.push_back(std::make_unique<HeldHere>(*scene_.map, scene_.context));
    }
  }

  // A key that the map may have, or one near it.
  std::string any_key() {
    std::string key = random_.pick(keys_);
    if (random_.one_in(3) && key.size() < scene_.map->geometry.key_bytes_max)
      key += static_cast<char>(random_.below(256));
    if (random_.one_in(5) && key.size() > 1) key.pop_back();
    return key;
  }

  // A node on the path to the key.
  wire::Ref node_for(const std::string& key) {
    tree::Path path;
    tree::SearchKey search;
    search.assign(key);
    const std::byte* leaf = tree::find_leaf(*scene_.map, search, path);
    if (path.empty() || random_.one_in(2)) return scene_.map->ref_of(leaf);
    return scene_.map->ref_of(random_.pick(path).node);
  }

  struct Sink final : Handler {
    void done(const Completion& completion) override { text = text_of(completion); }
    bool items(std::uint64_t, std::span<const Item>) override { return true; }
    std::string text;
  };

  const std::uint64_t seed_ = seed_from_environment(91);
  Random random_{seed_};
  Clock clock_;
  Scene scene_{GetParam().map};
  std::vector<std::string> keys_ =
      make_keys(GetParam().keys, GetParam().count, scene_.map->geometry.key_bytes_max, seed_);
  const tree::SearchKit* const scalar_ = tree::search_kit(tree::Isa::scalar);
  HostWalker writer_{scene_.store, *scene_.map, 3, clock_};
  HostWalker one_{scene_.store, *scene_.map, 4, clock_};
  HostWalker many_{scene_.store, *scene_.map, 5, clock_, 8};
  CopyWalker far_{scene_.store, *scene_.map, 6, clock_, 1, seed_};
  std::vector<std::unique_ptr<HeldHere>> held_;
  std::vector<Request> grouped_;
  Sink sink_;
  int value_ = 0;
  std::uint64_t compared_ = 0;
  std::uint64_t undecided_ = 0;
};

TEST_P(StepCorpus, AllFormsDecideAlike) {
  SCOPED_TRACE(seed_text(seed_));
  fill();
  for (std::uint64_t i = 0; i < scaled(1500); ++i) {
    const std::string key = any_key();
    const bool newest = random_.one_in(2);
    ASSERT_NO_FATAL_FAILURE(
        compare_steps(key, newest ? scene_.map->clock.released() : random_.pick(held_)->version()));
    ASSERT_NO_FATAL_FAILURE(compare_gets(key, false));
  }
  EXPECT_EQ(undecided_, 0u);
}

TEST_P(StepCorpus, AllFormsDecideAlikeOnCorruptNodes) {
  SCOPED_TRACE(seed_text(seed_));
  fill();
  const std::uint32_t node_bytes = scene_.map->geometry.node_bytes;
  std::vector<std::byte> before(node_bytes);
  far_.machine.whole_nodes = true;
  for (std::uint64_t i = 0; i < scaled(1500); ++i) {
    const std::string key = any_key();
    std::byte* node = scene_.map->at(node_for(key).offset());
    std::memcpy(before.data(), node, node_bytes);
    std::string changed;
    for (std::uint64_t changes = random_.between(1, 4); changes != 0; --changes) {
      // Headers decide most, and what interior nodes keep of a prefix.
      const tree::Geometry& g = scene_.map->geometry;
      std::uint64_t at = random_.below(random_.one_in(2) ? 64 : node_bytes);
      if (random_.one_in(4)) at = g.prefix_begin + random_.below(g.prefix_room());
      node[at] = static_cast<std::byte>(random_.below(256));
      changed += fmt::format(" {}", at);
    }
    SCOPED_TRACE("bytes changed at" + changed);
    compare_steps(key, scene_.map->clock.released());
    if (!HasFatalFailure()) compare_gets(key, true);
    std::memcpy(node, before.data(), node_bytes);
    ASSERT_FALSE(HasFatalFailure());
  }
  EXPECT_GT(compared_, scaled(300));
}

INSTANTIATE_TEST_SUITE_P(Trees, StepCorpus, ::testing::ValuesIn(kCorpora),
                         [](const auto& corpus) { return std::string(corpus.param.name); });

}  // namespace
}  // namespace espalier::test
