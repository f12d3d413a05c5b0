// SPDX-License-Identifier: Apache-2.0
#include "kinds/embedding/reduction_work.hpp"

#include <limits>

namespace espalier::embedding {

std::optional<std::string> fault_of_work(const ReductionWork& work, std::uint32_t dimension) {
  const EmbeddingBags& bags = work.bags;
  if (work.reduction < Reduction::sum || work.reduction > Reduction::inner_product) {
    return "there is no such reduction";
  }
  if (bags.ids.size() > std::numeric_limits<std::uint32_t>::max()) return "too many ids";
  if (bags.offsets.empty() && !bags.ids.empty()) return "there are ids, and no bag";
  std::uint32_t before = 0;
  for (std::size_t bag = 0; bag < bags.offsets.size(); ++bag) {
    const std::uint32_t offset = bags.offsets[bag];
    if (bag == 0 && offset != 0) return "the first offset is not 0";
    if (offset < before) return "offset " + std::to_string(bag) + " is below the one before";
    if (offset > bags.ids.size()) {
      return "offset " + std::to_string(bag) + " is above the number of ids";
    }
    before = offset;
  }
  const bool weighs =
      work.reduction == Reduction::sum || work.reduction == Reduction::inner_product;
  if (!bags.weights.empty()) {
    if (!weighs) return "only sum and inner product take weights";
    if (bags.weights.size() != bags.ids.size()) return "there are not as many weights as ids";
  }
  const std::size_t wanted = work.reduction == Reduction::inner_product ? dimension : 0;
  if (work.vector.size() != wanted) {
    return wanted == 0 ? "only the inner product takes a vector"
                       : "the vector has not as many values as a row";
  }
  return std::nullopt;
}

std::string describe(const WrongId& wrong) {
  if (wrong.grouping) {
    const std::string now = wrong.rows == 0 ? "none" : "grouping " + std::to_string(wrong.rows);
    return "ids are numbered by grouping " + std::to_string(wrong.id) + ", and the table has " +
           now;
  }
  return "id " + std::to_string(wrong.id) + " at place " + std::to_string(wrong.place) +
         " is not below the table's " + std::to_string(wrong.rows) + " rows";
}

TableError error_of(const WrongId& wrong) {
  const Error error = wrong.grouping
                          ? Error{Code::outdated, 0, static_cast<std::uint32_t>(wrong.rows)}
                          : Error{Code::invalid_argument, 0, wrong.id};
  return {error, describe(wrong)};
}

}  // namespace espalier::embedding
