// SPDX-License-Identifier: Apache-2.0
#include "espalier/map.hpp"

namespace espalier {

WriteBatch& WriteBatch::put(std::string_view key, std::string_view value) {
  writes_.push_back({std::string(key), std::string(value), false});
  return *this;
}
WriteBatch& WriteBatch::erase(std::string_view key) {
  writes_.push_back({std::string(key), {}, true});
  return *this;
}
WriteBatch& WriteBatch::only_if_absent(std::string_view key) {
  conditions_.push_back({std::string(key), {}, 0, ConditionKind::absent});
  return *this;
}
WriteBatch& WriteBatch::only_if_present(std::string_view key) {
  conditions_.push_back({std::string(key), {}, 0, ConditionKind::present});
  return *this;
}
WriteBatch& WriteBatch::only_if_value(std::string_view key, std::string_view value) {
  conditions_.push_back({std::string(key), std::string(value), 0, ConditionKind::value});
  return *this;
}
WriteBatch& WriteBatch::only_if_version(std::string_view key, Version version) {
  conditions_.push_back({std::string(key), {}, version, ConditionKind::version});
  return *this;
}
void WriteBatch::clear() {
  writes_.clear();
  conditions_.clear();
}

}  // namespace espalier
