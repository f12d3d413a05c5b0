// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/review_lists.hpp"

#include <algorithm>
#include <cmath>
#include <vector>

#include "base/assert.hpp"
#include "base/random.hpp"

namespace espalier::embedding {
namespace {

constexpr std::uint32_t kCommunity = 128;

constexpr ReviewCategory kCategories[] = {
    {"sports", 811'520},         {"clothing", 921'600}, {"electronics", 476'160},
    {"home-kitchen", 1'024'000}, {"office", 351'744},   {"books", 2'355'200},
};

/// Ranks by a power law, without the tables of an exact Zipf distribution: a share of x of the
/// draws falls on the first x^(1 / (1 - skew)) of the ranks.
class PowerRanks {
 public:
  explicit PowerRanks(double skew) : exponent_(1 / (1 - skew)) {}
  std::uint32_t operator()(base::Random& random, std::uint32_t ranks) const {
    const double x = static_cast<double>(random() >> 11) * 0x1p-53;
    const auto rank = static_cast<std::uint32_t>(std::pow(x, exponent_) * ranks);
    return std::min(rank, ranks - 1);
  }

 private:
  double exponent_;
};

/// The items of communities, in the order of their frequency: a permutation of all.
std::vector<std::uint32_t> shuffled_items(std::uint32_t items, base::Random& random) {
  std::vector<std::uint32_t> order(items);
  for (std::uint32_t i = 0; i < items; ++i) order[i] = i;
  for (std::uint32_t i = items; i > 1; --i) std::swap(order[i - 1], order[random.below(i)]);
  return order;
}

double uniform(base::Random& random) { return (static_cast<double>(random() >> 11) + 1) * 0x1p-53; }

}  // namespace

std::span<const ReviewCategory> review_categories() { return kCategories; }

ReviewLists review_lists(std::uint32_t items, std::uint64_t seed) {
  ESPALIER_ASSERT(items >= 2 * kCommunity);
  base::Random random(seed);
  const std::vector<std::uint32_t> order = shuffled_items(items, random);
  const PowerRanks inside(0.6);
  const PowerRanks overall(0.4);
  const std::uint32_t communities = items / kCommunity;
  ReviewLists made;
  std::vector<std::uint32_t> ids;
  std::vector<std::uint32_t> drawn_for(items, ~std::uint32_t{0});  // the list that drew it last
  for (std::uint32_t list = 0; list < items / 6; ++list) {
    const auto length = static_cast<std::uint32_t>(2 - 48 * std::log(uniform(random)));
    const auto own = static_cast<std::uint32_t>(1 + random.below(3));
    std::uint32_t of[3];
    for (std::uint32_t& community : of) community = overall(random, communities);
    ids.clear();
    // A repeated id is drawn again; a long list of few communities ends with fewer.
    for (std::uint32_t draws = 0; ids.size() < length && draws < 4 * length; ++draws) {
      const bool near = random.below(10) < 8;
      const std::uint32_t rank =
          near ? of[random.below(own)] * kCommunity + inside(random, kCommunity)
               : overall(random, items);
      const std::uint32_t id = order[rank];
      if (drawn_for[id] != list) ids.push_back(id);
      drawn_for[id] = list;
    }
    std::ranges::sort(ids);
    const double reviews = std::min(std::pow(uniform(random), -1 / 1.2), 10'000.0);
    std::uint32_t learned = 0;
    for (std::uint32_t i = 0; i < static_cast<std::uint32_t>(reviews); ++i) {
      learned += random.below(5) == 0 ? 0u : 1u;
    }
    const std::uint32_t held_out = static_cast<std::uint32_t>(reviews) - learned;
    if (learned != 0) made.learned.add(ids, learned);
    if (held_out != 0) made.held_out.add(ids, held_out);
  }
  return made;
}

}  // namespace espalier::embedding
