// SPDX-License-Identifier: Apache-2.0
#include "place/index_controller.hpp"

#include <vector>

#include "dataplane/key_number.hpp"

namespace espalier::place {
namespace {

class ImageBuilder {
 public:
  ImageBuilder(const tree::MapView& map, std::string_view prefix, std::uint64_t base)
      : map_(map), prefix_(prefix), base_(base) {}

  dataplane::TreeImage build() {
    image_.set_root(add(map_.root_ref(), kLevelsMax));
    return std::move(image_);
  }

 private:
  // More than any tree has: what is torn by a change under way leads no deeper.
  static constexpr std::uint32_t kLevelsMax = 32;

  dataplane::NodeNumber add(wire::Ref ref, std::uint32_t levels) {
    const tree::NodeView node = map_.view(ref);
    const std::uint64_t address = base_ + ref.offset();
    const std::uint32_t count = node.leaf() || levels == 0 ? 0 : node.children();
    std::vector<dataplane::NodeNumber> children;
    std::vector<std::string_view> separators;
    std::uint64_t accesses = 0;
    for (std::uint32_t i = 0; i < count; ++i) {
      const wire::Ref child = map_.ref(node.child(i));
      children.push_back(child ? add(child, levels - 1) : dataplane::kHere);
      if (child) accesses += image_.accesses(children.back());
      if (i != 0) separators.push_back(node.separator(i));
    }
    if (children.empty()) return image_.add_leaf(address, 1);
    const auto branches = dataplane::number_branches(prefix_, separators, children);
    return image_.add_node(address, accesses, branches.separators, branches.children);
  }

  const tree::MapView& map_;
  std::string_view prefix_;
  std::uint64_t base_;
  dataplane::TreeImage image_;
};

}  // namespace

dataplane::TreeImage image_of(const tree::MapView& map, std::string_view prefix,
                              std::uint64_t base) {
  return ImageBuilder(map, prefix, base).build();
}

void IndexController::install(const tree::MapView& map, const dataplane::TableLimits& limits) {
  install(dataplane::compile(image_of(map, prefix_, base_), limits).tables);
}

void IndexController::install(const dataplane::IndexTables& tables) {
  tables_ = tables;
  dataplane::PacketFunction function;
  function.add(keys_, tables_);
  into_.install(function);
}

void IndexController::clear() { into_.install({}); }

}  // namespace espalier::place
