// SPDX-License-Identifier: Apache-2.0
#include "rings/doorbells.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <set>
#include <vector>

#include "base/random.hpp"

namespace espalier::rings {
namespace {

std::vector<base::Isa> usable_forms() {
  std::vector<base::Isa> forms;
  for (const base::Isa isa : {base::Isa::scalar, base::Isa::avx2, base::Isa::avx512}) {
    if (isa <= base::best_isa(base::cpu_features(), base::Isa::avx512)) forms.push_back(isa);
  }
  return forms;
}

TEST(DoorbellScan, EveryFormAnswersAsTheScalarOne) {
  const std::uint64_t seed = base::seed_from_environment(4);
  SCOPED_TRACE(testing::Message() << "repeat with ESPALIER_SEED=" << seed);
  base::Random random(seed);
  constexpr std::size_t kWords = 2048;
  struct alignas(64) Row {
    std::uint32_t words[kWords];
  };
  const auto row = std::make_unique<Row>();
  std::vector<std::uint32_t> seen(kWords);
  for (int round = 0; round < 2000; ++round) {
    const std::uint64_t news = random.below(random.below(4) == 0 ? 200 : 4);
    for (std::uint64_t i = 0; i < news; ++i) {
      row->words[random.below(kWords)] ^= std::uint32_t{1} << random.below(32);
    }
    const std::size_t words = 32 * random.below(kWords / 32 + 1);
    std::vector<std::uint32_t> expected;
    for (std::size_t i = 0; i < words; ++i) {
      if (row->words[i] != seen[i]) expected.push_back(static_cast<std::uint32_t>(i));
    }
    for (const base::Isa isa : usable_forms()) {
      std::vector<std::uint32_t> changed(kWords);
      const auto* const bytes = reinterpret_cast<const std::byte*>(row->words);
      changed.resize(scan_doorbells(isa)(bytes, seen.data(), words, changed.data()));
      ASSERT_EQ(changed, expected) << base::name(isa);
    }
    if (random.below(2) == 0) std::copy_n(row->words, kWords, seen.begin());
  }
}

/// A page of doorbells, as a client maps it.
class ClientPage {
 public:
  explicit ClientPage(int descriptor) {
    auto page = memory::SharedMemory::attach(memory::Descriptor(::dup(descriptor)),
                                             wire::kDoorbellPageBytes, memory::Rights::write);
    EXPECT_TRUE(page);
    if (page) page_ = std::move(*page);
  }
  void ring(std::uint32_t in_page, std::uint32_t number) {
    base::store_shared(page_.at(std::size_t{in_page} * wire::kDoorbellBytes), number);
  }

 private:
  memory::SharedMemory page_;
};

std::vector<std::uint32_t> scanned(Doorbells& doorbells) {
  const auto places = doorbells.scan();
  return {places.begin(), places.end()};
}

TEST(Doorbells, TellWhichRangAndOnlyOnce) {
  auto doorbells = *Doorbells::reserve(100);
  const auto first = *doorbells.open(1);
  const auto second = *doorbells.open(1);
  EXPECT_NE(first.place, second.place);
  EXPECT_TRUE(doorbells.scan().empty());
  ClientPage page(second.page);
  page.ring(second.in_page, 17);
  EXPECT_TRUE(doorbells.rings(second.place));
  EXPECT_FALSE(doorbells.rings(first.place));
  EXPECT_EQ(scanned(doorbells), std::vector{second.place});
  EXPECT_TRUE(doorbells.scan().empty());
  page.ring(first.in_page, 1);
  page.ring(second.in_page, 18);
  doorbells.look(second.place);
  EXPECT_EQ(scanned(doorbells), std::vector{first.place});
}

TEST(Doorbells, EachUserHasPagesOfHisOwn) {
  auto doorbells = *Doorbells::reserve(4 * wire::kDoorbellsPerPage);
  std::map<std::uint32_t, std::set<std::uint32_t>> pages_of_user;
  std::set<std::uint32_t> places;
  for (std::uint32_t i = 0; i < 3 * wire::kDoorbellsPerPage; ++i) {
    const auto opened = *doorbells.open(i % 2);
    EXPECT_TRUE(places.insert(opened.place).second);
    EXPECT_EQ(opened.place % wire::kDoorbellsPerPage, opened.in_page);
    pages_of_user[i % 2].insert(opened.place / wire::kDoorbellsPerPage);
  }
  EXPECT_EQ(pages_of_user[0].size(), 2u);
  EXPECT_EQ(pages_of_user[1].size(), 2u);
  for (const std::uint32_t page : pages_of_user[0]) EXPECT_FALSE(pages_of_user[1].contains(page));
}

TEST(Doorbells, APlaceThatComesAgainIsSilent) {
  auto doorbells = *Doorbells::reserve(100);
  const auto kept = *doorbells.open(1);
  const auto first = *doorbells.open(1);
  ClientPage page(first.page);
  page.ring(first.in_page, 99);
  doorbells.close(first.place);
  EXPECT_LE(scanned(doorbells).size(), 1u);  // of no ring, or its last
  page.ring(first.in_page, 100);             // its former client still can
  const auto again = *doorbells.open(1);
  EXPECT_EQ(again.place, first.place);
  EXPECT_TRUE(doorbells.scan().empty());
  page.ring(kept.in_page, 3);
  EXPECT_EQ(scanned(doorbells), std::vector{kept.place});
}

TEST(Doorbells, ThePageOfAUserGoesWithHisLastRingAndIsNobodyElsesEver) {
  auto doorbells = *Doorbells::reserve(100);
  const auto first = *doorbells.open(1);
  ClientPage old_page(first.page);
  doorbells.close(first.place);
  const auto second = *doorbells.open(2);
  EXPECT_EQ(second.place, first.place);
  old_page.ring(second.in_page, 5);
  EXPECT_TRUE(doorbells.scan().empty());
  ClientPage(second.page).ring(second.in_page, 6);
  EXPECT_EQ(scanned(doorbells), std::vector{second.place});
}

TEST(Doorbells, MoreUsersThanPagesAreRefused) {
  auto doorbells = *Doorbells::reserve(1);
  std::vector<std::uint32_t> places;
  for (std::uint32_t user = 0;; ++user) {
    const auto opened = doorbells.open(user);
    if (!opened) {
      EXPECT_EQ(opened.error().code, Code::out_of_memory);
      break;
    }
    places.push_back(opened->place);
    ASSERT_LT(user, 1000u);
  }
  doorbells.close(places[3]);
  EXPECT_EQ(doorbells.open(5000)->place, places[3]);
}

TEST(Doorbells, OpenCloseAndRingAtRandomAgreeWithAModel) {
  const std::uint64_t seed = base::seed_from_environment(5);
  SCOPED_TRACE(testing::Message() << "repeat with ESPALIER_SEED=" << seed);
  base::Random random(seed);
  auto doorbells = *Doorbells::reserve(3 * wire::kDoorbellsPerPage);
  struct Open {
    std::unique_ptr<ClientPage> page;
    std::uint32_t in_page;
    std::uint32_t number = 0;
  };
  std::map<std::uint32_t, Open> open;
  for (int step = 0; step < 3000; ++step) {
    std::set<std::uint32_t> rang;
    for (std::uint64_t i = random.below(4); i != 0 && !open.empty(); --i) {
      auto& [place, ring] = *std::next(open.begin(), static_cast<long>(random.below(open.size())));
      ring.page->ring(ring.in_page, ++ring.number);
      rang.insert(place);
    }
    const auto found = scanned(doorbells);
    ASSERT_EQ(std::set(found.begin(), found.end()), rang) << step;
    if (random.below(2) == 0 || open.empty()) {
      const auto opened = *doorbells.open(static_cast<std::uint32_t>(random.below(4)));
      auto page = std::make_unique<ClientPage>(opened.page);
      ASSERT_TRUE(open.emplace(opened.place, Open{std::move(page), opened.in_page}).second);
    } else {
      const auto at = std::next(open.begin(), static_cast<long>(random.below(open.size())));
      doorbells.close(at->first);
      open.erase(at);
    }
    // The last value of a closed doorbell may show up once more, for no ring.
    doorbells.scan();
  }
}

}  // namespace
}  // namespace espalier::rings
